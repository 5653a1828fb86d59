// What the parts that make graphs share.
#ifndef GRAPH_H
#define GRAPH_H

#include "check.h"

#define NO_GRAPH ((hipGraph_t)NOWHERE)
#define NO_NODE ((hipGraphNode_t)NOWHERE)
#define NO_EXEC ((hipGraphExec_t)NOWHERE)

// What each function that adds a node refuses, with parameters for the node that are good: no place for its handle, no graph, and
// lists of dependencies that are not there, not of this graph, named twice or longer than the graph is.
#define REFUSES_PLACES(add, graph, ...)                                                                                \
    do {                                                                                                               \
        hipGraphNode_t new_node_ = NULL, other_ = node_of_no_graph(), twice_[2];                                       \
        GOOD(hipGraphAddEmptyNode(&twice_[0], graph, NULL, 0));                                                        \
        twice_[1] = twice_[0];                                                                                         \
        FAILS(add(NULL, graph, NULL, 0, __VA_ARGS__), hipErrorInvalidValue);                                           \
        FAILS(add(&new_node_, NULL, NULL, 0, __VA_ARGS__), hipErrorInvalidValue);                                      \
        FAILS(add(&new_node_, NO_GRAPH, NULL, 0, __VA_ARGS__), hipErrorInvalidValue);                                  \
        FAILS(add(&new_node_, graph, NULL, 1, __VA_ARGS__), hipErrorInvalidValue);                                     \
        FAILS(add(&new_node_, graph, &other_, 1, __VA_ARGS__), hipErrorInvalidValue);                                  \
        FAILS(add(&new_node_, graph, twice_, 2, __VA_ARGS__), hipErrorInvalidValue);                                   \
        FAILS(add(&new_node_, graph, twice_, 1000000, __VA_ARGS__), hipErrorInvalidValue);                             \
        FAILS(add(&new_node_, graph, twice_, SIZE_MAX, __VA_ARGS__), hipErrorInvalidValue);                            \
        THAT(new_node_ == NULL);                                                                                       \
        GOOD(hipGraphDestroyNode(twice_[0]));                                                                          \
    } while (0)

// The handle of a node that was destroyed with its graph.
hipGraphNode_t node_of_no_graph(void);
// A host function: one more in the int at `data`.
void add_one(void* data);
// Launches a ready graph on the setup's stream and waits for it.
void run_graph(struct Setup* s, hipGraphExec_t exec);
// A graph made ready, launched and destroyed.
void run_once(struct Setup* s, hipGraph_t graph);

// A launch of saxpy with what it is given: y += a * x, SAXPY_N floats each, at the start of the setup's device memory and 1024 bytes
// behind it.
struct Saxpy {
    float a;
    char *x, *y;
    unsigned n;
    void* args[4];
    hipKernelNodeParams params;
};
void make_saxpy(struct Setup* s, struct Saxpy* saxpy, float a);
// Every x is `x`, every y is 0.
void start_saxpy(struct Setup* s, float x);
// The last y.
float saxpy_result(struct Setup* s);

#endif
