// What the library says about the device, asked in every way; the answers must agree.
#include <dlfcn.h>

#include "check.h"

static int attribute(hipDeviceAttribute_t a) {
    int value = -1;
    HIP_CHECK(hipDeviceGetAttribute(&value, a, 0));
    return value;
}

int main() {
    check::begin("device_info");
    HIP_CHECK(hipInit(0));
    int count = 0, current = -1;
    HIP_CHECK(hipGetDeviceCount(&count));
    HIP_CHECK(hipGetDevice(&current));
    EXPECT(count >= 1 && current == 0);
    HIP_CHECK(hipSetDevice(0));

    hipDeviceProp_t p;
    std::memset(&p, 0xff, sizeof p);
    HIP_CHECK(hipGetDeviceProperties(&p, 0));
    EXPECT(std::strlen(p.name) > 0 && std::strlen(p.name) < sizeof p.name);
    EXPECT(std::string(p.gcnArchName).rfind("gfx942", 0) == 0);
    EXPECT(p.major == 9 && p.minor == 4);
    EXPECT(p.warpSize == 64 && p.maxThreadsPerBlock == 1024 && p.sharedMemPerBlock == 65536);
    EXPECT(p.maxThreadsDim[0] == 1024 && p.maxThreadsDim[1] == 1024 && p.maxThreadsDim[2] == 1024);
    EXPECT(p.maxGridSize[0] > 65535 && p.maxGridSize[1] >= 65535 && p.maxGridSize[2] >= 65535);
    EXPECT(p.multiProcessorCount > 0 && p.clockRate > 0 && p.memoryClockRate > 0 && p.memoryBusWidth > 0 && p.l2CacheSize > 0);
    EXPECT(p.totalGlobalMem > (size_t{1} << 28) && p.regsPerBlock > 0 && p.maxThreadsPerMultiProcessor >= 1024);

    EXPECT(attribute(hipDeviceAttributeWarpSize) == p.warpSize);
    EXPECT(attribute(hipDeviceAttributeMaxThreadsPerBlock) == p.maxThreadsPerBlock);
    EXPECT(attribute(hipDeviceAttributeMaxBlockDimX) == p.maxThreadsDim[0]);
    EXPECT(attribute(hipDeviceAttributeMaxBlockDimY) == p.maxThreadsDim[1]);
    EXPECT(attribute(hipDeviceAttributeMaxBlockDimZ) == p.maxThreadsDim[2]);
    EXPECT(attribute(hipDeviceAttributeMaxGridDimX) == p.maxGridSize[0]);
    EXPECT(attribute(hipDeviceAttributeMaxSharedMemoryPerBlock) == static_cast<int>(p.sharedMemPerBlock));
    EXPECT(attribute(hipDeviceAttributeMultiprocessorCount) == p.multiProcessorCount);
    EXPECT(attribute(hipDeviceAttributeClockRate) == p.clockRate);
    EXPECT(attribute(hipDeviceAttributeMemoryBusWidth) == p.memoryBusWidth);
    EXPECT(attribute(hipDeviceAttributeComputeCapabilityMajor) == p.major);
    EXPECT(attribute(hipDeviceAttributeComputeCapabilityMinor) == p.minor);
    EXPECT(attribute(hipDeviceAttributeL2CacheSize) == p.l2CacheSize);
    EXPECT(attribute(hipDeviceAttributeMaxThreadsPerMultiProcessor) == p.maxThreadsPerMultiProcessor);
    EXPECT(attribute(hipDeviceAttributePciBusId) == p.pciBusID);
    EXPECT(attribute(hipDeviceAttributeIntegrated) == p.integrated);

    hipDevice_t device = -1;
    char name[256] = {}, bus[64] = {};
    size_t total = 0, free = 0, total_now = 0;
    int by_bus = -1, major = 0, minor = 0;
    HIP_CHECK(hipDeviceGet(&device, 0));
    HIP_CHECK(hipDeviceGetName(name, sizeof name, device));
    EXPECT(std::string(name) == p.name);
    HIP_CHECK(hipDeviceTotalMem(&total, device));
    EXPECT(total == p.totalGlobalMem);
    HIP_CHECK(hipDeviceComputeCapability(&major, &minor, device));
    EXPECT(major == p.major && minor == p.minor);
    HIP_CHECK(hipDeviceGetPCIBusId(bus, sizeof bus, device));
    HIP_CHECK(hipDeviceGetByPCIBusId(&by_bus, bus));
    EXPECT(by_bus == 0);
    hipUUID uuid = {};
    HIP_CHECK(hipDeviceGetUuid(&uuid, device));
    EXPECT(std::any_of(uuid.bytes, uuid.bytes + 16, [](char c) { return c != 0; }));

    // Memory that is taken is missing from what is free, and is free again afterwards. Others may use the device too: one quiet moment is enough.
    bool missing = false, back = false;
    for (int attempt = 0; attempt < 50 && !(missing && back); attempt++) {
        size_t less = 0, again = 0;
        HIP_CHECK(hipMemGetInfo(&free, &total_now));
        EXPECT(total_now == total && free <= total);
        {
            DeviceArray<char> taken(64 << 20);
            HIP_CHECK(hipMemGetInfo(&less, &total_now));
        }
        HIP_CHECK(hipMemGetInfo(&again, &total_now));
        missing = less + (64 << 20) <= free;
        back = again == free;
    }
    EXPECT(missing && back);

    int driver = 0, runtime = 0, can = -1;
    HIP_CHECK(hipDriverGetVersion(&driver));
    HIP_CHECK(hipRuntimeGetVersion(&runtime));
    EXPECT(driver >= 60000000 && runtime >= 60000000);
    HIP_CHECK(hipDeviceCanAccessPeer(&can, 0, 0));
    EXPECT(can == 0); // itself is no peer
    size_t limit = 0;
    HIP_CHECK(hipDeviceGetLimit(&limit, hipLimitMallocHeapSize));
    EXPECT(limit > 0);
    unsigned flags = 99;
    HIP_CHECK(hipGetDeviceFlags(&flags));
    HIP_CHECK(hipDeviceSynchronize());

    // Programs compiled for HIP 5 call the old function, whose structure is smaller: 792 bytes, name first, then the memory size.
    using OldProperties = hipError_t (*)(void*, int);
    OldProperties old_properties = reinterpret_cast<OldProperties>(dlsym(RTLD_DEFAULT, "hipGetDeviceProperties"));
    EXPECT(old_properties != nullptr);
    if (old_properties) {
        std::vector<unsigned char> old(1024, 0xaa);
        HIP_CHECK(old_properties(old.data(), 0));
        EXPECT(std::strcmp(reinterpret_cast<char*>(old.data()), p.name) == 0);
        size_t old_total;
        std::memcpy(&old_total, &old[256], sizeof old_total);
        EXPECT(old_total == p.totalGlobalMem);
        EXPECT(std::all_of(old.begin() + 792, old.end(), [](unsigned char c) { return c == 0xaa; }));
    }

    // A function by its name.
    using Malloc = hipError_t (*)(void**, size_t);
    Malloc by_name = nullptr;
    hipDriverProcAddressQueryResult found = {};
    HIP_CHECK(hipGetProcAddress("hipMalloc", reinterpret_cast<void**>(&by_name), 600, 0, &found));
    EXPECT(by_name != nullptr && found == HIP_GET_PROC_ADDRESS_SUCCESS);
    if (by_name) {
        void* pointer = nullptr;
        HIP_CHECK(by_name(&pointer, 256));
        EXPECT(pointer != nullptr);
        HIP_CHECK(hipFree(pointer));
    }
    return check::finish();
}
