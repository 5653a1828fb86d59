// check: correct
#include "seed.h"

__global__ void pack(unsigned short *out, const unsigned char *in) {
    int i = threadIdx.x;
    out[i] = static_cast<unsigned short>(in[2 * i] | in[2 * i + 1] << 8);
}
int main() {
    unsigned short *out = device<unsigned short>(50);
    unsigned char *in = device(std::vector<unsigned char>(100, 1));
    pack<<<1, 50>>>(out, in);
    return pass(host(out, 50)[49] == 257);
}
