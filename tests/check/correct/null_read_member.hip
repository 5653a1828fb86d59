// check: correct
#include "program.h"

struct Node {
    int value;
    Node* next;
};

__global__ void read_next(Node* node, int* out) {
    if (node->next) *out = node->next->value;
}

int main() {
    Node* node = zeros<Node>(1);
    int* out = raw<int>(1);
    read_next<<<1, 1>>>(node, out);
    return finish(node, out);
}
