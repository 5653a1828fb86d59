"""The system in a folder that `tests/toolchain/setup.sh` makes, for programs that need a newer C library than this machine may have,
or libraries of AMD's: they run inside it (chroot), with `hipr` and its library copied there."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import worker

HERE = Path(__file__).parent


class System:
    """The system, with a folder in it for what programs need, which goes away at the end of a `with` block."""

    def __init__(self, hipr):
        setup = HERE.parent / "toolchain/setup.sh"
        done = subprocess.run([setup, "--check"], stdout=subprocess.PIPE, text=True, check=True)
        self.root = Path(done.stdout.strip())
        self.folder = Path(tempfile.mkdtemp(prefix="hipr-clients-", dir=self.root / "tmp"))
        chroot = shutil.which("chroot") or "/usr/sbin/chroot"
        self.enter = (chroot, str(self.root))
        beside = Path(hipr).parent
        # Where `hipr run` looks, too: cargo leaves what others depend on in `deps`.
        libraries = [[beside / "deps" / name, beside / name] for name in ("libamdhip64.so", "libhsa_runtime64.so")]
        for file in (hipr, *(next(file for file in files if file.exists()) for files in libraries)):
            shutil.copy2(file, self.folder)

    def inside(self, *path):
        """The path of a file of the folder as programs in the system have it."""
        return "/" + str(self.folder.joinpath(*path).relative_to(self.root))

    def bring(self, source, name):
        """Puts a folder of this machine into the system's: as links if both are in one file system."""
        def bring_file(source, target):
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)
        shutil.copytree(source, self.folder / name, symlinks=True, copy_function=bring_file)

    def environment(self, **more):
        return {"PATH": "/usr/bin:/bin", "HOME": self.inside(), "LC_ALL": "C.UTF-8", **more}

    def run(self, place, command, environment, options=(), is_done=None):
        """Runs a program under `hipr`, with an embedded worker, for which the options are, or at a place. `is_done` is as for
        `worker.run`, which says what this gives."""
        return worker.run(self.inside("hipr"), place[1], command, environment, self.enter, options, is_done)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
