#!/usr/bin/env python3
"""Runs real clients of HIP, unmodified, over hipr: each program in each of its client's modes, with a worker inside `hipr run`
and with one in a process of its own. Prints a line for each run, then those that failed; exits with 0 only if all results are right.

    run.py --hipr target/release/hipr                    everything, one after another
    run.py --hipr target/release/hipr --jobs 2 --quick   what CI runs: embedded workers run each program in one mode only
    run.py … --doc docs/clients.md                       writes the page with the results of this very run
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
    options = parser.parse_args()
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
        work = []
        if "tinygrad" in options.client:
            import tinygrad_client
            system = stack.enter_context(tinygrad_client.System(clients, hipr))
            work += tinygrad_runs(options, system, places)
        if "iree" in options.client:
            import iree_client
            programs = iree_client.programs(clients, Path(folder))
            work += iree_runs(options, programs, hipr, places, pool)
        results = []
        for some in pool.map(lambda one: one(), work):
            results += some
            for result in some:
                print(line(result), flush=True)
        if not separate.lives():
            results.append({"client": "hipr", "program": "worker", "mode": "", "worker": "separate",
                            "failure": "the worker has ended", "seconds": 0})
    return results


def iree_runs(options, programs, hipr, places, pool):
    programs = [program for program in programs if options.only in program.name]
    # Compiling takes longer than running: all of it first, in parallel.
    list(pool.map(lambda program: program.prepare(), programs))
    work = []
    for i, program in enumerate(programs):
        for place in places:
            modes = program.modes
            chosen = [modes[i % len(modes)]] if options.quick and place[0] == "embedded" else modes
            work += [lambda program=program, place=place, mode=mode: [program.run(hipr, place, mode)] for mode in chosen]
    return work


def tinygrad_runs(options, system, places):
    if options.quick:
        places = places[1:]
    return [lambda place=place, program=program: system.run(place, program, options.only)
            for program in system.PROGRAMS for place in places]


if __name__ == "__main__":
    main()
