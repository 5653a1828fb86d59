#!/usr/bin/env python3
"""Runs real clients of HIP, unmodified, over hipr: each program in each of its client's modes, with a worker inside `hipr run`
and with one in a process of its own. Prints a line for each run, then those that failed; exits with 0 only if all results are right.

    run.py --hipr target/release/hipr                    everything, one after another
    run.py --hipr target/release/hipr --jobs 2 --quick   what CI runs: embedded workers run each program in one mode only
    run.py … --doc docs/clients.md                       writes the page with the results of this very run
    run.py … --check                                     everything under `hipr check`, which must find nothing
    run.py … --lazy                                      everything with lazy synchronization
    run.py … --amd-runtime 7.2.4                         IREE and tinygrad on AMD's own runtime, which has an emulated GPU below it,
                                                         and over hipr with a worker that serves that runtime
    run.py … --proxy target/release/hipr-tests           counts round trips and bytes of the programs of ../distance.tsv
    run.py … --proxy … --cut-after-ms 2000               cuts each connection after two seconds: programs do not notice
"""

import argparse
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import amd_runtime

HERE = Path(__file__).parent
CLIENTS = ["tinygrad", "llama", "iree"]
# The end of a mode with lazy synchronization.
LAZY = ", lazy"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hipr", required=True, help="the hipr program; its library lies beside it, as cargo builds them")
    parser.add_argument("--client", nargs="+", default=CLIENTS, choices=CLIENTS, help="only these")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--quick", action="store_true", help="fewer modes with an embedded worker")
    parser.add_argument("--check", action="store_true", help="under `hipr check`: a run fails if that finds something")
    parser.add_argument("--lazy", action="store_true", help="with lazy synchronization")
    parser.add_argument("--amd-runtime", choices=amd_runtime.RELEASES, help="on AMD's own runtime, and over a worker that serves it")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--json", help="a file for all results")
    parser.add_argument("--doc", help="a file for the page with the results")
    parser.add_argument("--proxy", help="the hipr-tests program: a proxy of it counts what programs of ../distance.tsv cost, with the "
                                        "worker in a process of its own; --json has the figures")
    parser.add_argument("--delay-ms", default="0", help="the proxy's delay in each direction")
    parser.add_argument("--mbit-per-s", help="the proxy's bandwidth in each direction")
    parser.add_argument("--cut-after-ms", help="instead of counting, the proxy cuts each connection at this age, and all programs run with it")
    parser.add_argument("--counted", nargs="+", help="only these, behind the proxy, each as 'CLIENT PROGRAM (MODE)'")
    options = parser.parse_args()
    if options.check and (options.lazy or options.amd_runtime or options.proxy):
        parser.error("--check has the emulated GPU in its own process: it goes with none of --lazy, --amd-runtime and --proxy")
    if options.cut_after_ms and not options.proxy:
        parser.error("--cut-after-ms needs --proxy")
    if options.counted:
        options.client = [client for client in options.client if any(name.lower().startswith(client) for name in options.counted)]
    if options.amd_runtime:
        options.client = [client for client in options.client if client != "llama"]
    clients = Path(installed())
    python = clients / "iree/bin/python"
    if Path(sys.prefix) != clients / "iree":
        # numpy is there.
        os.execv(python, [python, "-B", *sys.argv])
    results = run(options, clients)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    if options.doc:
        import page
        how = f"by `run.py --jobs {options.jobs}{' --quick' if options.quick else ''} --doc {options.doc}`"
        page.write(options.doc, results, how, clients)
    failed = [result for result in results if result["failure"]]
    for result in failed:
        print(line(result))
    print(f"{len(results) - len(failed)} of {len(results)} runs passed")
    sys.exit(1 if failed or not results else 0)


def line(result):
    where = f"{result['client']} {result['program']} ({result['mode']}, {result['worker']})"
    return f"FAILED {where}: {result['failure']}" if result["failure"] else f"passed {where} in {result['seconds']:.1f} s"


def installed():
    done = subprocess.run([HERE / "setup.sh", "--check"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout.strip()


def run(options, clients):
    import worker
    if options.lazy:
        worker.RUN_OPTIONS.append("--lazy-sync")
    hipr = str(Path(options.hipr).resolve())
    with (ExitStack() as stack, worker.scratch() as folder, ThreadPoolExecutor(options.jobs) as pool):
        lab = None
        if options.amd_runtime or {"tinygrad", "llama"} & set(options.client):
            import system
            lab = stack.enter_context(system.System(hipr))
        if options.amd_runtime:
            runtime = amd_runtime.Runtime(options.amd_runtime, lab)
            separate = stack.enter_context(runtime.worker())
            places = [(runtime.name, runtime), (f"worker of {runtime.name}", separate)]
        elif options.check:
            separate, places = None, [("checked", worker.Check())]
        else:
            separate = stack.enter_context(worker.Worker(hipr))
            places = reached(stack, options, separate)
        workers = [separate] if separate else []
        counted = Counted(options)
        work = []
        if "tinygrad" in options.client:
            work += tinygrad_runs(options, lab, clients, places, counted)
        if "llama" in options.client:
            import llama_client
            if options.check:
                of_llama = [("checked", worker.Check(*llama_client.OPTIONS))]
            else:
                workers.append(stack.enter_context(worker.Worker(hipr, *llama_client.OPTIONS)))
                of_llama = reached(stack, options, workers[-1])
            work += llama_runs(options, lab, clients, of_llama, counted)
        if "iree" in options.client:
            import iree_client
            inside = lab if options.amd_runtime else None
            programs = iree_client.programs(clients, lab.folder if inside else Path(folder), inside)
            work += iree_runs(options, programs, hipr, places, counted, pool)
        results = []
        for some in pool.map(lambda one: one(), work):
            results += some
            for result in some:
                result["mode"] += LAZY if options.lazy else ""
                print(line(result), flush=True)
        if not all(worker.lives() for worker in workers):
            results.append({"client": "hipr", "program": "worker", "mode": "", "worker": "separate",
                            "failure": "the worker has ended", "seconds": 0})
    return results


def reached(stack, options, separate):
    """Where programs find a worker: inside `hipr run` and in a process of its own; or only the latter, over links that are cut."""
    import worker
    if not options.cut_after_ms:
        return [("embedded", None), ("separate", separate)]
    worker.ENVIRONMENT["HIPR_RESUME_TIMEOUT_MS"] = "60000"
    cutter = worker.Proxy([options.proxy, "proxy", "--worker", separate.address, "--cut-after-ms", options.cut_after_ms, "--json"])
    stack.enter_context(cutter)
    stack.callback(lambda: print(f"{cutter.counts()['cuts']} connections were cut"))
    return [("cut", cutter)]


class Counted:
    """The runs whose round trips and bytes a proxy between program and worker counts."""

    def __init__(self, options):
        self.only, self.options = options.counted, options
        lines = (HERE.parent / "distance.tsv").read_text().splitlines()
        rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
        modes = [(program, mode.removesuffix(LAZY)) for program, mode, *_ in rows if mode.endswith(LAZY) == options.lazy]
        self.names = options.counted or [f"{program} ({mode})" for program, mode in modes]

    def includes(self, name, place):
        """Whether there is such a run: only some may be wanted."""
        return not self.only or (name in self.only and place[1] is not None)

    def is_counted(self, name, place):
        counts = self.options.proxy is not None and not self.options.cut_after_ms
        return counts and place[1] is not None and name in self.names

    def behind(self, place, program):
        """Runs `program` at a place that is behind a proxy; gives its results, and what the proxy has counted."""
        import worker
        command = [self.options.proxy, "proxy", "--worker", place[1].address, "--json", "--delay-ms", self.options.delay_ms]
        command += ["--mbit-per-s", self.options.mbit_per_s] if self.options.mbit_per_s else []
        with worker.Proxy(command) as proxy:
            results = program((place[0], proxy))
            return results, proxy.counts()

    def run(self, name, place, program):
        """Runs `program`, which takes a place and gives results, the last of them that of the process; behind a proxy if the
        run is one of those that are counted."""
        if not self.is_counted(name, place):
            return program(place)
        results, counts = self.behind(place, program)
        results[-1].update(counts)
        return results

    def run_each(self, name, place, program, few, many):
        """Runs `program`, which takes a place and a number of tokens. If a token of it is counted, it runs for few tokens and for many,
        and there is a result more: the difference, for each token."""
        if not self.is_counted(name, place):
            return program(place, many)
        results_of_few, before = self.behind(place, lambda place: program(place, few))
        results_of_many, after = self.behind(place, lambda place: program(place, many))
        share = lambda after, before: math.ceil((after - before) / (many - few))
        counts = {what: share(after[what], before[what]) for what in before if what != "waits"}
        waits = {op: share(flights, before["waits"].get(op, 0)) for op, flights in after["waits"].items()}
        whole = results_of_many[-1]
        each = {**whole, "mode": whole["mode"].split(",")[0] + ", each token", **counts,
                "failure": results_of_few[-1]["failure"] or whole["failure"],
                "waits": {op: flights for op, flights in waits.items() if flights > 0}}
        return [*results_of_few, *results_of_many, each]


def iree_runs(options, programs, hipr, places, counted, pool):
    wanted = []
    for i, program in enumerate(program for program in programs if options.only in program.name):
        for place in places:
            modes = program.modes
            few = options.quick and (place[0] in ("embedded", "checked") or options.amd_runtime)
            chosen = [modes[i % len(modes)]] if few else modes
            runs = [(program, place, mode, f"IREE {program.name} ({mode})") for mode in chosen]
            wanted += [run for run in runs if counted.includes(run[3], place)]
    # Compiling takes longer than running: all of it first, in parallel.
    list(pool.map(lambda program: program.prepare(), dict.fromkeys(program for program, *_ in wanted)))
    return [lambda program=program, place=place, mode=mode, name=name:
            counted.run(name, place, lambda place: [program.run(hipr, place, mode)])
            for program, place, mode, name in wanted]


def tinygrad_runs(options, lab, clients, places, counted):
    import tinygrad_client as tinygrad
    tinygrad.install(lab, clients)
    if options.quick:
        places = places[-1:]
    wanted = [(program, place, f"tinygrad {program}.py (process)") for program in tinygrad.PROGRAMS for place in places]
    work = [lambda program=program, place=place, name=name:
            counted.run(name, place, lambda place: tinygrad.run(lab, place, program, options.only))
            for program, place, name in wanted if counted.includes(name, place)]
    each = "tinygrad gpt2.py (2 layers, each token)"
    gpt2 = lambda place, tokens: tinygrad.run_gpt2(lab, place, "2 layers", tokens)
    return work + [lambda place=place: counted.run_each(each, place, gpt2, tinygrad.FEW, tinygrad.MANY)
                   for place in places if options.only in "gpt2" and counted.includes(each, place)]


def llama_runs(options, lab, clients, places, counted):
    import llama_client
    name = lambda mode: f"{llama_client.CLIENT} {llama_client.PROGRAM} ({mode})"
    one, each = name(llama_client.mode("2 layers", 1)), name("2 layers, each token")
    wanted = [(name, place) for name in (one, each) for place in places
              if options.only in llama_client.PROGRAM and counted.includes(name, place)]
    if not wanted:
        return []
    llama = llama_client.Llama(lab, clients, ["2 layers"])
    llama.compute("2 layers")
    run = lambda place, tokens: llama.run(place, "2 layers", tokens)
    return [lambda name=name, place=place:
            counted.run(name, place, lambda place: run(place, 1)) if name == one
            else counted.run_each(name, place, run, llama_client.FEW, llama_client.MANY)
            for name, place in wanted]


if __name__ == "__main__":
    main()
