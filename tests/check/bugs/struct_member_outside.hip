// check: kind=out-of-bounds kernel=set_mass
#include "program.h"

struct Particle {
    float x, y, z, mass;
};

__global__ void set_mass(Particle* particles, int count) {
    int i = threadIdx.x;
    if (i < count)
        particles[i].mass = 1; // BUG
}

int main() {
    char* bytes = raw<char>(10 * sizeof(Particle) - 4);
    set_mass<<<1, 64>>>(reinterpret_cast<Particle*>(bytes), 10);
    return finish(bytes);
}
