// check: correct
#include "program.h"

__global__ void write_all(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void add_one(int* data) { data[threadIdx.x] += 1; }

int main() {
    int* data = raw<int>(64);
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    if (hipStreamCreate(&stream) != hipSuccess) return 2;
    if (hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) != hipSuccess) return 2;
    write_all<<<1, 64, 0, stream>>>(data);
    add_one<<<1, 64, 0, stream>>>(data);
    if (hipStreamEndCapture(stream, &graph) != hipSuccess) return 2;
    if (hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0) != hipSuccess) return 2;
    if (hipGraphLaunch(exec, stream) != hipSuccess || hipGraphLaunch(exec, stream) != hipSuccess) return 2;
    return finish(data);
}
