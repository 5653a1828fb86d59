// Devices, contexts, limits, flags, the texts of errors.
#include "../answers.h"

using namespace answers;

#if HIP_VERSION_MAJOR < 7
using Version = int;
#else
using Version = unsigned;
#endif

int main(int count, char** arguments) {
    begin(count, arguments);
    Results& r = results;
    hipFree(nullptr);

    each(FUNCTION(hipInit), nothing, any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipGetDeviceCount), nothing, any<int*>({OF(&r.number), OF(nullptr)}));
    each(FUNCTION(hipGetDevice), nothing, any<int*>({OF(&r.number), OF(nullptr)}));
    each(FUNCTION(hipSetDevice), nothing, any<int>({OF(0), OF(1), OF(-1), OF(99)}));
    each(FUNCTION(hipDeviceGet), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDriverGetVersion), nothing, any<int*>({OF(nullptr)}));
    each(FUNCTION(hipRuntimeGetVersion), nothing, any<int*>({OF(nullptr)}));
    each(FUNCTION(hipDeviceGetName), nothing, any<char*>({OF(r.text), OF(nullptr)}), any<int>({OF(31), OF(0), OF(1), OF(4), OF(-1)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceGetPCIBusId), nothing, any<char*>({OF(r.text), OF(nullptr)}), any<int>({OF(31), OF(0), OF(1), OF(13), OF(12), OF(-1)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceGetByPCIBusId), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<const char*>({OF("ffff:ff:1f.0"), OF("text"), OF(""), OF(nullptr)}));
    static hipUUID uuid;
    each(FUNCTION(hipDeviceGetUuid), nothing, any<hipUUID*>({OF(&uuid), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceTotalMem), [] { results.size = 0; }, any<size_t*>({OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceComputeCapability), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int*>({OF(&r.other), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceGetAttribute), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<hipDeviceAttribute_t>({OF(hipDeviceAttributeWarpSize), {"-1", hipDeviceAttribute_t(-1)}, {"9000", hipDeviceAttribute_t(9000)}, {"20000", hipDeviceAttribute_t(20000)}}), any<int>({OF(0), OF(1), OF(-1)}));
    static hipDeviceProp_t properties;
    each(FUNCTION(hipGetDeviceProperties), nothing, any<hipDeviceProp_t*>({OF(&properties), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipChooseDevice), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<const hipDeviceProp_t*>({OF(&properties), OF(nullptr)}));
    static int devices[] = {0, 0, 1};
    each(FUNCTION(hipSetValidDevices), nothing, any<int*>({OF(devices), OF(devices + 2), OF(nullptr)}), any<int>({OF(1), OF(0), OF(2), OF(-1)}));
    each(FUNCTION(hipDeviceGetP2PAttribute), nothing, any<int*>({OF(&r.number), OF(nullptr)}),
         any<hipDeviceP2PAttr>({OF(hipDevP2PAttrAccessSupported), OF(hipDevP2PAttrPerformanceRank), OF(hipDevP2PAttrNativeAtomicSupported), OF(hipDevP2PAttrHipArrayAccessSupported), {"9", hipDeviceP2PAttr(9)}}), any<int>({OF(0), OF(1), OF(-1)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceCanAccessPeer), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDeviceEnablePeerAccess), nothing, any<int>({OF(0), OF(1), OF(-1)}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipDeviceDisablePeerAccess), nothing, any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipExtGetLinkTypeAndHopCount), nothing, any<int>({OF(0), OF(1), OF(-1)}), any<int>({OF(0), OF(1), OF(-1)}), any<uint32_t*>({OF(&r.flags), OF(nullptr)}), any<uint32_t*>({{"&r.number", reinterpret_cast<uint32_t*>(&r.number)}, OF(nullptr)}));

    each(FUNCTION(hipDeviceSetCacheConfig), nothing, any<hipFuncCache_t>({OF(hipFuncCachePreferNone), OF(hipFuncCachePreferShared), OF(hipFuncCachePreferL1), OF(hipFuncCachePreferEqual), {"9", hipFuncCache_t(9)}, {"-1", hipFuncCache_t(-1)}}));
    each(FUNCTION(hipDeviceGetCacheConfig), nothing, any<hipFuncCache_t*>({{"&r.number", reinterpret_cast<hipFuncCache_t*>(&r.number)}, OF(nullptr)}));
    each(FUNCTION(hipDeviceSetSharedMemConfig), nothing, any<hipSharedMemConfig>({OF(hipSharedMemBankSizeDefault), OF(hipSharedMemBankSizeFourByte), OF(hipSharedMemBankSizeEightByte), {"9", hipSharedMemConfig(9)}, {"-1", hipSharedMemConfig(-1)}}));
    each(FUNCTION(hipDeviceGetSharedMemConfig), nothing, any<hipSharedMemConfig*>({{"&r.number", reinterpret_cast<hipSharedMemConfig*>(&r.number)}, OF(nullptr)}));
    auto limits = any<hipLimit_t>({OF(hipLimitStackSize), OF(hipLimitPrintfFifoSize), OF(hipLimitMallocHeapSize), {"3", hipLimit_t(3)}, {"4", hipLimit_t(4)}, {"-1", hipLimit_t(-1)}});
    each(FUNCTION(hipDeviceGetLimit), nothing, any<size_t*>({OF(&r.size), OF(nullptr)}), limits);
    each("hipDeviceSetLimit", [](hipLimit_t limit, size_t to) {
        const hipError_t error = hipDeviceSetLimit(limit, to);
        size_t now = 0;
        if (error == hipSuccess && hipDeviceGetLimit(&now, limit) == hipSuccess) note("now", now);
        return line += " error=", error;
    }, nothing, limits, any<size_t>({OF(4096), OF(0), OF(1), OF(8192), OF(16384), OF(32768), OF(65536), OF(131039), OF(131040), OF(131055), OF(131056), OF(131057), OF(size_t(1) << 30), OF(size_t(1) << 33), OF(size_t(1) << 34), OF(size_t(3) << 36), OF(size_t(1) << 40)}));
    each(FUNCTION(hipSetDeviceFlags), nothing, any<unsigned>({OF(hipDeviceScheduleAuto), OF(hipDeviceScheduleSpin), OF(hipDeviceScheduleYield), OF(hipDeviceScheduleBlockingSync), OF(hipDeviceMapHost), OF(hipDeviceLmemResizeToMax), OF(3), OF(6), OF(7), OF(0x20), OF(0x80000000), OF(hipDeviceScheduleAuto)}));
    each(FUNCTION(hipGetDeviceFlags), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}));
    each(FUNCTION(hipDeviceGetStreamPriorityRange), nothing, any<int*>({OF(&r.number), OF(nullptr)}), any<int*>({OF(&r.other), OF(nullptr)}));

    each(FUNCTION(hipDevicePrimaryCtxGetState), nothing, any<int>({OF(0), OF(1), OF(-1)}), any<unsigned*>({OF(&r.flags), OF(nullptr)}), any<int*>({OF(&r.number), OF(nullptr)}));
    each(FUNCTION(hipDevicePrimaryCtxRetain), nothing, any<hipCtx_t*>({OF(&r.context), OF(nullptr)}), any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDevicePrimaryCtxRelease), nothing, any<int>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipDevicePrimaryCtxSetFlags), nothing, any<int>({OF(0), OF(1), OF(-1)}), any<unsigned>({OF(0), OF(1), OF(99)}));
    each(FUNCTION(hipCtxGetCurrent), nothing, any<hipCtx_t*>({OF(&r.context), OF(nullptr)}));
    static hipCtx_t context;
    hipDevicePrimaryCtxRetain(&context, 0);
    each(FUNCTION(hipCtxSetCurrent), nothing, any<hipCtx_t>({OF(context), OF(nullptr), OF(context)}));
    each(FUNCTION(hipCtxGetDevice), nothing, any<hipDevice_t*>({OF(&r.number), OF(nullptr)}));
    each(FUNCTION(hipCtxGetApiVersion), nothing, any<hipCtx_t>({OF(context), OF(nullptr)}), any<Version*>({{"&r.number", reinterpret_cast<Version*>(&r.number)}, OF(nullptr)}));
    each(FUNCTION(hipCtxGetFlags), nothing, any<unsigned*>({OF(&r.flags), OF(nullptr)}));
    each(FUNCTION(hipCtxGetCacheConfig), nothing, any<hipFuncCache_t*>({{"&r.number", reinterpret_cast<hipFuncCache_t*>(&r.number)}, OF(nullptr)}));
    each(FUNCTION(hipCtxSetCacheConfig), nothing, any<hipFuncCache_t>({OF(hipFuncCachePreferNone), {"9", hipFuncCache_t(9)}}));
    each(FUNCTION(hipCtxGetSharedMemConfig), nothing, any<hipSharedMemConfig*>({{"&r.number", reinterpret_cast<hipSharedMemConfig*>(&r.number)}, OF(nullptr)}));
    each(FUNCTION(hipCtxSetSharedMemConfig), nothing, any<hipSharedMemConfig>({OF(hipSharedMemBankSizeDefault), {"9", hipSharedMemConfig(9)}}));
    each(FUNCTION(hipCtxSynchronize), nothing);
    each(FUNCTION(hipCtxEnablePeerAccess), nothing, any<hipCtx_t>({OF(context), OF(nullptr)}), any<unsigned>({OF(0), OF(1)}));
    each(FUNCTION(hipCtxDisablePeerAccess), nothing, any<hipCtx_t>({OF(context), OF(nullptr)}));
    each(FUNCTION(hipCtxCreate), [] { hipCtxDestroy(results.context); }, any<hipCtx_t*>({OF(&r.context), OF(nullptr)}), any<unsigned>({OF(0), OF(1), OF(99)}), any<hipDevice_t>({OF(0), OF(1), OF(-1)}));
    each(FUNCTION(hipCtxPushCurrent), [] { hipCtxPopCurrent(nullptr); }, any<hipCtx_t>({OF(context), OF(nullptr)}));
    each("hipCtxPopCurrent", [](hipCtx_t* to) { hipCtxSetCurrent(context); return hipCtxPopCurrent(to); }, nothing, any<hipCtx_t*>({OF(&r.context)}));
    each(FUNCTION(hipCtxDestroy), nothing, any<hipCtx_t>({OF(nullptr)}));
    hipSetDevice(0);

    // Every attribute that has a value of the device's kind, not of this machine's or release's.
    for (int attribute = 0; attribute < 110; ++attribute) {
        const bool is_ones_own = attribute == hipDeviceAttributePciBusId || attribute == hipDeviceAttributePciDomainID || attribute == hipDeviceAttributeTotalGlobalMem || attribute == hipDeviceAttributeUnused1 || attribute == hipDeviceAttributeUnused2;
        if (is_ones_own) continue;
        one("hipDeviceGetAttribute(&r.number, " + std::to_string(attribute) + ", 0)", [&] { return hipDeviceGetAttribute(&r.number, hipDeviceAttribute_t(attribute), 0); }, nothing);
    }
    for (int attribute = hipDeviceAttributeAmdSpecificBegin; attribute < int(hipDeviceAttributeAmdSpecificBegin) + 24; ++attribute) {
        one("hipDeviceGetAttribute(&r.number, " + std::to_string(attribute) + ", 0)", [&] { return hipDeviceGetAttribute(&r.number, hipDeviceAttribute_t(attribute), 0); }, nothing);
    }
    // Codes that a release has, and some that none has.
    for (int error : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 17, 21, 35, 52, 53, 98, 100, 101, 200, 201, 202, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 300, 301, 302, 303, 304, 400, 401, 500, 600, 700, 701, 702, 704, 705, 708, 709, 710, 712, 713, 719, 720, 800, 801, 900, 901, 902, 903, 904, 905, 906, 907, 908, 910, 911, 912, 999, 1000, 1052, 1053, 1054}) {
        const char* name = hipGetErrorName(hipError_t(error));
        one("texts of error " + std::to_string(error), [&] { return hipSuccess; }, [&] {
            note("name", name);
            note("text", hipGetErrorString(hipError_t(error)));
            const char* text = nullptr;
            note("drv", int(hipDrvGetErrorName(hipError_t(error), &text)));
            if (text != nullptr) note("name", text);
            note("drv", int(hipDrvGetErrorString(hipError_t(error), &text)));
            if (text != nullptr) note("text", text);
        });
    }
    ONE(hipDrvGetErrorName(hipErrorInvalidValue, nullptr), nothing);
    ONE(hipDrvGetErrorString(hipErrorInvalidValue, nullptr), nothing);
    ONE(hipDeviceReset(), nothing);
    return 0;
}
