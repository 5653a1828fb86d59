// check: correct
#include "program.h"

struct View {
    int* data;
    int size;
    __device__ void set(int i, int value) {
        if (i < size)
            data[i] = value;
    }
};

__global__ void use_view(View view) {
    view.set(threadIdx.x, 5);
}

int main() {
    int* data = raw<int>(20);
    use_view<<<1, 64>>>(View{data, 20});
    return finish(data);
}
