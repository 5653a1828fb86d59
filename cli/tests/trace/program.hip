// What `hipr trace` is tried with. The first argument says how the program goes on after its work.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add_one(int *values) { values[threadIdx.x] += 1; }

static int work(int looks) {
    int *values, result = 0;
    if (hipMalloc(&values, 64 * sizeof(int)) != hipSuccess || hipMemset(values, 0, 64 * sizeof(int)) != hipSuccess) return 1;
    for (int i = 0; i < looks; i++) {
        add_one<<<1, 64>>>(values);
        if (hipMemcpy(&result, values, sizeof(int), hipMemcpyDeviceToHost) != hipSuccess) return 1; // each looks at a result
    }
    (void)hipMemset(nullptr, 0, 4); // an error
    return hipFree(values) == hipSuccess && result == looks ? 0 : 1;
}

int main(int, char **arguments) {
    const char *how = arguments[1] ? arguments[1] : "";
    if (!strcmp(how, "nothing")) return 0;
    if (!strcmp(how, "fork")) {
        if (work(3)) return 1;
        pid_t child = fork();
        if (child == 0) exit(work(5));
        int status = 1;
        return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
    }
    if (!strcmp(how, "long")) {
        for (int i = 0; i < 40; i++) {
            if (work(1)) return 1;
            usleep(100000);
        }
        return 0;
    }
    if (work(10)) return 1;
    if (!strcmp(how, "crash")) {
        usleep(500000); // what was noted is written
        abort();
    }
    puts("done");
}
