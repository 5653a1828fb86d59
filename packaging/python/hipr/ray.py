"""Remote GPUs for tasks of Ray.

    import hipr.ray

    @hipr.ray.remote(gpus=1)
    def train(steps):
        import jax      # and other frameworks, here
        ...

    ray.get(train.remote(100))

A task runs where there is room for it, also on a node without a GPU; its GPUs are those that Ray counts on other nodes (``ray start --num-gpus 8``).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Any, Callable, Sequence

import ray

from ._files import program
from ._use import use

__all__ = ["WorkerLost", "remote"]

# Runs the words until they end or standard input is closed, which it is when the process that has started this one ends, in whatever way; then
# removes the folder that is named first. Ray ends an actor before its owner's process has run its destructors: the client says good-bye meanwhile.
_WORKER_SCRIPT = 'exec 4<&0; "$@" 4<&- & held=$!; (exec 2>/dev/null; read -r _ <&4; sleep 5; kill "$held") & wait "$held"; rm -rf "$0"'
_INVITATION = "invitation: "
# The actor with this process's worker.
_actor: Any = None
# How long a worker that does not answer is asked whether it is there.
_ASKED_S = 10


class WorkerLost(RuntimeError):
    """The task's GPUs are gone, with the node or the process that had them; Ray runs the task again, with others."""


class _Worker:
    """An actor on a node with GPUs: a worker that serves those that Ray has given to it."""

    def __init__(self, gpus: int, options: Sequence[str]) -> None:
        folder = tempfile.mkdtemp(prefix="hipr-ray-")
        words = [
            program(), "worker", "--listen", "0.0.0.0:0", f"--authorized={folder}/authorized", f"--key={folder}/key",
            f"--invite={ray.util.get_node_ip_address()}", *options,
        ]
        # Where there is no HIP runtime, as many are emulated.
        environment = {"HIPR_LOG": "warn", "HIPR_SIM_DEVICES": str(gpus), **os.environ}
        self._process = subprocess.Popen(
            ["sh", "-c", _WORKER_SCRIPT, folder, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def invitation(self) -> str:
        """Returns the address of the worker with an invitation for one client."""
        for line in self._process.stdout:
            if line.startswith(_INVITATION):
                return line[len(_INVITATION):].strip()
        raise RuntimeError(f"the worker ended with exit code {self._process.wait()}; its node's log says why")

    def is_there(self) -> bool:
        return self._process.poll() is None


def _run(function: Callable[..., Any], gpus: int, options: Sequence[str], args: tuple, kwargs: dict) -> Any:
    """Runs in the task's process, which is no other task's."""
    # Until the process ends, and with it the session: then Ray ends the actor, whose owner is gone.
    global _actor
    _actor = worker = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=0)(_Worker).remote(gpus, options)
    try:
        use(ray.get(worker.invitation.remote()))
        return function(*args, **kwargs)
    except ray.exceptions.RayActorError as why:
        raise WorkerLost(f"the node with the task's GPUs is gone: {why}") from None
    except BaseException as why:
        if _is_lost(worker):
            raise WorkerLost(f"the worker with the task's GPUs is gone; the task had seen: {why!r}") from why
        raise


def _is_lost(worker: Any) -> bool:
    try:
        return not ray.get(worker.is_there.remote(), timeout=_ASKED_S)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return True


class _Task:
    """What :func:`remote` makes of a function."""

    def __init__(self, function: Callable[..., Any], gpus: int, worker_options: Sequence[str], options: dict[str, Any]) -> None:
        self._function, self._gpus, self._worker_options = function, gpus, tuple(worker_options)
        # A process has one worker, so it has one task; who loses it is run again.
        self._task = ray.remote(max_calls=1, retry_exceptions=[WorkerLost], **options)(_run)

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Submits the task; returns what ``ray.get`` takes."""
        return self._task.remote(self._function, self._gpus, self._worker_options, args, kwargs)


def remote(gpus: int = 1, worker_options: Sequence[str] = (), **options: Any) -> Callable[[Callable[..., Any]], _Task]:
    """Makes a function a task of Ray that has remote GPUs.

    ``gpus`` is how many, all of one node. ``worker_options`` are options of ``hipr worker``. ``options`` are those of ``ray.remote``, such as
    ``num_cpus`` and ``max_retries``: where GPUs are lost with their node, the task is run again, so it has to be one that may run twice.
    """
    if gpus < 1:
        raise ValueError(f"gpus={gpus}: a task has one at least")
    return lambda function: _Task(function, gpus, worker_options, options)
