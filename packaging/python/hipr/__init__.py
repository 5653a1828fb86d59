"""Runs HIP programs on a GPU that is somewhere else.

    import hipr

    hipr.use("hipr://gpu-machine:18515")    # before a framework is imported

From then on what this process imports, and what it starts, finds hipr's libamdhip64.so under all its names.
"""

from ._files import library, program
from ._use import Error, use

__all__ = ["Error", "library", "program", "use"]
