// User objects: their destructors run when the last reference is gone, be it the program's, a graph's, a clone's, a child graph's or that
// of an instantiated graph, also of one that is destroyed while it runs.
#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

static std::atomic<int> ended{0};
static void end(void* amount) { ended += *static_cast<int*>(amount); }

// AMD's runtime may run the destructor on a thread of its own, after the call that ended the last reference.
static bool ends_at(int wanted) {
    for (int tries = 0; tries < 2000 && ended != wanted; tries++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ended == wanted;
}

static int one = 1;

static hipUserObject_t object(unsigned references) {
    ended = 0;
    hipUserObject_t made = nullptr;
    HIP_CHECK(hipUserObjectCreate(&made, &one, end, references, hipUserObjectNoDestructorSync));
    return made;
}

// Returns a graph with an empty node that has the only reference to an object.
static hipGraph_t keeper() {
    hipGraph_t graph = nullptr;
    hipGraphNode_t node = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    HIP_CHECK(hipGraphAddEmptyNode(&node, graph, nullptr, 0));
    HIP_CHECK(hipGraphRetainUserObject(graph, object(1), 1, hipGraphUserObjectMove));
    return graph;
}

int main() {
    check::begin("graph_objects");
    hipUserObject_t refused = nullptr;
    EXPECT_ERROR(hipUserObjectCreate(nullptr, &one, end, 1, hipUserObjectNoDestructorSync), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectCreate(&refused, &one, nullptr, 1, hipUserObjectNoDestructorSync), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectCreate(&refused, &one, end, 0, hipUserObjectNoDestructorSync), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectCreate(&refused, &one, end, 0x80000000u, hipUserObjectNoDestructorSync), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectCreate(&refused, &one, end, 1, 0), hipErrorInvalidValue);

    // The program's references.
    hipUserObject_t mine = object(2);
    EXPECT_ERROR(hipUserObjectRetain(mine, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectRelease(mine, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectRetain(nullptr, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipUserObjectRelease(nullptr, 1), hipErrorInvalidValue);
    HIP_CHECK(hipUserObjectRetain(mine, 3));
    HIP_CHECK(hipUserObjectRelease(mine, 4));
    EXPECT(ended == 0);
    HIP_CHECK(hipUserObjectRelease(mine, 1));
    EXPECT(ends_at(1));

    // A graph's references, moved or new ones.
    hipGraph_t graph = nullptr;
    HIP_CHECK(hipGraphCreate(&graph, 0));
    mine = object(1);
    EXPECT_ERROR(hipGraphRetainUserObject(nullptr, mine, 1, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphRetainUserObject(graph, nullptr, 1, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphRetainUserObject(graph, mine, 0, 0), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphRetainUserObject(graph, mine, 1, 2), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphReleaseUserObject(nullptr, mine, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphReleaseUserObject(graph, nullptr, 1), hipErrorInvalidValue);
    EXPECT_ERROR(hipGraphReleaseUserObject(graph, mine, 0), hipErrorInvalidValue);
    HIP_CHECK(hipGraphReleaseUserObject(graph, mine, 1)); // it has none
    HIP_CHECK(hipGraphRetainUserObject(graph, mine, 2, 0));
    HIP_CHECK(hipUserObjectRelease(mine, 1));
    HIP_CHECK(hipGraphReleaseUserObject(graph, mine, 1));
    EXPECT(ended == 0);
    HIP_CHECK(hipGraphReleaseUserObject(graph, mine, 1));
    EXPECT(ends_at(1));
    mine = object(1);
    HIP_CHECK(hipGraphRetainUserObject(graph, mine, 3, 0));
    HIP_CHECK(hipGraphDestroy(graph));
    EXPECT(ended == 0);
    HIP_CHECK(hipUserObjectRelease(mine, 1));
    EXPECT(ends_at(1));

    // Clones and child graphs have references of their own.
    hipGraph_t other = nullptr;
    graph = keeper();
    HIP_CHECK(hipGraphClone(&other, graph));
    HIP_CHECK(hipGraphDestroy(graph));
    EXPECT(ended == 0);
    HIP_CHECK(hipGraphDestroy(other));
    EXPECT(ends_at(1));
    hipGraphNode_t child = nullptr;
    graph = keeper();
    HIP_CHECK(hipGraphCreate(&other, 0));
    HIP_CHECK(hipGraphAddChildGraphNode(&child, other, nullptr, 0, graph));
    HIP_CHECK(hipGraphDestroy(graph));
    EXPECT(ended == 0);
    HIP_CHECK(hipGraphDestroyNode(child));
    EXPECT(ends_at(1));
    HIP_CHECK(hipGraphDestroy(other));

    // So have instantiated graphs.
    hipGraphExec_t exec = nullptr;
    graph = keeper();
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    HIP_CHECK(hipGraphDestroy(graph));
    EXPECT(ended == 0);
    HIP_CHECK(hipGraphExecDestroy(exec));
    EXPECT(ends_at(1));
    graph = keeper();
    HIP_CHECK(hipGraphCreate(&other, 0));
    HIP_CHECK(hipGraphAddChildGraphNode(&child, other, nullptr, 0, graph));
    HIP_CHECK(hipGraphInstantiate(&exec, other, nullptr, nullptr, 0));
    HIP_CHECK(hipGraphDestroy(graph));
    HIP_CHECK(hipGraphDestroy(other));
    EXPECT(ended == 0);
    HIP_CHECK(hipGraphExecDestroy(exec));
    EXPECT(ends_at(1));

    // An instantiated graph that is destroyed while it runs: its object lasts until the last launch has ended.
    static std::atomic<int> calls{0}, seen{-1};
    hipHostNodeParams slow = {[](void*) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(30));
                                  calls++;
                              },
                              nullptr};
    auto read = [](void*) { seen = calls.load(); };
    hipStream_t stream = nullptr;
    HIP_CHECK(hipStreamCreate(&stream));
    HIP_CHECK(hipGraphCreate(&graph, 0));
    hipGraphNode_t host = nullptr;
    HIP_CHECK(hipGraphAddHostNode(&host, graph, nullptr, 0, &slow));
    hipUserObject_t reader = nullptr;
    HIP_CHECK(hipUserObjectCreate(&reader, &one, read, 1, hipUserObjectNoDestructorSync));
    HIP_CHECK(hipGraphRetainUserObject(graph, reader, 1, hipGraphUserObjectMove));
    HIP_CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    HIP_CHECK(hipGraphDestroy(graph));
    HIP_CHECK(hipGraphLaunch(exec, stream));
    HIP_CHECK(hipGraphLaunch(exec, stream));
    HIP_CHECK(hipGraphExecDestroy(exec));
    HIP_CHECK(hipStreamSynchronize(stream));
    for (int tries = 0; tries < 5000 && seen < 0; tries++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT(seen == 2);
    HIP_CHECK(hipStreamDestroy(stream));
    return check::finish();
}
