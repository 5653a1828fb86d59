"""IREE: programs in StableHLO (`iree/*.mlir`), compiled for gfx942 and for this machine's CPU, run on both with the same inputs.

A program's comments may say how its inputs are drawn; without that they are standard normal or, for integers, -100 to 99:

    // %index: 0..50        integers from 0 to 49
    // %weight: scale 0.1   standard normal times 0.1
    // %x: rows 19          the dimension that the program leaves open
    // tolerance: 1e-3      what a result may differ by, absolutely and relatively
    // modes: streams       only with command buffers as streams

As graphs IREE 3.13 refuses programs whose command buffers it records while it runs them: "HIP graph command buffers capture device
pointers during recording and cannot use uncommitted async transient buffers".
"""

import os
import re
import shutil
import subprocess
import time
import zlib
from pathlib import Path

import numpy as np

import amd_runtime
import worker

PROGRAMS = Path(__file__).parent / "iree"
TOOL = "iree-run-module"
# The ways in which the HIP driver can be told to work: name and flags.
MODES = {
    f"{buffers}, {allocations}": [f"--hip_use_streams={streams}", f"--hip_async_allocations={asynchronous}"]
    for buffers, streams in (("streams", "true"), ("graphs", "false"))
    for allocations, asynchronous in (("async", "true"), ("sync", "false"))
}
TARGETS = {
    "hip": ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"],
    "local-task": ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
                   "--iree-llvmcpu-target-cpu=generic"],
}
DTYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64}
TOLERANCES = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}


class Program:
    """One file of `iree/`, its inputs and the results that the CPU gives. With a `system` it runs in there."""

    def __init__(self, source, folder, tools, system=None):
        self.name, self.source, self.folder, self.tools = source.stem, source, folder / source.stem, tools
        self.system = system
        text = source.read_text()
        self.tolerance = next((float(t) for t in re.findall(r"^// tolerance: (\S+)", text, re.M)), None)
        self.hints = dict(re.findall(r"^// %(\w+): (.*)$", text, re.M))
        signature = re.search(r"@main\((.*?)\)\s*->\s*(.*?)\s*\{$", text, re.S | re.M)
        self.parameters = re.findall(r"%(\w+): tensor<(.*?)>", signature[1])
        only = next(iter(re.findall(r"^// modes: (\w+)", text, re.M)), "")
        self.modes = [mode for mode in MODES if mode.startswith(only)]
        self.failure = None
        self.results = len(re.findall("tensor<", signature[2]))

    def draw(self, name, type):
        *shape, element = type.split("x")
        dtype = np.dtype(DTYPES[element])
        hint = self.hints.get(name, "")
        rows = re.fullmatch(r"rows (\d+)", hint)
        shape = [int(rows[1]) if size == "?" else int(size) for size in shape]
        random = np.random.default_rng(zlib.crc32(f"{self.name} {name}".encode()))
        if dtype.kind == "f":
            scale = re.fullmatch(r"scale (\S+)", hint)
            return (random.standard_normal(shape) * (float(scale[1]) if scale else 1)).astype(dtype)
        bounds = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", hint)
        low, high = (int(bounds[1]), int(bounds[2])) if bounds else (-100, 100)
        return random.integers(low, high, shape, dtype)

    def prepare(self):
        """Compiles, draws the inputs, and computes the CPU's results."""
        try:
            self.build()
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"

    def build(self):
        self.folder.mkdir()
        for target, flags in TARGETS.items():
            command = [self.tools / "iree-compile", "--iree-input-demote-f64-to-f32=false", *flags, self.source, "-o",
                       self.folder / f"{target}.vmfb"]
            self.check(subprocess.run(command, capture_output=True, text=True), f"iree-compile for {target}")
        for name, type in self.parameters:
            np.save(self.folder / f"{name}.npy", self.draw(name, type))
        self.check(subprocess.run(self.command("local-task", "expected"), capture_output=True, text=True), "local-task")
        self.expected = self.outputs("expected")

    def check(self, done, what):
        if done.returncode != 0:
            raise RuntimeError(f"{what}: {done.stderr.strip()[-2000:]}")

    def outputs(self, run):
        return [np.load(self.folder / f"{run}.{i}.npy") for i in range(self.results)]

    def command(self, device, run):
        return self.words(self.tools / TOOL, self.folder, device, run)

    def words(self, tool, folder, device, run):
        return [
            tool, f"--device={device}", f"--module={folder}/{device}.vmfb", "--function=main",
            *(f"--input=@{folder}/{name}.npy" for name, _ in self.parameters),
            *(f"--output=@{folder}/{run}.{i}.npy" for i in range(self.results)),
        ]

    def run(self, hipr, place, mode):
        """One run on the device `hip`: a result of the table."""
        run = f"{mode}.{place[0]}".replace(" ", "").replace(",", "-")
        statistics = self.folder / f"{run}.json"
        started = time.monotonic()
        failure = self.failure
        if failure is None and self.system:
            failure = self.run_inside(place, run, mode, statistics)
        elif failure is None:
            environment = {**os.environ, "HIPR_STATS_FILE": str(statistics)}
            failure, _, _ = worker.run(hipr, place[1], [*self.command("hip", run), *MODES[mode]], environment)
        seconds = time.monotonic() - started
        counts = worker.statistics(statistics)
        if failure is None and not amd_runtime.is_direct(place) and counts.get("calls", 0) == 0:
            failure = "the program never called hipr's library"
        error = None
        if failure is None:
            failure, error = self.compare(self.outputs(run))
        return {"client": "IREE", "program": self.name, "mode": mode, "worker": place[0], "failure": failure, "seconds": seconds,
                "error": error, "calls": counts.get("calls"), "round_trips": counts.get("round_trips")}

    def run_inside(self, place, run, mode, statistics):
        """One run in the system. Gives None or what went wrong."""
        inside = lambda path: self.system.inside(*path.relative_to(self.system.folder).parts)
        environment = self.system.environment(HIPR_STATS_FILE=inside(statistics))
        if amd_runtime.is_direct(place):
            environment["LD_LIBRARY_PATH"] = place[1].folders
        command = self.words(self.system.inside(TOOL), inside(self.folder), "hip", run)
        failure, _, _ = self.system.run(place, [*command, *MODES[mode]], environment)
        return failure

    def compare(self, outputs):
        """What is wrong with the outputs, and the largest difference of any element: absolute, or relative where that is less."""
        largest = 0.0
        for i, (got, expected) in enumerate(zip(outputs, self.expected, strict=True)):
            if got.shape != expected.shape or got.dtype != expected.dtype:
                return f"result {i} is {got.dtype}{got.shape}, not {expected.dtype}{expected.shape}", None
            if expected.dtype.kind != "f":
                if not np.array_equal(got, expected):
                    return f"result {i}: {np.count_nonzero(got != expected)} of {got.size} integers differ", None
                continue
            if not np.isfinite(expected).all():
                return f"result {i}: the CPU's result is not finite", None
            tolerance = self.tolerance or TOLERANCES[expected.dtype]
            difference = np.abs(got - expected) / np.maximum(1, np.abs(expected))
            if not (difference <= tolerance).all():
                return f"result {i} differs by up to {np.nanmax(difference):.3g}, more than {tolerance:g}", None
            largest = max(largest, float(difference.max(initial=0)))
        return None, largest


def programs(clients, folder, system=None):
    """All programs, with a folder for what they need. With a `system`, in which the folder is, they run in there."""
    if system:
        [tool] = clients.glob(f"iree/lib/python3*/site-packages/iree/_runtime_libs/{TOOL}")
        shutil.copy2(tool, system.folder)
    return [Program(source, folder, clients / "iree/bin", system) for source in sorted(PROGRAMS.glob("*.mlir"))]
