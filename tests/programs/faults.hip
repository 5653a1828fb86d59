// Kernels that touch what is not theirs: the error comes with the next wait, once, names a code, and the device can be used again.
//
// With the argument "lasting" that is not asked for: a real driver ends the process, or its use of the device. Each fault is then made by a
// process of its own, which must be told of it or be aborted, and which nobody else notices.
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>

#include "check.h"

extern char** environ;

extern "C" __global__ void write_at(unsigned long long address, int value) { *reinterpret_cast<int*>(address + threadIdx.x * 4ull) = value; }

extern "C" __global__ void read_at(unsigned long long address, int* out) { out[threadIdx.x] = *reinterpret_cast<const int*>(address + threadIdx.x * 4ull); }

extern "C" __global__ void write_one_lane(int* data, unsigned long long bad, int lane) {
    int* p = static_cast<int>(threadIdx.x) == lane ? reinterpret_cast<int*>(bad) : data + threadIdx.x;
    *p = 9;
}

extern "C" __global__ void trap_if(int* data, int value) {
    if (data[threadIdx.x] == value) __builtin_trap();
    data[threadIdx.x] = 7;
}

extern "C" __global__ void fill_with(int* data, int value) { data[threadIdx.x] = value; }

// After a fault: no error is left, and kernels run.
static void still_works(DeviceArray<int>& data, int value) {
    HIP_CHECK(hipDeviceSynchronize());
    fill_with<<<1, 64>>>(data.get(), value);
    HIP_CHECK(hipGetLastError());
    check::equal("after a fault", data.download(), std::vector<int>(64, value));
}

static const unsigned long long kWild = 0x123456789000ull;

static bool is_lasting = false;

static hipError_t launched() {
    hipError_t error = hipGetLastError();
    if (error != hipSuccess && is_lasting) return error; // the kernel has already failed
    HIP_CHECK(error); // the launch itself is fine
    return hipDeviceSynchronize();
}

// Each returns what the program is told.
struct Fault {
    const char* name;
    bool is_address; // else any error
    hipError_t (*make)(DeviceArray<int>& data);
};

static const Fault kFaults[] = {
    {"write", true, [](DeviceArray<int>&) {
         write_at<<<1, 64>>>(kWild, 1);
         return launched();
     }},
    {"read", true, [](DeviceArray<int>& data) {
         read_at<<<1, 64>>>(kWild, data.get());
         return launched();
     }},
    {"null", true, [](DeviceArray<int>&) {
         write_at<<<1, 64>>>(0, 1);
         return launched();
     }},
    {"far past the end of an allocation, by one lane", true, [](DeviceArray<int>& data) {
         write_one_lane<<<1, 64>>>(data.get(), reinterpret_cast<unsigned long long>(data.get()) + (1ull << 36), 17);
         return launched();
     }},
    {"freed", true, [](DeviceArray<int>&) {
         int* freed = nullptr;
         HIP_CHECK(hipMalloc(reinterpret_cast<void**>(&freed), 8 << 20));
         HIP_CHECK(hipFree(freed));
         write_at<<<1, 64>>>(reinterpret_cast<unsigned long long>(freed) + (4 << 20), 1);
         return launched();
     }},
    {"on a stream", true, [](DeviceArray<int>&) {
         hipStream_t stream;
         HIP_CHECK(hipStreamCreate(&stream));
         write_at<<<1, 64, 0, stream>>>(kWild, 1);
         hipError_t error = hipStreamSynchronize(stream);
         (void)hipStreamDestroy(stream);
         return error;
     }},
    {"seen by a copy", true, [](DeviceArray<int>& data) {
         std::vector<int> host(64);
         write_at<<<1, 64>>>(kWild, 1);
         return hipMemcpy(host.data(), data.get(), 64 * sizeof(int), hipMemcpyDeviceToHost);
     }},
    {"trap", false, [](DeviceArray<int>& data) {
         trap_if<<<1, 64>>>(data.get(), 16);
         return launched();
     }},
};

// Makes one fault in another process, and looks how that ends.
static void make_elsewhere(const char* number, const char* name) {
    char program[] = "faults", alone[] = "alone";
    char* arguments[] = {program, alone, const_cast<char*>(number), nullptr};
    pid_t child = 0;
    int status = 0;
    EXPECT(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0);
    EXPECT(waitpid(child, &status, 0) == child);
    const bool was_told = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const bool was_aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (!was_told && !was_aborted) check::fail("%s: the process ended with status %d", name, status);
}

int main(int argc, char** argv) {
    check::begin("faults");
    const std::string how = argc > 1 ? argv[1] : "";
    DeviceArray<int> data(std::vector<int>(64, 16));
    if (how == "alone" && argc > 2) {
        is_lasting = true;
        // Without the end of the library, which may wait for what does not come any more.
        std::_Exit(kFaults[std::atoi(argv[2]) % std::size(kFaults)].make(data) == hipSuccess ? 1 : 0);
    }
    int value = 10;
    for (const Fault& fault : kFaults) {
        if (how == "lasting") {
            make_elsewhere(std::to_string(&fault - kFaults).c_str(), fault.name);
        } else {
            if (!fault.is_address) fill_with<<<1, 64>>>(data.get(), 16);
            hipError_t error = fault.make(data);
            if (fault.is_address ? error != hipErrorIllegalAddress : error == hipSuccess)
                check::fail("%s: %s", fault.name, hipGetErrorName(error));
            (void)hipGetLastError();
        }
        still_works(data, value++);
    }
    return check::finish();
}
