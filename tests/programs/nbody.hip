// Gravity between 512 bodies: positions in LDS tiles, rsqrtf, two leapfrog steps; compared with f64 on the CPU.
#include "check.h"

extern "C" __global__ void nbody_accelerate(const float4* bodies, float4* velocities, int n, float step, float softening) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 body = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += blockDim.x) {
        tile[threadIdx.x] = t + static_cast<int>(threadIdx.x) < n ? bodies[t + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (unsigned j = 0; j < blockDim.x; j++) {
            float dx = tile[j].x - body.x, dy = tile[j].y - body.y, dz = tile[j].z - body.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = tile[j].w * inverse * inverse * inverse;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }
    if (i < n) {
        velocities[i].x += ax * step;
        velocities[i].y += ay * step;
        velocities[i].z += az * step;
    }
}

extern "C" __global__ void nbody_move(float4* bodies, const float4* velocities, int n, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 body = bodies[i], velocity = velocities[i];
    body.x += velocity.x * step;
    body.y += velocity.y * step;
    body.z += velocity.z * step;
    bodies[i] = body;
}

int main() {
    check::begin("nbody");
    check::Rng rng(10);
    const int n = 500, steps = 2;
    const float step = 0.01f, softening = 0.01f;
    std::vector<float4> bodies(n), velocities(n, make_float4(0, 0, 0, 0));
    std::vector<double> position(3 * n), velocity(3 * n);
    for (int i = 0; i < n; i++) {
        bodies[i] = make_float4(rng.real(-1, 1), rng.real(-1, 1), rng.real(-1, 1), rng.real(0.1, 1));
        position[3 * i] = bodies[i].x;
        position[3 * i + 1] = bodies[i].y;
        position[3 * i + 2] = bodies[i].z;
    }
    DeviceArray<float4> dbodies(bodies), dvelocities(velocities);
    for (int s = 0; s < steps; s++) {
        nbody_accelerate<<<4, 128>>>(dbodies.get(), dvelocities.get(), n, step, softening);
        nbody_move<<<4, 128>>>(dbodies.get(), dvelocities.get(), n, step);
    }
    HIP_CHECK(hipGetLastError());
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < n; i++) {
            double a[3] = {};
            for (int j = 0; j < n; j++) {
                double d[3], square = softening;
                for (int k = 0; k < 3; k++) {
                    d[k] = position[3 * j + k] - position[3 * i + k];
                    square += d[k] * d[k];
                }
                double pull = bodies[j].w / (square * std::sqrt(square));
                for (int k = 0; k < 3; k++) a[k] += d[k] * pull;
            }
            for (int k = 0; k < 3; k++) velocity[3 * i + k] += a[k] * step;
        }
        for (int i = 0; i < 3 * n; i++) position[i] += velocity[i] * step;
    }
    std::vector<float> got;
    for (const float4& b : dbodies.download()) got.insert(got.end(), {b.x, b.y, b.z});
    check::near("positions", got, position, 1e-4, 1e-4);
    return check::finish();
}
