// check: kind=wild-pointer kernel=use_pointer
#include "program.h"

struct Arguments {
    int* data;
};

__global__ void use_pointer(const Arguments* arguments) {
    arguments->data[threadIdx.x] = 1; // BUG
}

int main() {
    auto* arguments = raw<Arguments>(1);
    int* data = raw<int>(64);
    (void)hipMemset(arguments, 0x5a, sizeof(Arguments));
    use_pointer<<<1, 64>>>(arguments);
    return finish(arguments, data);
}
