// Which library carries the calls of a program out. AMD's own runtime answers a few of them otherwise than hipr's library does, and some of
// its releases do not do what HIP promises: docs/differences.md lists what and why.
#pragma once
#include <dlfcn.h>

#include "check.h"

namespace check {

// The major release of AMD's runtime in this process, or 0 where hipr's library carries the calls out: only AMD's has the HSA library below it.
inline int amds_release() {
    static const int release = [] {
        if (dlsym(RTLD_DEFAULT, "hsa_init") == nullptr) return 0;
        int version = 0;
        hip(hipRuntimeGetVersion(&version), "hipRuntimeGetVersion", __FILE__, __LINE__);
        return version / 10000000;
    }();
    return release;
}

} // namespace check
