"""HIP by ctypes: what the test programs ask."""

import ctypes


def describe(name="libamdhip64.so.6"):
    """Asks the library of a name for its devices."""
    hip = ctypes.CDLL(name)
    count = ctypes.c_int()
    error = hip.hipGetDeviceCount(ctypes.byref(count))
    assert error == 0, f"hipGetDeviceCount: {error}"
    text = ctypes.create_string_buffer(256)
    assert hip.hipDeviceGetName(text, len(text), 0) == 0
    return f"{count.value} device, {text.value.decode()}"


def address(name):
    """Returns where a function of the library of a name is."""
    return ctypes.cast(ctypes.CDLL(name).hipGetDeviceCount, ctypes.c_void_p).value
