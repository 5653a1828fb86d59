#!/usr/bin/env python3
"""Runs real clients of HIP, unmodified, over hipr: each program in each of its client's modes, with a worker inside `hipr run`
and with one in a process of its own. Prints a line for each run, then those that failed; exits with 0 only if all results are right.

    run.py --hipr target/release/hipr                    everything, one after another
    run.py --hipr target/release/hipr --jobs 2 --quick   what CI runs: embedded workers run each program in one mode only
    run.py … --doc docs/clients.md                       writes the page with the results of this very run
    run.py … --proxy target/release/hipr-tests           counts round trips and bytes of the programs of ../distance.tsv
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
CLIENTS = ["tinygrad", "iree"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hipr", required=True, help="the hipr program; its library lies beside it, as cargo builds them")
    parser.add_argument("--client", nargs="+", default=CLIENTS, choices=CLIENTS, help="only these")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--quick", action="store_true", help="fewer modes with an embedded worker")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--json", help="a file for all results")
    parser.add_argument("--doc", help="a file for the page with the results")
    parser.add_argument("--proxy", help="the hipr-tests program: a proxy of it counts what programs of ../distance.tsv cost, with the "
                                        "worker in a process of its own; --json has the figures")
    parser.add_argument("--delay-ms", default="0", help="the proxy's delay in each direction")
    parser.add_argument("--mbit-per-s", help="the proxy's bandwidth in each direction")
    parser.add_argument("--counted", nargs="+", help="only these, behind the proxy, each as 'CLIENT PROGRAM (MODE)'")
    options = parser.parse_args()
    if options.counted:
        options.client = [client for client in options.client if any(name.lower().startswith(client) for name in options.counted)]
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
        page.write(options.doc, results, how)
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
    hipr = str(Path(options.hipr).resolve())
    with (ExitStack() as stack, worker.scratch() as folder, worker.Worker(hipr) as separate,
          ThreadPoolExecutor(options.jobs) as pool):
        places = [("embedded", None), ("separate", separate)]
        counted = Counted(options, separate)
        work = []
        if "tinygrad" in options.client:
            import tinygrad_client
            system = stack.enter_context(tinygrad_client.System(clients, hipr))
            work += tinygrad_runs(options, system, places, counted)
        if "iree" in options.client:
            import iree_client
            programs = iree_client.programs(clients, Path(folder))
            work += iree_runs(options, programs, hipr, places, counted, pool)
        results = []
        for some in pool.map(lambda one: one(), work):
            results += some
            for result in some:
                print(line(result), flush=True)
        if not separate.lives():
            results.append({"client": "hipr", "program": "worker", "mode": "", "worker": "separate",
                            "failure": "the worker has ended", "seconds": 0})
    return results


class Counted:
    """The runs whose round trips and bytes a proxy between program and worker counts."""

    def __init__(self, options, separate):
        self.separate, self.only = separate, options.counted
        self.command = None
        if options.proxy:
            self.command = [options.proxy, "proxy", "--worker", separate.address, "--json", "--delay-ms", options.delay_ms]
            self.command += ["--mbit-per-s", options.mbit_per_s] if options.mbit_per_s else []
        lines = (HERE.parent / "distance.tsv").read_text().splitlines()
        rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
        self.names = options.counted or [f"{program} ({mode})" for program, mode, *_ in rows]

    def includes(self, name, place):
        """Whether there is such a run: only some may be wanted."""
        return not self.only or (name in self.only and place[1] is self.separate)

    def run(self, name, place, program):
        """Runs `program`, which takes a place and gives results, the last of them that of the process; behind a proxy if the
        run is one of those that are counted."""
        if self.command is None or place[1] is not self.separate or name not in self.names:
            return program(place)
        import worker
        with worker.Proxy(self.command) as proxy:
            results = program((place[0], proxy))
            results[-1].update(proxy.counts())
        return results


def iree_runs(options, programs, hipr, places, counted, pool):
    wanted = []
    for i, program in enumerate(program for program in programs if options.only in program.name):
        for place in places:
            modes = program.modes
            chosen = [modes[i % len(modes)]] if options.quick and place[0] == "embedded" else modes
            runs = [(program, place, mode, f"IREE {program.name} ({mode})") for mode in chosen]
            wanted += [run for run in runs if counted.includes(run[3], place)]
    # Compiling takes longer than running: all of it first, in parallel.
    list(pool.map(lambda program: program.prepare(), dict.fromkeys(program for program, *_ in wanted)))
    return [lambda program=program, place=place, mode=mode, name=name:
            counted.run(name, place, lambda place: [program.run(hipr, place, mode)])
            for program, place, mode, name in wanted]


def tinygrad_runs(options, system, places, counted):
    if options.quick:
        places = places[1:]
    wanted = [(program, place, f"tinygrad {program}.py (process)") for program in system.PROGRAMS for place in places]
    return [lambda program=program, place=place, name=name:
            counted.run(name, place, lambda place: system.run(place, program, options.only))
            for program, place, name in wanted if counted.includes(name, place)]


if __name__ == "__main__":
    main()
