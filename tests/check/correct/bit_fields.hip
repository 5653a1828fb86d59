// check: correct
#include "program.h"

struct Packed {
    unsigned low : 5, middle : 9, high : 18;
};

__global__ void set(Packed* data) {
    Packed value;
    value.low = threadIdx.x;
    value.middle = threadIdx.x;
    value.high = 1;
    data[threadIdx.x] = value;
    if (data[threadIdx.x].middle > 20) data[threadIdx.x].high = 2;
}

int main() {
    Packed* data = raw<Packed>(64);
    set<<<1, 64>>>(data);
    return finish(data);
}
