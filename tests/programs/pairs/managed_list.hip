// A list in managed memory whose nodes point at each other; both devices and the program walk and change it in turn.
#include "../pair.h"

namespace {

constexpr int kNodes = 40;

struct Node {
    Node* next;
    int value;
};

__managed__ int total;

__global__ void walk(Node* first, int add) {
    int sum = 0;
    for (Node* node = first; node; node = node->next) sum += node->value += add;
    total = sum;
}
__global__ void reverse(Node** first) {
    Node* before = nullptr;
    for (Node* node = *first; node;) {
        Node* next = node->next;
        node->next = before;
        before = node;
        node = next;
    }
    *first = before;
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("managed_list", argc, argv);
    Node *nodes = nullptr, **first = nullptr;
    HIP_CHECK(hipMallocManaged(&nodes, kNodes * sizeof(Node)));
    HIP_CHECK(hipMallocManaged(&first, sizeof(Node*)));
    for (int i = 0; i < kNodes; i++) nodes[i] = {i + 1 < kNodes ? &nodes[i + 1] : nullptr, i};
    *first = nodes;
    int sum = kNodes * (kNodes - 1) / 2;
    for (int round = 0; round < 6; round++) {
        const int device = round % 2;
        pair::enter(device);
        if (round == 1) HIP_CHECK(hipMemPrefetchAsync(nodes, kNodes * sizeof(Node), device, nullptr));
        walk<<<1, 1>>>(*first, round);
        HIP_CHECK(hipGetLastError());
        reverse<<<1, 1>>>(first);
        HIP_CHECK(hipGetLastError());
        if (round == 3) pair::middle();
        pair::wait(nullptr);
        sum += round * kNodes;
        EXPECT(total == sum);
        EXPECT(*first == (device == 0 ? &nodes[kNodes - 1] : &nodes[0]));
        // The program's own change, for the next device.
        (*first)->value += 100;
        sum += 100;
    }
    int count = 0;
    for (Node* node = *first; node; node = node->next) count++;
    EXPECT(count == kNodes);
    HIP_CHECK(hipFree(nodes));
    HIP_CHECK(hipFree(first));
    return pair::finish();
}
