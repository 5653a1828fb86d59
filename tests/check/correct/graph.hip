// check: correct
#include "seed.h"

__global__ void add(int *values) {
    values[threadIdx.x] += 1;
}
int main() {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    (void)hipStreamCreate(&stream);
    int *values = device(numbers(64));
    (void)hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal);
    for (int i = 0; i < 3; ++i) add<<<1, 64, 0, stream>>>(values);
    (void)hipStreamEndCapture(stream, &graph);
    (void)hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
    for (int i = 0; i < 2; ++i) (void)hipGraphLaunch(exec, stream);
    (void)hipStreamSynchronize(stream);
    return pass(host(values, 64)[0] == 6);
}
