"""Where the program and the library of this installation are."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Iterator


def _noted() -> Iterator[Path]:
    """Yields the program's path as the installer has noted it."""
    try:
        files = metadata.files("hipr") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.parts[-2:] == ("bin", "hipr"):
            yield Path(str(file.locate()))


def _folders() -> Iterator[str]:
    """Yields the folders where installers put programs."""
    yield sysconfig.get_path("scripts")
    user = "posix_user"
    if user in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", user)
    # pip install --target, whose note of the files is wrong
    yield str(Path(__file__).parent.parent / "bin")
    yield os.path.dirname(sys.executable)


def program() -> str:
    """Returns the path of the program ``hipr``.

    Raises FileNotFoundError, which says where it was looked for.
    """
    candidates = [*_noted(), *(Path(folder) / "hipr" for folder in _folders())]
    for path in candidates:
        if path.is_file():
            return str(path.resolve())
    looked = "".join(f"\n  {path}" for path in dict.fromkeys(candidates))
    raise FileNotFoundError(f"the program hipr is not where pip installs it; looked for{looked}")


def library() -> str:
    """Returns the path of the ``libamdhip64.so`` that programs are given: that of HIPR_LIBRARY, else that of this installation.

    For what has to be told where the library is, such as tinygrad (HIP_PATH).
    Raises FileNotFoundError.
    """
    named = os.environ.get("HIPR_LIBRARY")
    path = Path(named) if named else Path(program()).parent.parent / "libexec" / "hipr" / "libamdhip64.so"
    if not path.is_file():
        raise FileNotFoundError(f"the library {path} is not there" + (" (HIPR_LIBRARY)" if named else ""))
    return str(path.resolve())
