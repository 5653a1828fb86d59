"""tinygrad adds with its HIP device. It opens the library by a path, which it has to be told."""

import os

import hipr

hipr.use()
os.environ["HIP_PATH"] = hipr.library()
# The architecture as tinygrad's own table of matrix instructions has it.
os.environ["DEV"] = "HIP::gfx942"

import numpy as np
from tinygrad import Device, Tensor

assert Device.DEFAULT == "HIP", Device.DEFAULT
random = np.random.default_rng(1)
left, right = (random.standard_normal((37, 53)).astype(np.float32) for _ in range(2))
np.testing.assert_allclose((Tensor(left) + Tensor(right)).numpy(), left + right, rtol=1e-6)
print("the sum is right")
