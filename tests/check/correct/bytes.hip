// check: correct
#include "seed.h"

__global__ void lower(char *text, int len) {
    int i = threadIdx.x;
    if (i < len && text[i] >= 'A' && text[i] <= 'Z') text[i] += 'a' - 'A';
}
int main() {
    char *text = device(std::vector<char>(101, 'B'));
    lower<<<1, 128>>>(text, 101);
    return pass(host(text, 101)[100] == 'b');
}
