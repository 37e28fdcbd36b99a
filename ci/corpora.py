"""lanebloom corpus beside dolma: called by ci/corpora.sh.

Both get the same JSON lines and write dolma's attributes. The contestants take turns; the tables
have medians. Decisions are compared document by document, for lines also with an exact set.
"""

import argparse
import functools
import gzip
import importlib.machinery
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ENDS = (".rs", ".md", ".txt", ".py", ".rst", ".toml", ".html", ".c", ".h", ".js", ".json", ".pyi")
RATE = 1e-6
OVERLAP = 0.8


def make(to, sources, most):
    """Writes a document for each file with text, a third of them with \\u escapes."""
    total = number = 0
    with open(to, "w", encoding="utf-8") as file:
        for source in sources:
            for folder, folders, names in os.walk(source):
                folders.sort()
                for name in sorted(names):
                    if not name.endswith(ENDS):
                        continue
                    path = os.path.join(folder, name)
                    try:
                        text = Path(path).read_text(encoding="utf-8")
                    except (OSError, UnicodeDecodeError):
                        continue
                    if not 200 < len(text) < 2_000_000:
                        continue
                    row = {"id": str(number), "source": os.path.relpath(path, source), "text": text}
                    file.write(json.dumps(row, ensure_ascii=number % 3 == 0) + "\n")
                    number, total = number + 1, total + len(text)
                    if total > most:
                        return


def call_dolma(extension, config):
    loader = importlib.machinery.ExtensionFileLoader("dolma", extension)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dolma", loader))
    module.deduper_entrypoint(config)


def timed(command, before=()):
    """Seconds, and the peak of memory in MiB, as GNU time tells them."""
    with tempfile.NamedTemporaryFile("r") as figures:
        command = [*before, "/usr/bin/time", "-q", "-f", "%e %M", "-o", figures.name, *command]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds, kib = figures.read().split()
    return float(seconds), int(kib) / 1024


def dolma(args, root, document, ngrams, expected, processes=1):
    for name in ("attributes", "work", "filter"):
        shutil.rmtree(root / name, ignore_errors=True)
    paragraphs = {"attribute_name": "x"}
    if ngrams:
        paragraphs["by_ngram"] = {"ngram_length": ngrams, "stride": 0, "overlap_threshold": OVERLAP}
    config = {
        "documents": [str(document)],
        "work_dir": {"input": f"{root}/work/in", "output": f"{root}/work/out"},
        "dedupe": {"name": "x", "paragraphs": paragraphs, "skip_empty": True},
        "bloom_filter": {
            "file": f"{root}/filter/f", "size_in_bytes": 0, "read_only": False,
            "estimated_doc_count": expected, "desired_false_positive_rate": RATE,
        },
        "processes": processes,
    }
    command = [sys.executable, __file__, "--call", json.dumps(config), "--dolma", args.dolma]
    return timed(command), root / "attributes/x" / document.name


def ours(args, root, document, options, threads=1, annotate=True):
    output = root / "ours.jsonl"
    kind = ["--annotate", "x"] if annotate else []
    command = [args.lanebloom, "corpus", "-q", document, "-o", output, "--unit", "line", *kind, "--rate", str(RATE)]
    return timed([*command, "--threads", str(threads), *options]), output


def rows(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with opened as file:
        yield from map(json.loads, file)


def compare(document, theirs, our):
    """The number of pieces about which the two differ, and that of all."""
    differ = number = removed = 0
    for row, their, mine in zip(rows(document), rows(theirs), rows(our), strict=True):
        assert their["id"] == mine["id"] == row["id"]
        # dolma counts characters, but compares them with the number of bytes to find the end.
        at, starts, ours_at, numbers = 0, [], 0, {}
        size = len(row["text"].encode())
        for piece in row["text"].split("\n"):
            numbers[ours_at] = len(starts)
            starts.append(at)
            at += len(piece)
            at += at < size - 1
            ours_at += len(piece) + 1
        number += len(starts)
        found = {starts[numbers[span[0]]] for span in mine["attributes"]["x"]}
        removed += len(found)
        differ += len(found ^ {span[0] for span in their["attributes"]["x"]})
    return differ, number, removed


def wrong(document, our):
    """How many lines are removed though an exact set has not seen them, and the reverse."""
    seen, lost, kept = set(), 0, 0
    for row, mine in zip(rows(document), rows(our), strict=True):
        spans, at = {span[0] for span in mine["attributes"]["x"]}, 0
        for piece in row["text"].split("\n"):
            if piece.strip():
                is_new = piece not in seen
                seen.add(piece)
                lost += is_new and at in spans
                kept += not is_new and at not in spans
            at += len(piece) + 1
    return lost, kept, len(seen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--call")
    parser.add_argument("--dolma")
    parser.add_argument("--lanebloom")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm/lanebloom-corpora"))
    parser.add_argument("--bytes", type=float, default=400e6)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ngram-runs", type=int, default=3)
    parser.add_argument("--quiet", default="", help="a command before each measurement")
    parser.add_argument("sources", nargs="*", default=[os.path.expanduser("~/.cargo/registry/src"), "/usr/share/doc", "/usr/lib/python3"])
    args = parser.parse_args()
    if args.call:
        return call_dolma(args.dolma, args.call)
    args.cache.mkdir(parents=True, exist_ok=True)
    plain = args.cache / f"{args.bytes:.0f}.jsonl"
    if not plain.exists():
        make(plain, args.sources, args.bytes)
    root = args.memory
    shutil.rmtree(root, ignore_errors=True)
    (root / "documents").mkdir(parents=True)
    files = {"plain": root / "documents/c.jsonl", "gz": root / "documents/c.jsonl.gz"}
    shutil.copy(plain, files["plain"])
    subprocess.run(["gzip", "-k", files["plain"]], check=True)
    size = sum(len(row["text"].encode()) for row in rows(plain)) / 1e6
    print(f"{size:.0f} MB of text, {files['plain'].stat().st_size / 1e6:.0f} MB of JSON lines, {files['gz'].stat().st_size / 1e6:.0f} MB as gz")

    quiet = args.quiet.split()
    if quiet:
        global timed
        timed = functools.partial(timed, before=quiet)

    def table(title, contestants, runs=args.runs):
        print(f"\n## {title}\n\n| | s | MB/s | peak MiB | times dolma |\n|---|--:|--:|--:|--:|")
        results = {name: [] for name in contestants}
        for _ in range(runs):
            for name, run in contestants.items():
                results[name].append(run()[0])
        base = None
        for name, figures in results.items():
            seconds = statistics.median(run[0] for run in figures)
            base = base or seconds
            peak = max(run[1] for run in figures)
            print(f"| {name} | {seconds:.2f} | {size / seconds:.0f} | {peak:.0f} | {base / seconds:.1f} |", flush=True)

    ngrams = ["--ngrams", "13", "--overlap", str(OVERLAP)]
    for kind, file in files.items():
        table(f"Lines, {kind}", {
            "dolma, 5 million expected": lambda: dolma(args, root, file, 0, 5_000_000),
            "lanebloom": lambda: ours(args, root, file, []),
            "lanebloom, 2 threads": lambda: ours(args, root, file, [], 2),
            "lanebloom, the lines without them": lambda: ours(args, root, file, [], 1, False),
            "the same, 2 threads": lambda: ours(args, root, file, [], 2, False),
        })
    print(f"\ngzip -dc: {timed(['gzip', '-dc', files['gz']])[0]:.2f} s")
    for kind, file in files.items():
        table(f"13-grams, {kind}", {
            "dolma, 15 million expected": lambda: dolma(args, root, file, 13, 15_000_000),
            "lanebloom --like-dolma": lambda: ours(args, root, file, [*ngrams, "--like-dolma"]),
            "the same, 2 threads": lambda: ours(args, root, file, [*ngrams, "--like-dolma"], 2),
            "lanebloom": lambda: ours(args, root, file, ngrams),
            "lanebloom --words ascii": lambda: ours(args, root, file, [*ngrams, "--words", "ascii"]),
            "the same, 2 threads ": lambda: ours(args, root, file, [*ngrams, "--words", "ascii"], 2),
        }, args.ngram_runs)

    print("\n## Decisions\n")
    for name, length, options in [("lines", 0, []), ("13-grams", 13, [*ngrams, "--like-dolma"])]:
        expected = 15_000_000 if length else 5_000_000
        _, theirs = dolma(args, root, files["plain"], length, expected)
        _, our = ours(args, root, files["plain"], options, 2)
        differ, number, removed = compare(plain, theirs, our)
        print(f"{name}: {removed} of {number} pieces go, {differ} decisions differ from dolma's")
        assert differ <= 20 * RATE * number + 3, "more than rates explain"
        if not length:
            lost, kept, new = wrong(plain, our)
            print(f"{name}: {lost} of {new} new pieces go by mistake; {kept} that were seen stay")
            assert kept == 0 and lost <= 10 * RATE * new + 3
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
