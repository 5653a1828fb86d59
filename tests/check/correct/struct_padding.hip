// check: correct
#include "seed.h"

struct Record {
    char tag;
    double value;
    short count;
};
__global__ void make(Record *records) {
    records[threadIdx.x].tag = 'a';
    records[threadIdx.x].value = threadIdx.x;
    records[threadIdx.x].count = 3;
}
__global__ void copy(Record *to, const Record *from) {
    to[threadIdx.x] = from[63 - threadIdx.x];
}
int main() {
    Record *one = device<Record>(64), *two = device<Record>(64);
    make<<<1, 64>>>(one);
    copy<<<1, 64>>>(two, one);
    return pass(host(two, 64)[0].value == 63 && host(two, 64)[5].count == 3);
}
