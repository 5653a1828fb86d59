"""tinygrad with its HIP device: the programs of `tinygrad/`, in the system in a folder that has AMD's libamd_comgr."""

import json
import shutil
import time
from pathlib import Path

import amd_runtime
import worker
from shapes import SHAPES

HERE = Path(__file__).parent
PROGRAMS = ["operations", "train", "gpt"]
# Tokens of the two runs of `gpt2` whose difference is what a token costs.
FEW, MANY = 4, 8


def install(system, clients):
    shutil.copytree(HERE / "tinygrad", system.folder / "programs")
    system.bring(clients / "tinygrad", "site")


def command(system, program, *arguments):
    return ["/usr/bin/python3", system.inside("programs", f"{program}.py"), *arguments]


def environment(system, place, **more):
    comgr = f"{amd_runtime.LIBRARIES}/libamd_comgr.so.3"
    direct = amd_runtime.is_direct(place)
    if direct:
        more["LD_LIBRARY_PATH"] = place[1].folders
    return system.environment(
        # The architecture as tinygrad's own table of matrix instructions has it: it does not know the name with features
        # that HIP gives, gfx942:sramecc+:xnack-.
        PYTHONPATH=system.inside("site"), DEV="HIP::gfx942",
        HIP_PATH=place[1].library if direct else system.inside("libamdhip64.so"), COMGR_PATH=comgr, COMGR_3_PATH=comgr, CC="clang-21", PYTHONDONTWRITEBYTECODE="1", CACHELEVEL="0", **more)


def run(system, place, program, what, mode="process", **more):
    """One program in a process of its own: a result of the table for each line that it prints, then one of the process."""
    statistics = system.folder / f"{program}.{place[0]}.json"
    statistics.unlink(missing_ok=True)
    wanted = environment(system, place, HIPR_STATS_FILE=system.inside(statistics.name), **more)
    started = time.monotonic()
    failure, output, log = system.run(place, command(system, program, what), wanted)
    seconds = time.monotonic() - started
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    counts = worker.statistics(statistics)
    used = amd_runtime.is_direct(place) or counts.get("calls", 0) > 0
    if failure is None and not used and not (what and not lines):
        failure = "the program never called hipr's library"
    results = [{"client": "tinygrad", "mode": program, "worker": place[0], **line} for line in lines]
    whole = {"program": f"{program}.py", "failure": failure, "seconds": seconds, "calls": counts.get("calls"),
             "round_trips": counts.get("round_trips")}
    if failure is None and not lines and not what:
        whole["failure"] = f"no results: {log[-2000:]}"
    return [*results, {"client": "tinygrad", "mode": mode, "worker": place[0], **whole}]


def run_gpt2(system, place, shape, tokens):
    """The model in the shape of GPT-2, which generates tokens."""
    wanted = {"GPT2_SHAPE": ",".join(map(str, SHAPES[shape])), "GPT2_TOKENS": str(tokens)}
    return run(system, place, "gpt2", "", f"{shape}, {tokens} tokens", **wanted)
