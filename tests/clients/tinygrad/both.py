"""What the tinygrad programs have in common: the same computation on tinygrad's HIP device and on its CPU device."""

import json
import sys
import time
import zlib

import numpy as np
from tinygrad import Tensor

DEVICES = ("HIP", "CPU")
TOLERANCE = 1e-4


def draw(seed, *shape, dtype=np.float32, low=-10, high=10):
    """Random numbers that depend on the seed, a text, and on nothing else: standard normal, or integers."""
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(low, high, shape).astype(dtype)


def difference(got, expected, tolerance=TOLERANCE):
    """None, or how two results differ: floating point by more than the tolerance, everything else at all."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape}, not {expected.dtype}{expected.shape}"
    if expected.dtype.kind != "f":
        return None if np.array_equal(got, expected) else f"{np.count_nonzero(got != expected)} of {got.size} elements differ"
    if not np.isfinite(expected).all():
        return "the CPU's result is not finite"
    worst = np.abs(got - expected) / np.maximum(1, np.abs(expected))
    return None if (worst <= tolerance).all() else f"differs by up to {np.nanmax(worst):.3g}, more than {tolerance:g}"


def report(program, work, more={}):
    """Runs `work`, which gives None or what is wrong, and prints its line: an object of JSON, with what else `work` has measured. A
    part of a name on the command line chooses the programs."""
    if any(part not in program for part in sys.argv[1:]):
        return
    started = time.monotonic()
    try:
        failure = work()
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"[:2000]
    line = {"program": program, "failure": failure, "seconds": time.monotonic() - started, **more}
    print(json.dumps(line), flush=True)


def tensor(values, device):
    return Tensor(values, device=device).realize()
