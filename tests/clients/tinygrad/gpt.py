"""A transformer in the shape of GPT-2, with random weights, that continues a text by eight tokens on both devices: the same eight."""

import numpy as np
from both import DEVICES, difference, draw, report, tensor
from tinygrad import TinyJit

LAYERS, WIDTH, HEADS, VOCABULARY, CONTEXT = 2, 128, 4, 256, 32
PROMPT, TOKENS = [17, 3, 200, 41, 99], 8


class Block:
    def __init__(self, name, device):
        weight = lambda part, rows, columns: tensor(draw(f"{name} {part}", rows, columns) * rows ** -0.5, device)
        self.qkv, self.out = weight("qkv", WIDTH, 3 * WIDTH), weight("out", WIDTH, WIDTH)
        self.up, self.down = weight("up", WIDTH, 4 * WIDTH), weight("down", 4 * WIDTH, WIDTH)

    def __call__(self, x):
        q, k, v = (part.reshape(1, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in (x.layernorm() @ self.qkv).chunk(3, dim=-1))
        mixed = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(1, CONTEXT, WIDTH)
        x = x + mixed @ self.out
        return x + (x.layernorm() @ self.up).gelu() @ self.down


class Transformer:
    def __init__(self, device):
        self.device = device
        self.token = tensor(draw("token", VOCABULARY, WIDTH), device)
        self.position = tensor(draw("position", CONTEXT, WIDTH) * 0.1, device)
        # Not the transposed embedding, as GPT-2 has it: with random weights every token would be followed by itself.
        self.head = tensor(draw("head", WIDTH, VOCABULARY) * WIDTH ** -0.5, device)
        self.blocks = [Block(f"block {i}", device) for i in range(LAYERS)]

    def logits(self, tokens):
        x = self.token[tokens].reshape(1, CONTEXT, WIDTH) + self.position
        for block in self.blocks:
            x = block(x)
        return (x.layernorm() @ self.head).realize()

    def generate(self):
        tokens, scores = list(PROMPT), []
        logits = TinyJit(self.logits)
        for _ in range(TOKENS):
            padded = np.array(tokens + [0] * (CONTEXT - len(tokens)), np.int32)
            last = logits(tensor(padded, self.device)).numpy()[0, len(tokens) - 1]
            scores.append(last)
            tokens.append(int(last.argmax()))
        return tokens[len(PROMPT):], np.stack(scores)


def compare():
    (got, got_scores), (expected, expected_scores) = (Transformer(device).generate() for device in DEVICES)
    if got != expected:
        return f"tokens {got}, not {expected}"
    if len(set(got)) == 1:
        return f"only one token: {got}"
    return difference(got_scores, expected_scores, 1e-3)


report("gpt", compare)
