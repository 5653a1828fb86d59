#!/usr/bin/env python3
"""What five tokens of a model in the shape of GPT-2 124M cost on a network: seconds from the loaded weights on, with nothing between
program and worker and behind a delay, in turn; and flights and bytes of each token, counted. The weights are random, the tokens are
compared with a reference. Ends with 0 only if they are right and a token waits no more often than `../distance.tsv` says of the small
shape.

    headline.py --hipr target/release/hipr --proxy target/release/hipr-tests                   400 ms round trip
    headline.py … --delay-ms 25 --client llama --shape '2 layers'                             another network, one client
"""

import argparse
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import run
import worker
from shapes import SHAPES

TOKENS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hipr", required=True, help="the hipr program; its library lies beside it, as cargo builds them")
    parser.add_argument("--proxy", required=True, help="the hipr-tests program")
    parser.add_argument("--client", nargs="+", default=["llama", "tinygrad"], choices=["llama", "tinygrad"], help="only these")
    parser.add_argument("--shape", default="GPT-2 124M", choices=SHAPES)
    parser.add_argument("--delay-ms", default="200", help="the delay in each direction, half of the round trip")
    parser.add_argument("--mbit-per-s", help="the bandwidth in each direction")
    parser.add_argument("--lazy", action="store_true", help="with lazy synchronization")
    parser.add_argument("--runs", type=int, default=1, help="runs of each kind, in turn; the medians count")
    options = parser.parse_args()
    clients = Path(run.installed())
    python = clients / "iree/bin/python"
    if Path(sys.prefix) != clients / "iree":
        # numpy is there.
        os.execv(python, [python, "-B", *sys.argv])
    import system
    if options.lazy:
        worker.RUN_OPTIONS.append("--lazy-sync")
    with system.System(str(Path(options.hipr).resolve())) as lab:
        measured = [measure(CLIENTS[client](lab, clients, options.shape), options) for client in options.client]
    sys.exit(0 if all(measured) else 1)


class Llama:
    NAME = "llama.cpp gpt2.gguf"

    def __init__(self, lab, clients, shape):
        import llama_client
        self.lab, self.shape, self.client = lab, shape, llama_client
        self.worker_options = llama_client.OPTIONS
        self.few, self.many = llama_client.FEW, llama_client.FEW + 4
        self.llama = llama_client.Llama(lab, clients, [shape])
        self.llama.compute(shape)

    def count(self, place, tokens):
        return self.llama.run(place, self.shape, tokens)

    def seconds(self, place):
        """Seconds from the prompt, which is written when everything is loaded, to each token, as they come out of the program."""
        command = [*self.lab.enter, self.lab.inside("hipr"), "run", *worker.RUN_OPTIONS, "--worker", place[1].address, "--",
                   *self.llama.command(self.shape, TOKENS, "-ngl", "99")]
        process = subprocess.Popen(command, env=self.llama.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        output, prompted, seconds = "", None, []
        with process:
            while some := process.stdout.read1():
                now = time.monotonic()
                output += some.decode()
                if prompted is None and self.client.PROMPT in output:
                    prompted = now
                seconds += [now - prompted] * (len(self.client.generated(output)) - len(seconds)) if prompted else []
                if len(seconds) >= TOKENS:
                    # It waits for more input.
                    process.stdin.close()
        expected = self.llama.expected[self.shape][:TOKENS]
        if process.returncode != 0 or self.client.generated(output) != expected:
            raise RuntimeError(f"{self.NAME}: exit code {process.returncode}, {output!r}, not the tokens {expected}")
        return seconds


class Tinygrad:
    NAME = "tinygrad gpt2.py"

    def __init__(self, lab, clients, shape):
        import tinygrad_client
        self.lab, self.shape, self.client = lab, shape, tinygrad_client
        self.worker_options = []
        self.few, self.many = tinygrad_client.FEW, tinygrad_client.FEW + 2
        tinygrad_client.install(lab, clients)

    def count(self, place, tokens):
        return self.client.run_gpt2(self.lab, place, self.shape, tokens)

    def seconds(self, place):
        """Seconds from the loaded weights to each token."""
        *lines, whole = self.count(place, TOKENS)
        failures = [result["failure"] for result in (*lines, whole) if result["failure"]]
        if failures:
            raise RuntimeError(f"{self.NAME}: {failures}")
        return lines[0]["token_seconds"]


CLIENTS = {"llama": Llama, "tinygrad": Tinygrad}


def measure(client, options):
    """Prints the figures of a client; gives whether a token waits as often as it may."""
    with ExitStack() as stack:
        separate = stack.enter_context(worker.Worker(options.hipr, *client.worker_options))
        here = ("separate", separate)
        command = [options.proxy, "proxy", "--worker", separate.address, "--delay-ms", options.delay_ms]
        command += ["--mbit-per-s", options.mbit_per_s] if options.mbit_per_s else []
        near, far = [], []
        for _ in range(options.runs):
            near.append(client.seconds(here))
            with worker.Proxy(command) as proxy:
                far.append(client.seconds(("separate", proxy)))
        counted = run.Counted(argparse.Namespace(
            counted=[client.NAME], proxy=options.proxy, delay_ms="0", mbit_per_s=None, cut_after_ms=None,
            lazy=options.lazy))
        *_, each = counted.run_each(client.NAME, here, client.count, client.few, client.many)
    network = f"{2 * float(options.delay_ms):g} ms" + (f", {options.mbit_per_s} Mbit/s" if options.mbit_per_s else "")
    near, far = (sorted(runs, key=lambda seconds: seconds[-1])[len(runs) // 2] for runs in (near, far))
    waits = ", ".join(f"{op} {flights}" for op, flights in each["waits"].items())
    steps = lambda seconds: ", ".join(f"{after - before:.2f}" for before, after in zip([0, *seconds], seconds))
    print(f"{client.NAME}, {options.shape}, {TOKENS} tokens: {near[-1]:.2f} s on loopback, {far[-1]:.2f} s at {network}: "
          f"{far[-1] - near[-1]:.2f} s more")
    print(f"    one by one: {steps(near)} s; {steps(far)} s")
    print(f"    each token: {each['flights']} flights ({waits}), {each['bytes_to_worker']} bytes to the worker, "
          f"{each['bytes_to_client']} from it", flush=True)
    bound = flights_of(client.NAME, options.lazy)
    if each["failure"] or each["flights"] > bound:
        print(f"FAILED: {each['failure'] or f'a token of the small shape waits {bound} times at most'}")
        return False
    return True


def flights_of(name, is_lazy):
    """How often each token of the small shape may wait."""
    row = rf"^{re.escape(name)}\t2 layers, each token{run.LAZY if is_lazy else ''}\t(\d+)\t"
    bound = re.search(row, (run.HERE.parent / "distance.tsv").read_text(), re.M)
    return int(bound[1])


if __name__ == "__main__":
    main()
