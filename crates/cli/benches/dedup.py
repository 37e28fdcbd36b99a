#!/usr/bin/env python3
"""lanebloom dedup beside sort, awk, runiq, huniq and xuniq, as whole processes.

Makes files of lines (20 to 100 bytes, 20% and 80% repeated), reads them from the page cache, and
writes to /dev/null. The contestants take turns; the table shows medians. Before that, each one's
output is counted. Needs GNU time and the peers:

    apt-get install time
    cargo install --root target/peers runiq@2.1.0 huniq@2.7.0 xuniq@0.1.4
    cargo build --release -p lanebloom-cli --bins --examples
    crates/cli/benches/dedup.py --lines 10 50
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LANEBLOOM = TARGET / "release/lanebloom"
PEERS = TARGET / "peers/bin"

# Name, command, whether exact. {file} is the input, {unique} the number of different lines. (What
# keeps 64-bit hashes instead of lines is not exact, though a collision is rare.)
CONTESTANTS = [
    ("lanebloom, 1 thread", f"{LANEBLOOM} dedup -q --threads 1 {{file}}", False),
    ("lanebloom, 2 threads", f"{LANEBLOOM} dedup -q --threads 2 {{file}}", False),
    ("lanebloom --expected, 1 thread", f"{LANEBLOOM} dedup -q --threads 1 --expected {{unique}} {{file}}", False),
    ("lanebloom --exact, 1 thread", f"{LANEBLOOM} dedup -q --exact --threads 1 {{file}}", True),
    ("lanebloom --exact, 2 threads", f"{LANEBLOOM} dedup -q --exact --threads 2 {{file}}", True),
    ("huniq", f"{PEERS}/huniq", False),
    ("xuniq", f"{PEERS}/xuniq", False),
    ("runiq -f quick", f"{PEERS}/runiq -f quick {{file}}", False),
    ("runiq -f compact (a Bloom filter)", f"{PEERS}/runiq -f compact {{file}}", False),
    ("runiq -f simple", f"{PEERS}/runiq -f simple {{file}}", True),
    ("xuniq --safe", f"{PEERS}/xuniq -s", True),
    ("sort -u", "sort -u {file}", True),
    ("awk '!seen[$0]++'", "awk !seen[$0]++ {file}", True),
    ("wc -l", "wc -l {file}", None),
    ("cat > /dev/null", "cat {file}", None),
]


def run(command, path, output):
    """Returns seconds and the peak memory in MB."""
    # A child of this process would count the memory of Python's image as its own peak.
    timed = ["/usr/bin/time", "-q", "-f", "%M", *command.split()]
    with open(path, "rb") as given:
        start = time.perf_counter()
        env = dict(os.environ, LC_ALL="C")
        done = subprocess.run(timed, stdin=given, stdout=output, stderr=subprocess.PIPE, env=env)
        seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{command}: exit status {done.returncode}: {done.stderr.decode()}")
    return seconds, int(done.stderr.split()[-1]) / 1000


def count_lines(command, path):
    """The number of lines that a contestant passes on."""
    with open(path, "rb") as given:
        env = dict(os.environ, LC_ALL="C")
        child = subprocess.Popen(command.split(), stdin=given, stdout=subprocess.PIPE, env=env)
        lines = int(subprocess.check_output(["wc", "-l"], stdin=child.stdout))
        child.stdout.close()
        child.wait()
    return lines


def make(folder, lines, percent):
    """Returns the path and the number of different lines."""
    path = folder / f"{lines}-{percent}.txt"
    with open(path, "wb") as out:
        command = [TARGET / "release/examples/lines", str(lines), str(percent)]
        made = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
    return path, int(made.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--lines", type=int, nargs="+", default=[10], help="millions of lines")
    parser.add_argument("--percent", type=int, nargs="+", default=[20, 80], help="repeated lines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=TARGET / "lines")
    parser.add_argument("--only", default="", help="only contestants whose name this expression finds")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    contestants = [row for row in CONTESTANTS if re.search(args.only, row[0])]
    for millions in args.lines:
        for percent in args.percent:
            lines = millions * 1_000_000
            path, unique = make(args.folder, lines, percent)
            compare(contestants, path, lines, percent, unique, args.rounds)
            path.unlink()


def compare(contestants, path, lines, percent, unique, rounds):
    commands = {name: command.format(file=path, unique=unique) for name, command, _ in contestants}
    for name, _, is_exact in contestants:
        if is_exact is not None:
            passed = count_lines(commands[name], path)
            # A promise of 1e-6 for filters; runiq promises nothing.
            lost = 0 if is_exact else unique if "compact" in name else 20 + unique / 1e6 * 2
            assert unique - lost <= passed <= unique, f"{name}: {passed} of {unique} lines"
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            with open("/dev/null", "wb") as nowhere:
                results[name].append(run(command, path, nowhere))
    print(f"\n{lines:,} lines, {percent}% repeated, {unique:,} different, {path.stat().st_size / 1e6:.0f} MB; ", end="")
    print(f"medians of {rounds}\n\n| | s | M lines/s | ns a line | peak MB |\n|---|--:|--:|--:|--:|")
    for name, runs in results.items():
        seconds = statistics.median(seconds for seconds, _ in runs)
        memory = statistics.median(memory for _, memory in runs)
        print(f"| {name} | {seconds:.2f} | {lines / seconds / 1e6:.1f} | {seconds / lines * 1e9:.0f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
