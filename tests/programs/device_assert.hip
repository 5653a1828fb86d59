// assert in kernels: one that holds does nothing; one that does not says what, where and in which function on standard error, and ends the use of
// the device: with release 6.4 of AMD's runtime the process, else each later call returns hipErrorLaunchFailure.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <csignal>

__global__ void holds(const int* values, int limit) {
    assert(values[threadIdx.x] < limit && "all values are below the limit");
}

static int fail_on_purpose() {
    int* values = nullptr;
    if (hipMalloc(&values, 256) != hipSuccess || hipMemset(values, 0, 256) != hipSuccess) return 3;
    holds<<<1, 64>>>(values, 0);
    hipError_t error = hipDeviceSynchronize();
    // Where release 6.4 is a worker's, the process that it ends is the session's.
    return error == hipErrorLaunchFailure || error == hipErrorAssert || error == hipErrorContextIsDestroyed ? 0 : 4;
}

// Executes this program anew, to fail, before this process has used HIP: a child of a process that has cannot. Returns how it ends, and appends
// what it writes on standard error.
static int run_failing(std::string& text) {
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    int ends[2];
    if (len <= 0 || pipe(ends) != 0) return -1;
    self[len] = 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        execl(self, self, "fail-on-purpose", static_cast<char*>(nullptr));
        _exit(5);
    }
    close(ends[1]);
    char bytes[4096];
    for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(got));
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "fail-on-purpose") == 0) return fail_on_purpose();
    std::string text;
    int status = run_failing(text);
    check::begin("device_assert");
    EXPECT((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    for (const char* part : {"device_assert.hip:", "holds(const int", "Device-side assertion `values[threadIdx.x] < limit && \"all values are below the limit\"' failed."})
        if (text.find(part) == std::string::npos) check::fail("not said: %s\n%s", part, text.c_str());

    int* values = nullptr;
    HIP_CHECK(hipMalloc(&values, 256));
    HIP_CHECK(hipMemset(values, 0, 256));
    holds<<<1, 64>>>(values, 1);
    HIP_CHECK(hipDeviceSynchronize());
    HIP_CHECK(hipFree(values));
    return check::finish();
}
