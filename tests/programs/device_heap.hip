// malloc, free, new and delete in kernels: memory that one kernel allocates is another's, of any size, for all threads at once; what was freed is
// allocated again, and what is too much is refused.
#include "check.h"

__global__ void allocate(unsigned** blocks, const unsigned* words) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    blocks[thread] = static_cast<unsigned*>(malloc(words[thread] * sizeof(unsigned)));
}

__global__ void fill(unsigned** blocks, const unsigned* words) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned at = 0; blocks[thread] != nullptr && at < words[thread]; at++) blocks[thread][at] = thread * 2654435761u + at;
}

__global__ void look(unsigned** blocks, const unsigned* words, unsigned* wrong) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (blocks[thread] == nullptr) atomicAdd(wrong + 1, 1u);
    for (unsigned at = 0; blocks[thread] != nullptr && at < words[thread]; at++)
        if (blocks[thread][at] != thread * 2654435761u + at) atomicAdd(wrong, 1u);
    free(blocks[thread]);
}

struct Node {
    int value;
    Node* next;
    __device__ Node(int value, Node* next) : value(value), next(next) {}
};

__global__ void list(int* sums, int count) {
    Node* head = nullptr;
    for (int value = 0; value < count; value++) head = new Node(value, head);
    int sum = 0;
    while (head != nullptr) {
        Node* next = head->next;
        sum += head->value;
        delete head;
        head = next;
    }
    sums[threadIdx.x] = sum;
}

__global__ void again(int rounds, size_t bytes, unsigned* failed) {
    for (int round = 0; round < rounds; round++) {
        char* memory = static_cast<char*>(malloc(bytes));
        if (memory == nullptr) atomicAdd(failed, 1u);
        else memory[0] = memory[bytes - 1] = static_cast<char>(round);
        free(memory);
    }
}

__global__ void too_much(unsigned* got) {
    *got = malloc(size_t{1} << 50) != nullptr;
}

int main() {
    check::begin("device_heap");
    constexpr unsigned kThreads = 4 * 64;
    unsigned **blocks = nullptr, *words = nullptr, *wrong = nullptr;
    HIP_CHECK(hipMalloc(&blocks, kThreads * sizeof *blocks));
    HIP_CHECK(hipMalloc(&words, kThreads * sizeof *words));
    HIP_CHECK(hipMalloc(&wrong, 2 * sizeof *wrong));
    // The sizes of each kind of block, one more and one less, and beyond what blocks are for: 3,072 bytes.
    const unsigned sizes[] = {1, 4, 5, 8, 12, 16, 17, 64, 96, 100, 384, 512, 767, 768, 769, 1500, 2048, 5000};
    std::vector<unsigned> counts(kThreads);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned thread = 0; thread < kThreads; thread++)
            counts[thread] = round == 0 ? 16 : sizes[(thread * (round == 1 ? 1 : 7)) % (sizeof sizes / sizeof *sizes)];
        HIP_CHECK(hipMemcpy(words, counts.data(), kThreads * sizeof *words, hipMemcpyHostToDevice));
        HIP_CHECK(hipMemset(wrong, 0, 2 * sizeof *wrong));
        allocate<<<4, 64>>>(blocks, words);
        fill<<<4, 64>>>(blocks, words);
        look<<<4, 64>>>(blocks, words, wrong);
        unsigned counted[2];
        HIP_CHECK(hipMemcpy(counted, wrong, sizeof counted, hipMemcpyDeviceToHost));
        EXPECT(counted[0] == 0);
        EXPECT(counted[1] == 0);
    }
    int* sums = nullptr;
    HIP_CHECK(hipMalloc(&sums, 64 * sizeof *sums));
    list<<<1, 64>>>(sums, 40);
    int host[64];
    HIP_CHECK(hipMemcpy(host, sums, sizeof host, hipMemcpyDeviceToHost));
    for (int sum : host) EXPECT(sum == 40 * 39 / 2);
    for (size_t bytes : {size_t{24}, size_t{3072}, size_t{3073}, size_t{5} << 20}) {
        HIP_CHECK(hipMemset(wrong, 0, 2 * sizeof *wrong));
        again<<<2, 4>>>(12, bytes, wrong);
        unsigned failed = 1;
        HIP_CHECK(hipMemcpy(&failed, wrong, sizeof failed, hipMemcpyDeviceToHost));
        EXPECT(failed == 0);
    }
    too_much<<<1, 1>>>(wrong);
    unsigned got = 1;
    HIP_CHECK(hipMemcpy(&got, wrong, sizeof got, hipMemcpyDeviceToHost));
    EXPECT(got == 0);
    HIP_CHECK(hipFree(sums));
    HIP_CHECK(hipFree(wrong));
    HIP_CHECK(hipFree(words));
    HIP_CHECK(hipFree(blocks));
    return check::finish();
}
