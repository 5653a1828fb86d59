"""The `hipr` program as the clients' tests use it: a worker of its own, and `hipr run` around a program."""

import json
import subprocess
import tempfile
from pathlib import Path

# A program that takes longer is stuck.
PROGRAM_SECONDS_MAX = 600


class Worker:
    """`hipr worker` with an emulated GPU, in a process of its own, for as long as the `with` block lasts."""

    def __init__(self, hipr, *options):
        self.process = subprocess.Popen(
            [hipr, "worker", "--listen", "127.0.0.1:0", "--device", "sim", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"no worker: {line!r}")
        self.address = line.removeprefix("listening on ").strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def lives(self):
        return self.process.poll() is None


class Proxy:
    """A proxy in front of a worker that counts what passes, for as long as the `with` block lasts."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"no proxy: {line!r}")
        self.address = line.removeprefix("listening on ").strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def counts(self):
        """Ends the proxy. Gives flights, messages and bytes."""
        output, _ = self.process.communicate()
        return json.loads(output)


def run(hipr, worker, program, environment, prefix=(), options=()):
    """Runs a program under `hipr run`: with an embedded worker, for which the options are, where `worker` is None. `prefix` is what
    starts `hipr` itself. Gives (None or what went wrong, standard output, standard error)."""
    command = [*prefix, hipr, "run", *(["--worker", worker.address] if worker else options), "--", *program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PROGRAM_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return f"not done after {PROGRAM_SECONDS_MAX} s", "", {}
    failure = None
    if done.returncode != 0:
        failure = f"exit code {done.returncode}: {done.stderr.strip()[-2000:]}"
    return failure, done.stdout, done.stderr


def statistics(file):
    """Sums what `HIPR_STATS_FILE` has of a program's processes."""
    total = {}
    if Path(file).exists():
        for line in Path(file).read_text().splitlines():
            for name, count in json.loads(line).items():
                total[name] = total.get(name, 0) + count
    return total


def scratch():
    """A folder that goes away at the end of a `with` block."""
    return tempfile.TemporaryDirectory(prefix="hipr-clients-")
