"""The `hipr` program as the clients' tests use it: a worker of its own, and `hipr run` around a program."""

import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path

# Options of `hipr run` for every program; `--lazy-sync` may be among them.
RUN_OPTIONS = []
# What every program finds in its environment.
ENVIRONMENT = {}
# A program that takes longer is stuck.
PROGRAM_SECONDS_MAX = 600
# A program that waits for input and says nothing for so long has nothing more to say.
QUIET_SECONDS_MAX = 120


class Worker:
    """`hipr worker`, in a process of its own, for as long as the `with` block lasts. `prefix` is what starts `hipr` itself."""

    def __init__(self, hipr, *options, device="sim", prefix=(), environment=None):
        self.process = subprocess.Popen(
            [*prefix, hipr, "worker", "--listen", "127.0.0.1:0", "--device", device, *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
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

    def words(self):
        return reached(self.address)


class Check:
    """`hipr check`, with the emulated GPU in its own process. It ends a kernel that takes longer than a program may."""

    def __init__(self, *options):
        self.options = options

    def words(self):
        return ["check", "--sim-kernel-timeout", str(PROGRAM_SECONDS_MAX), *self.options]


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

    def words(self):
        return reached(self.address)

    def counts(self):
        """Ends the proxy. Gives flights, messages and bytes."""
        output, _ = self.process.communicate()
        return json.loads(output)


def reached(address):
    """The words after `hipr` that run a program with the worker at an address."""
    return ["run", *RUN_OPTIONS, "--worker", address]


def run(hipr, place, program, environment, prefix=(), options=(), is_done=None):
    """Runs a program under `hipr`: as the place's words say, with an embedded worker, for which the options are, where it is None.
    `prefix` is what starts `hipr` itself. Gives what `execute` gives."""
    words = place.words() if place else ["run", *RUN_OPTIONS, *options]
    return execute([*prefix, hipr, *words, "--", *program], environment, is_done)


def execute(command, environment, is_done=None):
    """Runs a program. Its input ends when `is_done` holds for its output so far; without that it has no input. Gives (None or what went
    wrong, standard output, standard error)."""
    with tempfile.TemporaryFile() as log:
        stdin = subprocess.PIPE if is_done else subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=log, env={**environment, **ENVIRONMENT})
        try:
            output = listen(process, is_done)
        except BaseException as ended:
            process.kill()
            if not isinstance(ended, TimeoutError):
                raise
            return str(ended), "", ""
        finally:
            process.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    failure = None
    if process.returncode != 0:
        failure = f"exit code {process.returncode}: {text.strip()[-2000:]}"
    return failure, output, text


def listen(process, is_done):
    """Reads a program's output to its end."""
    started, output = time.monotonic(), b""
    while True:
        left = started + PROGRAM_SECONDS_MAX - time.monotonic()
        wait = min(left, QUIET_SECONDS_MAX) if process.stdin else left
        readable, _, _ = select.select([process.stdout], [], [], max(wait, 0))
        if not readable and left <= QUIET_SECONDS_MAX:
            raise TimeoutError(f"not done after {PROGRAM_SECONDS_MAX} s")
        piece = os.read(process.stdout.fileno(), 1 << 16) if readable else b""
        output += piece
        text = output.decode(errors="replace")
        if process.stdin and (not piece or is_done(text)):
            # A program that says nothing more, and not what was expected, ends as well.
            process.stdin.close()
            process.stdin = None
        if readable and not piece:
            return text


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
