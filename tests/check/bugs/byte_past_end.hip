// check: kind=out-of-bounds kernel=terminate
#include "seed.h"

__global__ void terminate(char *text, int len) {
    text[threadIdx.x] = 'a';
    if (threadIdx.x == 0) text[len] = 0; // BUG
}
int main() {
    char *text = device<char>(100);
    terminate<<<1, 100>>>(text, 100);
    return end(text);
}
