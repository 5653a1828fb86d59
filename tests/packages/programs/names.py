"""Uses a worker; says what its devices are, and that all names of HIP's library are one library."""

import os
import sys

import hipr
from device import address, describe

try:
    hipr.use(*sys.argv[1:])
except hipr.Error as why:
    print(f"hipr.Error: {why}")
    sys.exit(3)
names = ["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"]
addresses = {address(name) for name in names}
assert len(addresses) == 1, addresses
print(describe("libamdhip64.so"))
print("worker", os.environ["HIPR_WORKER"])
# Again, it does nothing.
hipr.use(*sys.argv[1:])
hipr.use()
