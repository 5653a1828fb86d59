"""llama.cpp as Debian packages it, with its HIP backend: models with random weights that continue a prompt, all layers on an emulated
MI210 (the packages have no code for gfx942), always with the most likely token, compared with llama.cpp's own CPU backend."""

import re
import time

import gguf
import worker
from shapes import SHAPES

CLIENT, PROGRAM = "llama.cpp", "gpt2.gguf"
# The emulated GPU, for `hipr run` and `hipr worker`.
OPTIONS = ["--sim-arch", "gfx90a"]
PROMPT = "abc"
# Tokens of two runs whose difference is what a token costs. The fourth and the fifth are dearer: llama.cpp makes a graph.
FEW, MANY = 5, 13


class Llama:
    """llama.cpp in a system, with models of some shapes and what the CPU makes of them."""

    def __init__(self, system, clients, shapes=tuple(SHAPES)):
        self.system, self.models, self.expected = system, {}, {}
        system.bring(clients / "llama", "llama")
        for i, shape in enumerate(shapes):
            self.models[shape] = system.inside(f"{i}.gguf")
            gguf.write(system.folder / f"{i}.gguf", SHAPES[shape])

    def environment(self, **more):
        libraries = self.system.inside("llama/usr/lib/x86_64-linux-gnu")
        return self.system.environment(LD_LIBRARY_PATH=f"{libraries}:{libraries}/llama", **more)

    def command(self, shape, tokens, *options):
        """The program with these options. It waits for more input behind the tokens: its log, which prints them, is a thread that it
        does not wait for when it ends."""
        program = [self.system.inside("llama/usr/bin/llama-completion"), "-m", self.models[shape], "--temp", "0", "-c", "256",
                   "--no-warmup", "-no-cnv", "--interactive", "-p", PROMPT, "-n", str(tokens), *options]
        # The backends are looked for in the working folder.
        backends = self.system.inside("llama/usr/lib/x86_64-linux-gnu/ggml/backends0")
        return ["/bin/sh", "-c", 'cd "$0" && exec "$@"', backends, *program]

    def compute(self, shape):
        """Generates tokens on the CPU, as many as are compared at most."""
        command = [*self.system.enter, *self.command(shape, MANY, "--device", "none", "-ngl", "0")]
        failure, output, _ = worker.execute(command, self.environment(), lambda output: len(generated(output)) >= MANY)
        if failure is not None:
            raise RuntimeError(f"llama.cpp on the CPU: {failure}")
        self.expected[shape] = generated(output)
        if len(self.expected[shape]) != MANY or len(set(self.expected[shape])) < MANY // 2:
            raise RuntimeError(f"no text to compare with: {output!r}")

    def run(self, place, shape, tokens):
        """Generates tokens on the GPU: results of the table, one."""
        statistics = self.system.folder / f"llama.{place[0]}.{tokens}.json"
        statistics.unlink(missing_ok=True)
        environment = self.environment(HIPR_STATS_FILE=self.system.inside(statistics.name))
        started = time.monotonic()
        has_all = lambda output: len(generated(output)) >= tokens
        failure, output, log = self.system.run(place, self.command(shape, tokens, "-ngl", "99"), environment, OPTIONS, has_all)
        seconds = time.monotonic() - started
        counts = worker.statistics(statistics)
        if failure is None and counts.get("calls", 0) == 0:
            failure = f"the program never called hipr's library: {log[-2000:]}"
        if failure is None and generated(output) != self.expected[shape][:tokens]:
            failure = (f"tokens {generated(output)}, not {self.expected[shape][:tokens]}; it printed {output!r} and logged "
                       f"{log.strip()[-2000:]}")
        return [{"client": CLIENT, "program": PROGRAM, "mode": mode(shape, tokens), "worker": place[0], "failure": failure,
                 "seconds": seconds, "calls": counts.get("calls"), "round_trips": counts.get("round_trips")}]


def mode(shape, tokens):
    return f"{shape}, {tokens} token{'s' if tokens > 1 else ''}"


def generated(output):
    """The tokens of a text."""
    return [int(token) for token in re.findall(r";(\d+)", output)]
