"""Writes models in GGUF, llama.cpp's file format: the shape of GPT-2 with random weights, always the same for a shape."""

import struct
import zlib

import numpy as np

# Types of values and tokens, as the format numbers them.
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
ALIGNMENT = 32
# Tokens that are never the most likely one: unknown, begin, end, and one for each byte.
SPECIAL = 3 + 256


def vocabulary(size):
    """Tokens with their types. A generated text names its tokens: it is `;300;412`."""
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    return tokens + [(f";{i}", NORMAL) for i in range(SPECIAL, size)]


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def plain(kind, value):
    return text(value) if kind == STRING else struct.pack({U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}[kind], value)


def entry(key, kind, value):
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(plain(kind, one) for one in value)
    return text(key) + struct.pack("<I", kind) + plain(kind, value)


def entries(shape):
    tokens, kinds = zip(*vocabulary(shape.vocabulary))
    return [
        entry("general.architecture", STRING, "gpt2"),
        entry("gpt2.context_length", U32, shape.context),
        entry("gpt2.embedding_length", U32, shape.width),
        entry("gpt2.feed_forward_length", U32, 4 * shape.width),
        entry("gpt2.block_count", U32, shape.layers),
        entry("gpt2.attention.head_count", U32, shape.heads),
        entry("gpt2.attention.layer_norm_epsilon", FLOAT, 1e-5),
        entry("tokenizer.ggml.model", STRING, "llama"),
        entry("tokenizer.ggml.tokens", STRING, list(tokens)),
        entry("tokenizer.ggml.scores", FLOAT, [0.0] * shape.vocabulary),
        entry("tokenizer.ggml.token_type", I32, list(kinds)),
        entry("tokenizer.ggml.unknown_token_id", U32, 0),
        entry("tokenizer.ggml.bos_token_id", U32, 1),
        entry("tokenizer.ggml.eos_token_id", U32, 2),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
        entry("tokenizer.ggml.add_space_prefix", BOOL, False),
    ]


def tensors(shape):
    """Names, dimensions and the scale of the random numbers, or None for ones."""
    width = shape.width
    yield "token_embd.weight", (shape.vocabulary, width), 1
    yield "position_embd.weight", (shape.context, width), 1
    for i in range(shape.layers):
        for name, rows, columns in [("attn_qkv", 3 * width, width), ("attn_output", width, width), ("ffn_up", 4 * width, width),
                                    ("ffn_down", width, 4 * width)]:
            yield f"blk.{i}.{name}.weight", (rows, columns), columns ** -0.5
            yield f"blk.{i}.{name}.bias", (rows,), 0.02
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{name}.weight", (width,), None
            yield f"blk.{i}.{name}.bias", (width,), 0.02
    yield "output_norm.weight", (width,), None
    yield "output_norm.bias", (width,), 0.02
    # Not the embedding, as GPT-2 has it: with random weights every token would be followed by itself.
    yield "output.weight", (shape.vocabulary, width), width ** -0.5


def draw(name, dimensions, scale):
    if scale is None:
        return np.ones(dimensions, np.float32)
    values = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(dimensions, np.float32) * np.float32(scale)
    if name == "output.weight":
        values[:SPECIAL] = 0
    return values


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def write(file, shape):
    all, keys = list(tensors(shape)), entries(shape)
    head, offset = b"GGUF" + struct.pack("<IQQ", 3, len(all), len(keys)) + b"".join(keys), 0
    for name, dimensions, _ in all:
        # The innermost dimension first; type 0 is f32.
        head += text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *reversed(dimensions), 0, offset)
        offset += -(-4 * int(np.prod(dimensions)) // ALIGNMENT) * ALIGNMENT
    with open(file, "wb") as out:
        out.write(padded(head))
        for name, dimensions, scale in all:
            out.write(padded(draw(name, dimensions, scale).tobytes()))
