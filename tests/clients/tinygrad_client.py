"""tinygrad with its HIP device: the programs of `tinygrad/`, in the system in a folder that has AMD's libamd_comgr.

The system's C library is newer than this machine's may be, so the programs run inside it (chroot), with `hipr` and its library copied
there."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import worker

HERE = Path(__file__).parent


class System:
    """The system in a folder, with a folder in it for what the programs need, which goes away at the end of a `with` block."""

    PROGRAMS = ["operations", "train", "gpt"]

    def __init__(self, clients, hipr):
        setup = HERE.parent / "toolchain/setup.sh"
        done = subprocess.run([setup, "--check"], stdout=subprocess.PIPE, text=True, check=True)
        self.root = Path(done.stdout.strip())
        self.folder = Path(tempfile.mkdtemp(prefix="hipr-clients-", dir=self.root / "tmp"))
        self.chroot = shutil.which("chroot") or "/usr/sbin/chroot"
        beside = Path(hipr).parent
        # Where `hipr run` looks, too: cargo leaves what others depend on in `deps`.
        libraries = [beside / "deps/libamdhip64.so", beside / "libamdhip64.so"]
        for file in (hipr, next(library for library in libraries if library.exists())):
            shutil.copy2(file, self.folder)
        shutil.copytree(HERE / "tinygrad", self.folder / "programs")
        shutil.copytree(clients / "tinygrad", self.folder / "site")

    def inside(self, *path):
        return "/" + str(self.folder.joinpath(*path).relative_to(self.root))

    def run(self, place, program, what):
        """One program in a process of its own: a result of the table for each line that it prints."""
        statistics = self.folder / f"{program}.{place[0]}.json"
        statistics.unlink(missing_ok=True)
        comgr = "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.3"
        environment = {
            "PATH": "/usr/bin:/bin", "HOME": self.inside(), "LC_ALL": "C.UTF-8", "PYTHONPATH": self.inside("site"),
            # The architecture as tinygrad's own table of matrix instructions has it: it does not know the name with features
            # that HIP gives, gfx942:sramecc+:xnack-.
            "DEV": "HIP::gfx942", "HIP_PATH": self.inside("libamdhip64.so"), "COMGR_PATH": comgr, "COMGR_3_PATH": comgr,
            "CC": "clang-21", "HIPR_STATS_FILE": self.inside(statistics.name), "PYTHONDONTWRITEBYTECODE": "1",
            "CACHELEVEL": "0",
        }
        command = ["/usr/bin/python3", self.inside("programs", f"{program}.py"), what]
        started = time.monotonic()
        failure, output, log = worker.run(self.inside("hipr"), place[1], command, environment, (self.chroot, str(self.root)))
        seconds = time.monotonic() - started
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        counts = worker.statistics(statistics)
        if failure is None and counts.get("calls", 0) == 0:
            failure = "the program never called hipr's library"
        results = [{"client": "tinygrad", "mode": program, "worker": place[0], **line} for line in lines]
        whole = {"program": f"{program}.py", "failure": failure, "seconds": seconds, "calls": counts.get("calls"),
                 "round_trips": counts.get("round_trips")}
        if failure is None and not lines and not what:
            whole["failure"] = f"no results: {log[-2000:]}"
        return [*results, {"client": "tinygrad", "mode": "process", "worker": place[0], **whole}]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
