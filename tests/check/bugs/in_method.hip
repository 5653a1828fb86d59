// check: kind=out-of-bounds kernel=push_all
#include "seed.h"

struct Stack {
    int *items;
    int size;
    __device__ void push(int at, int value) {
        items[size + at] = value; // BUG
    }
};
__global__ void push_all(Stack stack) {
    stack.push(threadIdx.x, threadIdx.x);
}
int main() {
    int *items = device<int>(64);
    push_all<<<1, 64>>>(Stack{items, 1});
    return end(items);
}
