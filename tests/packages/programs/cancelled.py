"""Cancels the Slurm job with its worker, whose name is given, and prints the error that its calls return then."""

import ctypes
import subprocess
import sys
import time

hip = ctypes.CDLL("libamdhip64.so")
assert hip.hipDeviceSynchronize() == 0
subprocess.run(["scancel", "--name", sys.argv[1], "--full"])
for _ in range(600):
    error = hip.hipDeviceSynchronize()
    if error:
        print("error", error)
        break
    time.sleep(0.1)
