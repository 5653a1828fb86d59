// check: correct
#include "program.h"

struct Arguments {
    int* data;
};

__global__ void use_pointer(const Arguments* arguments) {
    arguments->data[threadIdx.x] = 1;
}

int main() {
    auto* arguments = raw<Arguments>(1);
    int* data = raw<int>(64);
    (void)hipMemcpy(arguments, &data, sizeof data, hipMemcpyHostToDevice);
    use_pointer<<<1, 64>>>(arguments);
    return finish(arguments, data);
}
