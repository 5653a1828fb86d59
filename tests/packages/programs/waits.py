"""Uses an emulated GPU, prints the folder with the library, and waits for an interrupt."""

import os
import time

import hipr
from device import describe

hipr.use()
describe()
try:
    print(os.environ["LD_LIBRARY_PATH"].split(":")[0], flush=True)
    time.sleep(300)
except KeyboardInterrupt:
    print("interrupted, and", describe().split(",")[0], "is there")
