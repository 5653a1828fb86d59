// assert in kernels: one that holds does nothing; one that does not says what, where and in which function on standard error, and ends the use of
// the device: with release 6.4 of AMD's runtime the process, else each later call returns hipErrorLaunchFailure.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cassert>

__global__ void holds(const int* values, int limit) {
    assert(values[threadIdx.x] < limit && "all values are below the limit");
}

static int fail_on_purpose() {
    int* values = nullptr;
    if (hipMalloc(&values, 256) != hipSuccess || hipMemset(values, 0, 256) != hipSuccess) return 3;
    holds<<<1, 64>>>(values, 0);
    hipError_t error = hipDeviceSynchronize();
    return error == hipErrorLaunchFailure || error == hipErrorAssert ? 0 : 4;
}

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "fail-on-purpose") == 0) return fail_on_purpose();
    check::begin("device_assert");
    int* values = nullptr;
    HIP_CHECK(hipMalloc(&values, 256));
    HIP_CHECK(hipMemset(values, 0, 256));
    holds<<<1, 64>>>(values, 1);
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipFree(values));

    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    EXPECT(len > 0);
    self[len > 0 ? len : 0] = 0;
    std::string command = "'" + std::string(self) + "' fail-on-purpose 2>&1", text;
    FILE* child = popen(command.c_str(), "r");
    EXPECT(child != nullptr);
    if (child == nullptr) return check::finish();
    for (int c; (c = std::fgetc(child)) != EOF;) text += static_cast<char>(c);
    int status = pclose(child);
    bool aborted = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 128 + 6);
    EXPECT(aborted || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    for (const char* part : {"device_assert.hip:", "holds(const int", "Device-side assertion `values[threadIdx.x] < limit && \"all values are below the limit\"' failed."})
        if (text.find(part) == std::string::npos) check::fail("not said: %s\n%s", part, text.c_str());
    return check::finish();
}
