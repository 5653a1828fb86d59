// check: correct
#include "seed.h"

__global__ void sort(int *values) {
    __shared__ int items[256];
    int i = threadIdx.x;
    items[i] = values[i];
    for (int size = 2; size <= 256; size *= 2)
        for (int distance = size / 2; distance > 0; distance /= 2) {
            __syncthreads();
            int other = i ^ distance;
            if (other > i && (items[i] > items[other]) == ((i & size) == 0)) {
                int item = items[i];
                items[i] = items[other];
                items[other] = item;
            }
        }
    __syncthreads();
    values[i] = items[i];
}
int main() {
    std::vector<int> values(256);
    for (int i = 0; i < 256; ++i) values[i] = i * 101 % 256;
    int *sorted = device(values);
    sort<<<1, 256>>>(sorted);
    return pass(host(sorted, 256)[77] == 77);
}
