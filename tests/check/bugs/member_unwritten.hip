// check: kind=uninitialized-read kernel=consume
#include "seed.h"

struct Particle {
    float mass, speed;
};
__global__ void produce(Particle *particles) {
    particles[threadIdx.x].mass = 1.0f;
}
__global__ void consume(float *energy, const Particle *particles) {
    Particle particle = particles[threadIdx.x]; // BUG
    energy[threadIdx.x] = particle.mass * particle.speed * particle.speed;
}
int main() {
    Particle *particles = device<Particle>(64);
    float *energy = device<float>(64);
    produce<<<1, 64>>>(particles);
    consume<<<1, 64>>>(energy, particles);
    return end(energy);
}
