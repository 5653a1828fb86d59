// A sum over both devices in pieces, as a ring makes it: each device reduces half of the values and gives the result to the other one.
// Copies of different pieces are on different streams.
#include "../pair.h"

namespace {

constexpr int kPieces = 4, kPiece = 700, kCount = kPieces * kPiece;

__global__ void add(unsigned* to, const unsigned* from, int count) {
    const int at = pair::thread();
    if (at < count) to[at] += from[at];
}

} // namespace

int main(int argc, char** argv) {
    pair::begin("allreduce", argc, argv);
    check::Rng rng(3);
    const std::vector<unsigned> values[2] = {rng.bits<unsigned>(kCount), rng.bits<unsigned>(kCount)};
    unsigned *memory[2], *arrived[2];
    pair::Queue queues[2][kPieces] = {{pair::Queue(0), pair::Queue(0), pair::Queue(0), pair::Queue(0)},
                                      {pair::Queue(1), pair::Queue(1), pair::Queue(1), pair::Queue(1)}};
    for (int device : {0, 1}) {
        memory[device] = pair::allocate(device, values[device]);
        arrived[device] = pair::allocate<unsigned>(device, kCount);
    }
    for (int round = 0; round < 2; round++)
        for (int piece = 0; piece < kPieces; piece++) {
            const int owner = piece % 2, other = 1 - owner;
            pair::Queue &own = queues[owner][piece], &their = queues[other][piece];
            const size_t at = piece * kPiece;
            own.after(their);
            own.copy(arrived[owner] + at, owner, memory[other] + at, other, kPiece);
            own.launch(add, kPiece, memory[owner] + at, arrived[owner] + at, kPiece);
            if (round == 1 && piece == 1) pair::middle();
            their.after(own);
            their.copy(memory[other] + at, other, memory[owner] + at, owner, kPiece);
            own.after(their);
        }
    std::vector<unsigned> want(kCount);
    for (int i = 0; i < kCount; i++) want[i] = 2 * (values[0][i] + values[1][i]);
    for (int device : {0, 1}) {
        for (pair::Queue& queue : queues[device]) pair::wait(queue.stream);
        pair::enter(device);
        check::equal("sum", pair::look(memory[device], kCount), want);
        HIP_CHECK(hipFree(memory[device]));
        HIP_CHECK(hipFree(arrived[device]));
        for (pair::Queue& queue : queues[device]) queue.close();
    }
    return pair::finish();
}
