// check: correct
#include "seed.h"

__global__ void add(int *values, int more) {
    values[blockIdx.x * 64 + threadIdx.x] += more;
}
int main() {
    hipStream_t streams[4];
    int *values = device(std::vector<int>(4 * 4096));
    for (auto &stream : streams) (void)hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
    for (int i = 0; i < 4; ++i)
        for (int round = 0; round < 3; ++round) add<<<64, 64, 0, streams[i]>>>(values + i * 4096, i);
    (void)hipDeviceSynchronize();
    return pass(host(values, 4 * 4096)[4 * 4096 - 1] == 9);
}
