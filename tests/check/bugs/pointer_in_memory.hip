// check: kind=use-after-free kernel=follow
#include "seed.h"

struct Node {
    int value;
    Node *next;
};
__global__ void follow(int *out, const Node *first) {
    int total = 0;
    for (const Node *node = first; node; node = node->next)
        total += node->value; // BUG
    *out = total;
}
int main() {
    int *out = device<int>(1);
    Node *second = device(std::vector<Node>{{2, nullptr}}), *first = device(std::vector<Node>{{1, second}});
    (void)hipFree(second);
    follow<<<1, 1>>>(out, first);
    return end(out);
}
