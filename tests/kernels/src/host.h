/* The host's side of a test: for each kernel, results and shared words of all groups, group after group, phase after phase. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void (*phase_fn)(LANE);
struct kernel { const phase_fn *phases; };
static int run(const struct kernel *kernels, u32 count, u32 groups, u32 shared_words) {
    size_t in_words = (size_t)groups * GROUP * IN_WORDS, out_words = (size_t)groups * GROUP * OUT_WORDS;
    u32 *in = malloc(in_words * 4), *out = malloc(out_words * 4), *shared = malloc(shared_words * 4);
    static u32 lds[1024];
    if (!in || !out || !shared || fread(in, 4, in_words, stdin) != in_words) return 1;
    for (u32 k = 0; k < count; k++) {
        memset(out, 0, out_words * 4);
        memset(shared, 0, shared_words * 4);
        for (u32 g = 0; g < groups; g++)
            for (const phase_fn *phase = kernels[k].phases; *phase; phase++)
                for (u32 l = 0; l < GROUP; l++) (*phase)(l, g, in, out, shared, lds);
        if (fwrite(out, 4, out_words, stdout) != out_words || fwrite(shared, 4, shared_words, stdout) != shared_words) return 1;
    }
    return 0;
}
