"""Puts hipr's library below this process."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from typing import NamedTuple

from ._files import library, program

# What a program started by `hipr run` is given: the worker's address and the folder that shows the library under its names. Then it lives until
# its standard input ends, which is when this process has ended: until then there are the folder and, if no worker was named, the worker.
_HOLDER = r'printf "%s\n%s\n" "$HIPR_WORKER" "${LD_LIBRARY_PATH%%:*}"; exec cat >/dev/null'

# Modules that load HIP's library, sooner or later.
_FRAMEWORKS = ("cupy", "hip", "iree.runtime", "jax", "jaxlib", "onnxruntime", "rocm.bindings.hip", "tensorflow", "tinygrad", "torch", "triton")

_NAME = "libamdhip64.so"
_lock = threading.Lock()
_used: _Used | None = None


class Error(RuntimeError):
    """The worker cannot be used; the text says why and what to do."""


class _Used(NamedTuple):
    """What this process uses."""

    asked: str | None
    address: str
    library: ctypes.CDLL


def use(worker: str | None = None) -> None:
    """Lets what this process imports from now on use a worker's GPUs, and likewise the programs that it starts.

    ``worker`` is its address as for ``hipr run --worker``, also one with an invitation, which is turned into keys, or several with commas
    between them. Without it the worker
    is that of HIPR_WORKER; where that is not set, an emulated GPU is started, which lives as long as this process.

    Raises Error if HIP's library is loaded already, if the process uses another worker, or if the worker does not answer.
    """
    global _used
    with _lock:
        if _used is not None:
            if worker not in (None, _used.asked, _used.address):
                raise Error(f"this process uses the worker {_used.address}, and a process has one; {worker} needs another process")
            return
        if _is_below(worker):
            return
        asked = worker or os.environ.get("HIPR_WORKER") or None
        address, folder, held = _hold(asked)
        try:
            if asked:
                _ask(address)
            loaded = ctypes.CDLL(os.path.join(folder, _NAME), mode=ctypes.RTLD_LOCAL)
        except Exception as why:
            os.close(held)
            raise why if isinstance(why, Error) else Error(f"cannot load {library()}: {why}") from None
        os.environ["HIPR_WORKER"] = address
        rest = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = f"{folder}:{rest}" if rest else folder
        _used = _Used(asked, address, loaded)


def _is_below(worker: str | None) -> bool:
    """Returns whether hipr's library is below this process already, as under ``hipr run``, with that worker.

    Raises Error if another library is, or another worker.
    """
    loaded = _loaded()
    if not loaded:
        return False
    ours = library()
    others = [path for path in loaded if not _same(path, ours)]
    if others:
        modules = [name for name in _FRAMEWORKS if name in sys.modules]
        imported = f" (imported so far: {', '.join(modules)})" if modules else ""
        raise Error(
            f"hipr.use() comes too late: {others[0]} is loaded already{imported}. Call it before the first import of a framework, "
            "or start the program with: hipr run -- python ..."
        )
    there = os.environ.get("HIPR_WORKER")
    if worker not in (None, there):
        raise Error(
            f"hipr.use({worker!r}) comes too late: hipr's library is loaded already, for "
            f"{'the worker ' + there if there else 'the default worker'} (HIPR_WORKER). Call it before the first import of a framework"
        )
    return True


def _loaded() -> list[str]:
    """Returns the paths of the libraries of this process that have HIP's name."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.rstrip("\n").split(maxsplit=5)[5] for line in maps if _NAME in line}
    return sorted(path for path in paths if os.path.basename(path).startswith(_NAME))


def _same(left: str, right: str) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:
        return left == right


def _hold(worker: str | None) -> tuple[str, str, int]:
    """Starts what holds the folder with the library, and the worker if none is named.

    Returns the worker's address, the folder, and the descriptor with whose last copy they go: it is closed where this process ends.

    Raises Error.
    """
    to_holder, ours = os.pipe()
    answer, from_holder = os.pipe()
    named = ["--worker", worker] if worker else []
    # In a session of its own, so that the terminal's Ctrl-C is this process's.
    os.posix_spawn(
        program(),
        ["hipr", "run", *named, "--", "sh", "-c", _HOLDER],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, to_holder, 0),
            (os.POSIX_SPAWN_DUP2, from_holder, 1),
        ],
        setsid=True,
    )
    os.close(to_holder)
    os.close(from_holder)
    with open(answer, encoding="utf-8", errors="surrogateescape") as lines:
        address, folder = lines.readline().rstrip("\n"), lines.readline().rstrip("\n")
    if not folder:
        os.close(ours)
        raise Error(f"cannot use {'the worker ' + worker if worker else 'an emulated GPU'}; hipr has said why on standard error")
    return address, folder, ours


def _ask(address: str) -> None:
    """Asks the worker for its devices.

    Raises Error if it does not answer.
    """
    asked = subprocess.run(
        [program(), "info", "--worker", address], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    said = asked.stderr.strip()
    if asked.returncode != 0:
        raise Error(said.removeprefix("hipr: "))
    if said:
        print(said, file=sys.stderr)
