"""IREE's runtime multiplies matrices with its HIP driver, by a module compiled of tests/clients/iree/matmul_f32.mlir."""

import sys

import hipr

hipr.use()

import numpy as np
from iree import runtime

module = runtime.load_vm_flatbuffer_file(sys.argv[1], driver="hip")
random = np.random.default_rng(1)
left, right = (random.standard_normal(shape).astype(np.float32) for shape in ((96, 112), (112, 80)))
product = module.main(left, right).to_host()
np.testing.assert_allclose(product, left @ right, rtol=1e-4, atol=1e-4)
print("the product is right")
