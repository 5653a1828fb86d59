"""AMD's hip-python launches a kernel of a code object."""

import ctypes
import sys

import hipr

hipr.use()

from hip import hip


def check(result):
    error, *rest = result
    assert error == hip.hipError_t.hipSuccess, error
    return rest[0] if len(rest) == 1 else rest


LEN = 1024
BYTES = LEN * 4
floats = ctypes.c_float * LEN
x, y = floats(*range(LEN)), floats(*([2.0] * LEN))
module = check(hip.hipModuleLoadData(open(sys.argv[1], "rb").read()))
kernel = check(hip.hipModuleGetFunction(module, b"saxpy"))
device_x, device_y = check(hip.hipMalloc(BYTES)), check(hip.hipMalloc(BYTES))
for device, host in ((device_x, x), (device_y, y)):
    check(hip.hipMemcpy(device, host, BYTES, hip.hipMemcpyKind.hipMemcpyHostToDevice))
arguments = (ctypes.c_float(2.5), device_x, device_y, ctypes.c_uint(LEN))
check(hip.hipModuleLaunchKernel(kernel, LEN // 256, 1, 1, 256, 1, 1, sharedMemBytes=0, stream=None, kernelParams=None, extra=arguments))
check(hip.hipMemcpy(y, device_y, BYTES, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
assert list(y) == [2.5 * index + 2.0 for index in range(LEN)]
print("saxpy is right")
