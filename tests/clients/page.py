"""The page docs/clients.md: what ran, and how long it took, from the results of a run."""

import os
import platform
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent

PAGE = """# Real clients

Programs that others wrote, unmodified, over hipr: through its `libamdhip64.so`, the HIPR protocol, a worker, and the emulated
MI300X (for llama.cpp MI210) that runs the machine code which the client's own compiler made.

| client | what it is | how it uses HIP |
|---|---|---|
| [IREE](https://iree.dev) {iree} | a compiler and runtime for machine-learning programs | its HIP driver: command buffers as streams or as graphs, allocations in stream order or not, events, host callbacks, modules |
| [tinygrad](https://tinygrad.org) {tinygrad} | a deep-learning framework in Python | its HIP device, by ctypes: kernels that it writes and libamd_comgr compiles, the module API, events |
| [llama.cpp](https://github.com/ggml-org/llama.cpp) {llama} (Debian) | runs language models | its HIP backend, with the kernels that Debian's package has: registered kernels, graphs, copies to and from pageable and pinned memory |

```sh
tests/clients/setup.sh                                           # installs them from PyPI and Debian, once, into a folder of their own
cargo build --release
tests/clients/run.py --hipr target/release/hipr                  # everything
tests/clients/run.py --hipr target/release/hipr --quick --jobs 2 # what CI runs
tests/clients/run.py --hipr target/release/hipr --doc docs/clients.md
```

A program of your own: `hipr run -- iree-run-module --device=hip …`; tinygrad asks for a path: `DEV=HIP
HIP_PATH=/path/to/libamdhip64.so`, and for libamd_comgr of ROCm 6 or later (`COMGR_PATH`, `COMGR_3_PATH`). IREE programs are compiled with
`iree-compile --iree-hal-target-device=hip --iree-rocm-target=gfx942`.

## Results

Made {how} on {date} ({cores} cores, {machine}). {passed} of {total} runs passed. Each result was compared with that of the
client's own CPU backend for the same random inputs: floating point within 1e-4, absolutely for results up to 1 and relatively beyond
(1e-3 where inputs are f16 or bf16 or a step follows another many times; 1e-9 for f64), everything else exactly. Times say what to
expect, not what is possible: they depend on what else the machine does.

### IREE: {iree_programs} programs

The programs are `tests/clients/iree/*.mlir`, compiled for gfx942 with IREE's default options. Times are seconds of the whole process
`hipr run -- iree-run-module`, with the worker inside it (first number; `-` where that was not run) and with one in a process of its
own (second). Calls and round trips are those of the mode that is named first. The error is the largest of all runs.

Programs that are not run as graphs are those whose command buffers IREE records while it runs them; as graphs it refuses them: "HIP
graph command buffers capture device pointers during recording and cannot use uncommitted async transient buffers".

{iree_table}

### tinygrad: {tinygrad_programs} programs

The programs are `tests/clients/tinygrad/*.py`. Times are seconds, for the HIP device and the CPU device together, compiling included,
with a worker in `hipr run` and with one in a process of its own. `DEV=HIP::gfx942` names the architecture: tinygrad 0.14.0 does not find its
matrix instructions for the name that HIP gives a real MI300X, `gfx942:sramecc+:xnack-`.

{tinygrad_table}

The processes as a whole:

{process_table}

### llama.cpp

`llama-completion -ngl 99 --temp 0` with a model of two layers in the shape of GPT-2 with random weights (`tests/clients/gguf.py`): its
tokens are those of llama.cpp's own CPU backend. The GPU is the emulated MI210, gfx90a: Debian's packages have no code for gfx942.

{llama_table}
"""


def versions():
    lines = [*HERE.joinpath("requirements.txt").read_text().splitlines(),
             *HERE.joinpath("requirements-tinygrad.txt").read_text().splitlines()]
    return dict(line.split("==") for line in lines if "==" in line)


def llama_version(clients):
    """The version of the package, without Debian's epoch and revision."""
    of = dict(line.split() for line in (clients / "llama/versions").read_text().splitlines())
    return of["llama.cpp-tools"].split(":")[-1].split("+")[0].split("-")[0]


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def cell(results):
    """The times of a program in one mode, by place."""
    parts = []
    for place in ("embedded", "separate"):
        found = next((result for result in results if result["worker"] == place), None)
        if not found:
            parts.append("-")
        else:
            parts.append("**fails**" if found["failure"] else f"{found['seconds']:.2f}")
    return ", ".join(parts)


def by_program(results):
    programs = {}
    for result in results:
        programs.setdefault(result["program"], []).append(result)
    return sorted(programs.items())


def iree_table(results, modes):
    rows = []
    for name, some in by_program(results):
        errors = [result["error"] for result in some if result["error"] is not None]
        first = next((result for result in some if result["mode"] == modes[0]), some[0])
        rows.append([name, *(cell([result for result in some if result["mode"] == mode]) for mode in modes),
                     first["calls"], first["round_trips"], f"{max(errors):.1e}" if errors and max(errors) > 0 else "0"])
    return table(["program", *modes, "calls", "round trips", "error"], rows)


def write(file, results, how, clients):
    iree = [result for result in results if result["client"] == "IREE"]
    modes = list(dict.fromkeys(result["mode"] for result in iree))
    tinygrad = [result for result in results if result["client"] == "tinygrad"]
    processes = [result for result in tinygrad if result["program"].endswith(".py")]
    tiny = [result for result in tinygrad if result not in processes]
    llama_rows = [[result["mode"], result["worker"], f"{result['seconds']:.1f}", result["calls"], result["round_trips"]]
                  for result in results if result["client"] == "llama.cpp"]
    process_rows = [[result["program"], result["worker"], f"{result['seconds']:.1f}", result["calls"], result["round_trips"]]
                    for result in processes]
    Path(file).write_text(PAGE.format(
        how=how, iree=versions()["iree-base-runtime"], tinygrad=versions()["tinygrad"],
        llama=llama_version(clients), date=date.today().isoformat(),
        cores=os.cpu_count(), machine=processor(), total=len(results),
        passed=sum(not result["failure"] for result in results),
        iree_programs=len(by_program(iree)), iree_table=iree_table(iree, modes),
        tinygrad_programs=len(by_program(tiny)),
        tinygrad_table=table(["program", "seconds"], [[name, cell(some)] for name, some in by_program(tiny)]),
        process_table=table(["process", "worker", "seconds", "calls", "round trips"], process_rows),
        llama_table=table(["run", "worker", "seconds", "calls", "round trips"], llama_rows)))


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()
