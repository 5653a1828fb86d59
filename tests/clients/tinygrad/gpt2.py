"""GPT-2 with random weights, with a cache of keys and values as in tinygrad's own example, that continues a token by the most likely
ones: those that numpy finds. The shape and the number of tokens are in the environment. The line of results has the seconds from the
loaded weights to each token."""

import os
import time

import numpy as np
from both import draw, report
from tinygrad import Device, Tensor, TinyJit, Variable

LAYERS, WIDTH, HEADS, VOCABULARY, CONTEXT = (int(number) for number in os.environ["GPT2_SHAPE"].split(","))
TOKENS = int(os.environ["GPT2_TOKENS"])
BEGIN = 17


def weights():
    of = {"token": draw("token", VOCABULARY, WIDTH), "position": draw("position", CONTEXT, WIDTH),
          # Not the embedding, as GPT-2 has it: with random weights every token would be followed by itself.
          "head": draw("head", VOCABULARY, WIDTH) * np.float32(WIDTH ** -0.5)}
    for i in range(LAYERS):
        for part, rows, columns in [("qkv", 3 * WIDTH, WIDTH), ("out", WIDTH, WIDTH), ("up", 4 * WIDTH, WIDTH),
                                    ("down", WIDTH, 4 * WIDTH)]:
            of[f"{part} {i}"] = draw(f"{part} {i}", rows, columns) * np.float32(columns ** -0.5)
            of[f"{part} {i} bias"] = draw(f"{part} {i} bias", rows) * np.float32(0.02)
    return of


class Model:
    """The model on tinygrad's device."""

    def __init__(self, of):
        self.of = {name: Tensor(values).realize() for name, values in of.items()}
        empty = lambda: Tensor.zeros(2, 1, CONTEXT, HEADS, WIDTH // HEADS).contiguous().realize()
        self.caches = [empty() for _ in range(LAYERS)]
        self.step = TinyJit(self.next)
        Device[Device.DEFAULT].synchronize()

    def linear(self, x, name):
        return x.linear(self.of[name].T, self.of[f"{name} bias"])

    def attention(self, x, i, at):
        q, k, v = (self.linear(x, f"qkv {i}").reshape(1, 1, 3, HEADS, WIDTH // HEADS)[:, :, part] for part in range(3))
        cache = self.caches[i]
        cache.shrink((None, None, (at, at + 1), None, None)).assign(Tensor.stack(k, v)).realize()
        keys, values = (cache[part].shrink((None, (0, at + 1), None, None)).transpose(1, 2) for part in range(2))
        mixed = q.transpose(1, 2).scaled_dot_product_attention(keys, values)
        return self.linear(mixed.transpose(1, 2).reshape(1, 1, WIDTH), f"out {i}")

    def next(self, token, at):
        x = self.of["token"].shrink(((token, token + 1), None)) + self.of["position"].shrink(((at, at + 1), None))
        x = x.reshape(1, 1, WIDTH)
        for i in range(LAYERS):
            x = x + self.attention(x.layernorm(), i, at)
            x = x + self.linear(self.linear(x.layernorm(), f"up {i}").gelu(), f"down {i}")
        return (x.layernorm() @ self.of["head"].T).argmax(-1).realize()

    def generate(self):
        """The tokens, and when each was there."""
        token, at = Variable("token", 0, VOCABULARY - 1), Variable("at", 0, CONTEXT - 1)
        tokens, seconds, started = [BEGIN], [], time.monotonic()
        for i in range(TOKENS):
            tokens.append(self.step(token.bind(tokens[i]), at.bind(i)).item())
            seconds.append(time.monotonic() - started)
        return tokens[1:], seconds


class Reference:
    """The same by numpy."""

    def __init__(self, of):
        self.of, self.caches = of, [[] for _ in range(LAYERS)]

    def linear(self, x, name):
        return self.of[name] @ x + self.of[f"{name} bias"]

    def next(self, token, at):
        x = self.of["token"][token].astype(np.float64) + self.of["position"][at]
        for i, cache in enumerate(self.caches):
            q, k, v = self.linear(norm(x), f"qkv {i}").reshape(3, HEADS, WIDTH // HEADS)
            cache.append((k, v))
            keys, values = (np.stack(part, 1) for part in zip(*cache))
            weight = np.exp(np.einsum("hd,hnd->hn", q, keys) * (WIDTH // HEADS) ** -0.5)
            weight /= weight.sum(-1, keepdims=True)
            x = x + self.linear(np.einsum("hn,hnd->hd", weight, values).reshape(WIDTH), f"out {i}")
            up = self.linear(norm(x), f"up {i}")
            gelu = 0.5 * up * (1 + np.tanh((2 / np.pi) ** 0.5 * (up + 0.044715 * up ** 3)))
            x = x + self.linear(gelu, f"down {i}")
        return int((self.of["head"] @ norm(x)).argmax())

    def generate(self):
        tokens = [BEGIN]
        for i in range(TOKENS):
            tokens.append(self.next(tokens[i], i))
        return tokens[1:]


def norm(x):
    x = x - x.mean()
    return x / np.sqrt((x * x).mean() + 1e-5)


def compare(more):
    of = weights()
    got, more["token_seconds"] = Model(of).generate()
    expected = Reference(of).generate()
    if got != expected:
        return f"tokens {got}, not {expected}"
    if len(set(got)) <= TOKENS // 2:
        return f"too few different tokens: {got}"


measured = {}
report("gpt2", lambda: compare(measured), measured)
