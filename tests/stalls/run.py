#!/usr/bin/env python3
"""Runs a command and stops some of its processes for a moment, again and again, until it ends, as a busy machine does: what is right
only if nobody is late shows. Returns the command's exit code. Tests that stop processes themselves cannot be run so.

    run.py cargo test -p hipr --test resume           processes are stopped for up to 300 ms
    run.py --longest-ms 50 --seed 7 COMMAND …
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path


def parents():
    """The parent of each process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            # It has ended.
            continue
        found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants(of):
    """The processes below a process."""
    children = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    below, left = [], [of]
    while left:
        more = children.get(left.pop(), [])
        below += more
        left += more
    return below


def send(pids, what):
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            pass


def stall(command, chance, longest_s):
    """Stops some of the command's processes until it has ended."""
    while command.poll() is None:
        there = descendants(os.getpid())
        some = chance.sample(there, chance.randint(0, len(there)))
        try:
            send(some, signal.SIGSTOP)
            time.sleep(longest_s * chance.random() ** 4)
        finally:
            send(some, signal.SIGCONT)
        # Where one ends while it is stopped, its number is another's only after many more.
        time.sleep(0.005 + 0.1 * chance.random())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="which processes are stopped when")
    parser.add_argument("--longest-ms", type=int, default=300, help="the longest time that a process is stopped")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command is given")
    try:
        command = subprocess.Popen(options.command)
    except OSError as why:
        sys.exit(f"cannot run {options.command[0]}: {why.strerror}")
    try:
        stall(command, random.Random(options.seed), options.longest_ms / 1000)
    except KeyboardInterrupt:
        command.terminate()
    return command.wait()


if __name__ == "__main__":
    sys.exit(main())
