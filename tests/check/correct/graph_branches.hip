// check: correct
#include "seed.h"

__global__ void add(int *values, int more) {
    values[threadIdx.x] += more;
}
int main() {
    hipStream_t one, two;
    hipEvent_t fork, join;
    hipGraph_t graph;
    hipGraphExec_t exec;
    (void)hipStreamCreate(&one);
    (void)hipStreamCreate(&two);
    (void)hipEventCreate(&fork);
    (void)hipEventCreate(&join);
    int *a = device(numbers(64)), *b = device(numbers(64));
    (void)hipStreamBeginCapture(one, hipStreamCaptureModeGlobal);
    add<<<1, 64, 0, one>>>(a, 1);
    (void)hipEventRecord(fork, one);
    (void)hipStreamWaitEvent(two, fork, 0);
    add<<<1, 64, 0, two>>>(b, 2);
    add<<<1, 64, 0, one>>>(a, 3);
    (void)hipEventRecord(join, two);
    (void)hipStreamWaitEvent(one, join, 0);
    add<<<1, 64, 0, one>>>(b, 4);
    (void)hipStreamEndCapture(one, &graph);
    (void)hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
    (void)hipGraphLaunch(exec, one);
    (void)hipStreamSynchronize(one);
    return pass(host(a, 64)[0] == 4 && host(b, 64)[0] == 6);
}
