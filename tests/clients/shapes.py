"""Shapes of models with random weights. A token waits for the network equally often in both, and computes far less in the first."""

from typing import NamedTuple


class Shape(NamedTuple):
    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int


SHAPES = {"2 layers": Shape(2, 128, 2, 512, 256), "GPT-2 124M": Shape(12, 768, 12, 50257, 1024)}
