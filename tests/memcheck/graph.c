// Graphs: their nodes and edges, questions about them, their copies, graphs inside of graphs.
#define _XOPEN_SOURCE 700 // mkstemp
#include "graph.h"

#include <unistd.h>

hipGraphNode_t node_of_no_graph(void) {
    hipGraph_t graph = NULL;
    hipGraphNode_t node = NULL;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddEmptyNode(&node, graph, NULL, 0));
    GOOD(hipGraphDestroy(graph));
    return node;
}

void add_one(void* data) { *(int*)data += 1; }

void run_graph(struct Setup* s, hipGraphExec_t exec) {
    GOOD(hipGraphLaunch(exec, s->stream));
    GOOD(hipStreamSynchronize(s->stream));
}

void run_once(struct Setup* s, hipGraph_t graph) {
    hipGraphExec_t exec = NULL;
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    run_graph(s, exec);
    GOOD(hipGraphExecDestroy(exec));
}

// Three nodes, of which the last depends on both others.
static hipGraph_t three_nodes(hipGraphNode_t nodes[3]) {
    hipGraph_t graph = NULL;
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    GOOD(hipGraphAddEmptyNode(&nodes[1], graph, NULL, 0));
    GOOD(hipGraphAddEmptyNode(&nodes[2], graph, nodes, 2));
    return graph;
}

static void nodes_of_graphs(hipGraph_t graph, hipGraphNode_t nodes[3]) {
    hipGraphNode_t found[4] = {NO_NODE, NO_NODE, NO_NODE, NO_NODE};
    size_t count = 99;
    GOOD(hipGraphGetNodes(graph, NULL, &count));
    THAT(count == 3);
    count = 4;
    GOOD(hipGraphGetNodes(graph, found, &count));
    THAT(count == 3 && !memcmp(found, nodes, 3 * sizeof *nodes) && found[3] == NULL);
    count = 1;
    found[1] = NO_NODE;
    GOOD(hipGraphGetNodes(graph, found, &count));
    THAT(count == 1 && found[1] == NO_NODE);
    FAILS(hipGraphGetNodes(graph, found, NULL), hipErrorInvalidValue);
    FAILS(hipGraphGetNodes(NULL, found, &count), hipErrorInvalidValue);
    FAILS(hipGraphGetNodes(NO_GRAPH, NULL, &count), hipErrorInvalidValue);
    count = 4;
    GOOD(hipGraphGetRootNodes(graph, found, &count));
    THAT(count == 2 && found[0] == nodes[0] && found[1] == nodes[1] && found[2] == NULL);
    GOOD(hipGraphGetRootNodes(graph, NULL, &count));
    FAILS(hipGraphGetRootNodes(graph, found, NULL), hipErrorInvalidValue);
    FAILS(hipGraphGetRootNodes(NO_GRAPH, found, &count), hipErrorInvalidValue);
}

static void edges_of_graphs(hipGraph_t graph, hipGraphNode_t nodes[3]) {
    hipGraphNode_t from[3], to[3];
    size_t count = 3;
    GOOD(hipGraphGetEdges(graph, from, to, &count));
    THAT(count == 2 && from[0] == nodes[0] && from[1] == nodes[1] && from[2] == NULL);
    THAT(to[0] == nodes[2] && to[1] == nodes[2] && to[2] == NULL);
    GOOD(hipGraphGetEdges(graph, NULL, NULL, &count));
    THAT(count == 2);
    FAILS(hipGraphGetEdges(graph, NULL, to, &count), hipErrorInvalidValue);
    FAILS(hipGraphGetEdges(graph, from, NULL, &count), hipErrorInvalidValue);
    FAILS(hipGraphGetEdges(graph, from, to, NULL), hipErrorInvalidValue);
    FAILS(hipGraphGetEdges(NO_GRAPH, from, to, &count), hipErrorInvalidValue);
    count = 3;
    GOOD(hipGraphNodeGetDependencies(nodes[2], from, &count));
    THAT(count == 2 && from[0] == nodes[0] && from[1] == nodes[1] && from[2] == NULL);
    GOOD(hipGraphNodeGetDependencies(nodes[0], NULL, &count));
    THAT(count == 0);
    FAILS(hipGraphNodeGetDependencies(nodes[2], from, NULL), hipErrorInvalidValue);
    FAILS(hipGraphNodeGetDependencies(NULL, from, &count), hipErrorInvalidValue);
    FAILS(hipGraphNodeGetDependencies(NO_NODE, from, &count), hipErrorInvalidValue);
    count = 3;
    GOOD(hipGraphNodeGetDependentNodes(nodes[1], to, &count));
    THAT(count == 1 && to[0] == nodes[2] && to[1] == NULL && to[2] == NULL);
    FAILS(hipGraphNodeGetDependentNodes(nodes[1], to, NULL), hipErrorInvalidValue);
    FAILS(hipGraphNodeGetDependentNodes(NO_NODE, to, &count), hipErrorInvalidValue);
}

static void other_edges(struct Setup* s, hipGraph_t graph, hipGraphNode_t nodes[3]) {
    hipGraphExec_t exec = NULL;
    hipGraphNode_t stranger = node_of_no_graph();
    size_t count = 0;
    FAILS(hipGraphAddDependencies(graph, &nodes[0], &nodes[2], 1), hipErrorInvalidValue);
    FAILS(hipGraphAddDependencies(graph, &nodes[0], &nodes[0], 1), hipErrorInvalidValue);
    FAILS(hipGraphAddDependencies(graph, &nodes[0], &stranger, 1), hipErrorInvalidValue);
    FAILS(hipGraphAddDependencies(graph, NULL, &nodes[1], 1), hipErrorInvalidValue);
    FAILS(hipGraphAddDependencies(graph, &nodes[0], NULL, 1), hipErrorInvalidValue);
    FAILS(hipGraphAddDependencies(graph, &nodes[0], &nodes[1], 1000000), hipErrorInvalidValue);
    FAILS(hipGraphAddDependencies(NO_GRAPH, &nodes[0], &nodes[1], 1), hipErrorInvalidValue);
    GOOD(hipGraphAddDependencies(graph, NULL, NULL, 0));
    GOOD(hipGraphAddDependencies(graph, &nodes[0], &nodes[1], 1));
    // A circle is no graph that can be made ready.
    GOOD(hipGraphAddDependencies(graph, &nodes[2], &nodes[0], 1));
    FAILS(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), hipErrorInvalidValue);
    THAT(exec == NULL);
    hipGraphInstantiateParams params;
    memset(&params, 0, sizeof params);
    FAILS(hipGraphInstantiateWithParams(&exec, graph, &params), hipErrorInvalidValue);
    THAT(exec == NULL && params.result_out == hipGraphInstantiateInvalidStructure && params.errNode_out == NULL);
    FAILS(hipGraphRemoveDependencies(graph, &nodes[1], &nodes[0], 1), hipErrorInvalidValue);
    FAILS(hipGraphRemoveDependencies(graph, NULL, &nodes[0], 1), hipErrorInvalidValue);
    FAILS(hipGraphRemoveDependencies(graph, &nodes[2], &nodes[0], SIZE_MAX), hipErrorInvalidValue);
    FAILS(hipGraphRemoveDependencies(NULL, &nodes[2], &nodes[0], 1), hipErrorInvalidValue);
    GOOD(hipGraphRemoveDependencies(graph, &nodes[2], &nodes[0], 1));
    GOOD(hipGraphGetEdges(graph, NULL, NULL, &count));
    THAT(count == 3);
    run_once(s, graph);
}

void graph_shapes(struct Setup* s) {
    hipGraph_t graph = NULL, dead = NULL;
    hipGraphNode_t nodes[3] = {NULL, NULL, NULL}, node = NULL;
    hipGraphNodeType type;
    size_t count = 0;
    FAILS(hipGraphCreate(NULL, 0), hipErrorInvalidValue);
    FAILS(hipGraphCreate(&graph, 1), hipErrorInvalidValue);
    THAT(graph == NULL);
    GOOD(hipGraphCreate(&dead, 0));
    GOOD(hipGraphGetNodes(dead, NULL, &count));
    THAT(count == 0);
    GOOD(hipGraphDestroy(dead));
    FAILS(hipGraphDestroy(dead), hipErrorInvalidValue);
    FAILS(hipGraphDestroy(NULL), hipErrorInvalidValue);
    FAILS(hipGraphDestroy(NO_GRAPH), hipErrorInvalidValue);

    graph = three_nodes(nodes);
    FAILS(hipGraphAddEmptyNode(NULL, graph, NULL, 0), hipErrorInvalidValue);
    FAILS(hipGraphAddEmptyNode(&node, dead, NULL, 0), hipErrorInvalidValue);
    FAILS(hipGraphAddEmptyNode(&node, graph, NULL, 1), hipErrorInvalidValue);
    FAILS(hipGraphAddEmptyNode(&node, graph, &nodes[2], 1000000), hipErrorInvalidValue);
    THAT(node == NULL);
    nodes_of_graphs(graph, nodes);
    edges_of_graphs(graph, nodes);
    other_edges(s, graph, nodes);
    GOOD(hipGraphNodeGetType(nodes[0], &type));
    THAT(type == hipGraphNodeTypeEmpty);
    FAILS(hipGraphNodeGetType(nodes[0], NULL), hipErrorInvalidValue);
    FAILS(hipGraphNodeGetType(NO_NODE, &type), hipErrorInvalidValue);
    GOOD(hipGraphDestroyNode(nodes[2]));
    FAILS(hipGraphDestroyNode(nodes[2]), hipErrorInvalidValue);
    FAILS(hipGraphDestroyNode(NULL), hipErrorInvalidValue);
    GOOD(hipGraphGetEdges(graph, NULL, NULL, &count));
    THAT(count == 1);
    GOOD(hipGraphDestroy(graph));
    FAILS(hipGraphDestroyNode(nodes[0]), hipErrorInvalidValue);
}

// Graphs inside of graphs, each a copy of the one before, as deep as it goes.
static void deep_graphs(struct Setup* s) {
    hipGraph_t inner = NULL, outer = NULL;
    hipGraphNode_t node = NULL;
    hipError_t added = hipSuccess;
    int depth = 0;
    GOOD(hipGraphCreate(&inner, 0));
    for (; depth < 100 && added == hipSuccess; depth++) {
        GOOD(hipGraphCreate(&outer, 0));
        added = hipGraphAddChildGraphNode(&node, outer, NULL, 0, inner);
        GOOD(hipGraphDestroy(inner));
        inner = outer;
    }
    FAILS(added, hipErrorNotSupported);
    THAT(depth > 10 && depth < 100);
    run_once(s, outer);
    GOOD(hipGraphDestroy(outer));
}

void graph_clones(struct Setup* s) {
    hipGraphNode_t nodes[3] = {NULL, NULL, NULL}, found = NULL, node = NULL;
    hipGraph_t graph = three_nodes(nodes), clone = NULL, outer = NULL, inside = NULL;
    hipGraphNodeType type;
    size_t count = 0;
    GOOD(hipGraphClone(&clone, graph));
    FAILS(hipGraphClone(NULL, graph), hipErrorInvalidValue);
    FAILS(hipGraphClone(&outer, NULL), hipErrorInvalidValue);
    FAILS(hipGraphClone(&outer, NO_GRAPH), hipErrorInvalidValue);
    GOOD(hipGraphNodeFindInClone(&found, nodes[2], clone));
    THAT(found != NULL && found != nodes[2]);
    GOOD(hipGraphNodeGetDependencies(found, NULL, &count));
    THAT(count == 2);
    FAILS(hipGraphNodeFindInClone(NULL, nodes[2], clone), hipErrorInvalidValue);
    FAILS(hipGraphNodeFindInClone(&found, nodes[2], graph), hipErrorInvalidValue);
    FAILS(hipGraphNodeFindInClone(&found, NO_NODE, clone), hipErrorInvalidValue);
    FAILS(hipGraphNodeFindInClone(&found, nodes[2], NULL), hipErrorInvalidValue);

    GOOD(hipGraphCreate(&outer, 0));
    REFUSES_PLACES(hipGraphAddChildGraphNode, outer, clone);
    FAILS(hipGraphAddChildGraphNode(&node, outer, NULL, 0, NULL), hipErrorInvalidValue);
    FAILS(hipGraphAddChildGraphNode(&node, outer, NULL, 0, NO_GRAPH), hipErrorInvalidValue);
    GOOD(hipGraphAddChildGraphNode(&node, outer, NULL, 0, clone));
    GOOD(hipGraphNodeGetType(node, &type));
    THAT(type == hipGraphNodeTypeGraph);
    GOOD(hipGraphChildGraphNodeGetGraph(node, &inside));
    THAT(inside != NULL && inside != clone);
    GOOD(hipGraphGetNodes(inside, NULL, &count));
    THAT(count == 3);
    FAILS(hipGraphChildGraphNodeGetGraph(node, NULL), hipErrorInvalidValue);
    FAILS(hipGraphChildGraphNodeGetGraph(NO_NODE, &inside), hipErrorInvalidValue);
    FAILS(hipGraphChildGraphNodeGetGraph(nodes[0], &inside), hipErrorInvalidValue);
    // It is the node's.
    FAILS(hipGraphDestroy(inside), hipErrorInvalidValue);
    GOOD(hipGraphDestroy(clone));
    run_once(s, outer);
    GOOD(hipGraphDestroyNode(node));
    FAILS(hipGraphGetNodes(inside, NULL, &count), hipErrorInvalidValue);
    GOOD(hipGraphDestroy(outer));
    GOOD(hipGraphDestroy(graph));
    deep_graphs(s);
}

// ---- descriptions ---------------------------------------------------------------------------------------------------------

void graph_descriptions(struct Setup* s) {
    (void)s;
    hipGraphNode_t nodes[3] = {NULL, NULL, NULL}, child = NULL;
    hipGraph_t graph = three_nodes(nodes), outer = NULL;
    char path[] = "/tmp/hipr-graph-XXXXXX", text[8192];
    int file = mkstemp(path), edges = 0;
    THAT(file >= 0);
    GOOD(hipGraphCreate(&outer, 0));
    GOOD(hipGraphAddChildGraphNode(&child, outer, NULL, 0, graph));
    FAILS(hipGraphDebugDotPrint(NULL, path, 0), hipErrorInvalidValue);
    FAILS(hipGraphDebugDotPrint(NO_GRAPH, path, 0), hipErrorInvalidValue);
    FAILS(hipGraphDebugDotPrint(outer, NULL, 0), hipErrorInvalidValue);
    FAILS(hipGraphDebugDotPrint(outer, "", 0), hipErrorOperatingSystem);
    FAILS(hipGraphDebugDotPrint(outer, "/nowhere/at/all", 0), hipErrorOperatingSystem);
    GOOD(hipGraphDebugDotPrint(outer, path, hipGraphDebugDotFlagsVerbose));
    ssize_t len = read(file, text, sizeof text - 1);
    THAT(len > 0);
    text[len > 0 ? len : 0] = 0;
    THAT(!strncmp(text, "digraph", 7));
    for (const char* at = text; (at = strstr(at, " -> ")) != NULL; at++) edges++;
    THAT(edges == 2);
    close(file);
    unlink(path);
    GOOD(hipGraphDestroy(outer));
    GOOD(hipGraphDestroy(graph));
}

// ---- what graphs share with the program ---------------------------------------------------------------------------------

void symbol_nodes(struct Setup* s) {
    (void)s;
    const void* symbol = &coefficients_shadow;
    float in[4] = {1, 2, 3, 4}, out[4];
    hipGraph_t graph = NULL;
    hipGraphExec_t exec = NULL;
    hipGraphNode_t to = NULL, from = NULL;
    GOOD(hipGraphCreate(&graph, 0));
    REFUSES_PLACES(hipGraphAddMemcpyNodeToSymbol, graph, symbol, in, 16, 16, hipMemcpyHostToDevice);
    REFUSES_PLACES(hipGraphAddMemcpyNodeFromSymbol, graph, out, symbol, 16, 16, hipMemcpyDeviceToHost);
    BAD(hipGraphAddMemcpyNodeToSymbol(&to, graph, NULL, 0, NOWHERE, in, 16, 0, hipMemcpyHostToDevice));
    BAD(hipGraphAddMemcpyNodeToSymbol(&to, graph, NULL, 0, symbol, NULL, 16, 0, hipMemcpyHostToDevice));
    BAD(hipGraphAddMemcpyNodeToSymbol(&to, graph, NULL, 0, symbol, in, 0, 0, hipMemcpyHostToDevice));
    BAD(hipGraphAddMemcpyNodeToSymbol(&to, graph, NULL, 0, symbol, in, 16, 17, hipMemcpyHostToDevice));
    BAD(hipGraphAddMemcpyNodeFromSymbol(&from, graph, NULL, 0, NULL, symbol, 16, 0, hipMemcpyDeviceToHost));
    BAD(hipGraphAddMemcpyNodeFromSymbol(&from, graph, NULL, 0, out, symbol, 16, SIZE_MAX, hipMemcpyDeviceToHost));
    GOOD(hipGraphAddMemcpyNodeToSymbol(&to, graph, NULL, 0, symbol, in, 16, 16, hipMemcpyHostToDevice));
    GOOD(hipGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, out, symbol, 16, 16, hipMemcpyDeviceToHost));
    GOOD(hipGraphMemcpyNodeSetParamsToSymbol(to, symbol, in, 16, 0, hipMemcpyHostToDevice));
    BAD(hipGraphMemcpyNodeSetParamsToSymbol(NULL, symbol, in, 16, 0, hipMemcpyHostToDevice));
    BAD(hipGraphMemcpyNodeSetParamsToSymbol(to, symbol, in, 33, 0, hipMemcpyHostToDevice));
    GOOD(hipGraphMemcpyNodeSetParamsFromSymbol(from, out, symbol, 16, 0, hipMemcpyDeviceToHost));
    BAD(hipGraphMemcpyNodeSetParamsFromSymbol(NO_NODE, out, symbol, 16, 0, hipMemcpyDeviceToHost));
    BAD(hipGraphMemcpyNodeSetParamsFromSymbol(from, out, NOWHERE, 16, 0, hipMemcpyDeviceToHost));
    GOOD(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    GOOD(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, to, symbol, in, 16, 16, hipMemcpyHostToDevice));
    BAD(hipGraphExecMemcpyNodeSetParamsToSymbol(NO_EXEC, to, symbol, in, 16, 16, hipMemcpyHostToDevice));
    BAD(hipGraphExecMemcpyNodeSetParamsToSymbol(exec, to, symbol, in, 16, 17, hipMemcpyHostToDevice));
    GOOD(hipGraphExecMemcpyNodeSetParamsFromSymbol(exec, from, out, symbol, 16, 16, hipMemcpyDeviceToHost));
    BAD(hipGraphExecMemcpyNodeSetParamsFromSymbol(exec, NULL, out, symbol, 16, 16, hipMemcpyDeviceToHost));
    BAD(hipGraphExecMemcpyNodeSetParamsFromSymbol(exec, from, NULL, symbol, 16, 16, hipMemcpyDeviceToHost));
    GOOD(hipGraphLaunch(exec, NULL));
    GOOD(hipStreamSynchronize(NULL));
    WRITTEN(out);
    THAT(out[3] == 4);
    GOOD(hipGraphExecDestroy(exec));
    GOOD(hipGraphDestroy(graph));
}

void user_objects(struct Setup* s) {
    (void)s;
    int* ends = calloc(1, sizeof *ends);
    hipUserObject_t object = NULL;
    hipGraph_t graph = NULL, clone = NULL;
    hipGraphExec_t exec = NULL;
    BAD(hipUserObjectCreate(NULL, ends, add_one, 1, hipUserObjectNoDestructorSync));
    BAD(hipUserObjectCreate(&object, ends, NULL, 1, hipUserObjectNoDestructorSync));
    BAD(hipUserObjectCreate(&object, ends, add_one, 0, hipUserObjectNoDestructorSync));
    BAD(hipUserObjectCreate(&object, ends, add_one, 1, 99));
    GOOD(hipUserObjectCreate(&object, ends, add_one, 1, hipUserObjectNoDestructorSync));
    GOOD(hipUserObjectRetain(object, 2));
    BAD(hipUserObjectRetain(object, 0));
    BAD(hipUserObjectRetain(NOWHERE, 1));
    GOOD(hipUserObjectRelease(object, 1));
    BAD(hipUserObjectRelease(object, 0));
    BAD(hipUserObjectRelease(NULL, 1));
    GOOD(hipGraphCreate(&graph, 0));
    GOOD(hipGraphRetainUserObject(graph, object, 1, hipGraphUserObjectMove));
    GOOD(hipGraphRetainUserObject(graph, object, 1, 0));
    BAD(hipGraphRetainUserObject(graph, object, 1, 99));
    BAD(hipGraphRetainUserObject(NO_GRAPH, object, 1, 0));
    BAD(hipGraphRetainUserObject(graph, NOWHERE, 1, 0));
    GOOD(hipGraphReleaseUserObject(graph, object, 1));
    BAD(hipGraphReleaseUserObject(graph, NULL, 1));
    BAD(hipGraphReleaseUserObject(NO_GRAPH, object, 1));
    GOOD(hipUserObjectRelease(object, 1));
    GOOD(hipGraphClone(&clone, graph));
    GOOD(hipGraphInstantiate(&exec, clone, NULL, NULL, 0));
    GOOD(hipGraphDestroy(graph));
    GOOD(hipGraphDestroy(clone));
    THAT(*ends == 0);
    GOOD(hipGraphExecDestroy(exec));
    THAT(*ends == 1);
    BAD(hipUserObjectRetain(object, 1));
    free(ends);
}
