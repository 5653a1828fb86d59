"""Uses an emulated GPU; a process that it starts and one of `multiprocessing` use it too."""

import multiprocessing
import subprocess
import sys

import hipr

if __name__ == "__main__":
    hipr.use()
    program = "import sys; sys.path.insert(0, sys.argv[1]); import device; print(device.describe('libamdhip64.so.7'))"
    said = subprocess.run([sys.executable, "-c", program, sys.path[0]], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(said)
    from device import describe

    for way in ("spawn", "fork"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            assert pool.apply(describe) == said.strip(), way
