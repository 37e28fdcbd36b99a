"""lanebloom-corpus beside dolma: called by ci/corpora.sh.

Both get the same JSON lines and write dolma's attributes. The contestants take turns; the tables
have medians. Decisions are compared document by document, for lines also with an exact set. With
--peers, text-dedup and datatrove get a part of the documents, and are compared with exact sets.
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
    rate = [] if "--against" in options else ["--rate", str(RATE)]
    command = [args.lanebloom, "-q", document, "-o", output, "--unit", "line", *kind, *rate]
    return timed([*command, "--threads", str(threads), *options]), output


def words(args, document, root):
    """The number of words by Unicode's rules."""
    command = [args.lanebloom, "-q", document, "--build", root / "words", "--ngrams", "1"]
    subprocess.run([*command, "--rate", "0.1", "--report", root / "words.json"], check=True)
    return json.loads((root / "words.json").read_text())["hashes"]


def call_peer(args, *arguments):
    return [args.peers, Path(__file__).with_name("corpora_peers.py"), *map(str, arguments)]


def part_of(document, to, most, by_lines=False):
    """The first documents, or their lines as documents. Returns the number of bytes of text."""
    total = number = 0
    with open(to, "w", encoding="utf-8") as file:
        for row in rows(document):
            for text in row["text"].split("\n") if by_lines else [row["text"]]:
                if text.strip():
                    file.write(json.dumps({"id": str(number), "text": text}) + "\n")
                    number, total = number + 1, total + len(text.encode())
            if total > most:
                break
    return total


def ids(path):
    return {row["id"] for row in rows(path)}


def peers(args, root, document, table):
    """Whole documents beside text-dedup, and their 13-grams beside datatrove."""
    part, kept, peer = root / "part.jsonl", root / "kept.jsonl", root / "peer"
    rate = ["--rate", str(RATE)]

    def our(*options):
        return timed([args.lanebloom, "-q", part, "-o", kept, *rate, "--threads", "1", *options])

    for name, by_lines, most in [("Whole documents", False, args.bytes), ("Lines as documents", True, args.peer_bytes)]:
        size = part_of(document, part, most, by_lines)
        texts = [row["text"] for row in rows(part)]
        new = len(set(texts))

        def text_dedup():
            shutil.rmtree(peer, ignore_errors=True)
            shutil.rmtree(f"{peer}.cache", ignore_errors=True)
            return timed(call_peer(args, "text-dedup", part, peer, *rate, "--expected", len(texts)))

        table(f"{name}, {size / 1e6:.0f} MB", {
            "text-dedup 0.4.0": lambda: (text_dedup(), None),
            "lanebloom": lambda: (our(), None),
        }, args.ngram_runs, size, words(args, part, root))
        found = subprocess.check_output(call_peer(args, "text-dedup", part, peer, "--count"))
        print(f"\nOf {len(texts)} texts {new} are different. text-dedup keeps {int(found)}, lanebloom {len(ids(kept))}.")

    size = part_of(document, part, args.peer_bytes)
    exact, rest = root / "exact.jsonl", [part, peer, "--bytes", 1 << 26]
    shutil.rmtree(peer, ignore_errors=True)
    ngrams = ["--ngrams", "13", "--overlap", str(OVERLAP)]
    table(f"13-grams of documents, {size / 1e6:.0f} MB", {
        "datatrove 0.10.1, its mask mended": lambda: (timed(call_peer(args, "datatrove", *rest, "--mend")), None),
        "lanebloom": lambda: (our(*ngrams), None),
    }, args.ngram_runs, size, words(args, part, root))
    mended = ids(peer)
    subprocess.run(call_peer(args, "datatrove", part, exact, "--exact"), check=True, stderr=subprocess.DEVNULL)
    subprocess.run(call_peer(args, "datatrove", *rest), check=True, stderr=subprocess.DEVNULL)
    exact, all_ids = ids(exact), ids(part)
    print(f"\nOf {len(all_ids)} documents an exact set of datatrove's 13-grams keeps {len(exact)}. datatrove keeps "
          f"{len(mended)} with the mended mask, {len(exact - mended)} of those too few, and {len(ids(peer))} as it is. "
          f"lanebloom, which cuts words by other rules, keeps {len(ids(kept))}, {len(exact - ids(kept))} of those too few.")


def huge(args, root, table):
    """One document of one piece; for dolma, which takes half a second a megabyte, a small one."""
    for size in (20e6, args.huge):
        one_huge(args, root, table, size)


def one_huge(args, root, table, size):
    document = root / "documents/huge.jsonl"
    word = "".join(f"word{number} " for number in range(100_000))
    with open(document, "w", encoding="utf-8") as file:
        file.write('{"id":"0","text":"')
        for _ in range(int(size / len(word)) + 1):
            file.write(word)
        file.write('"}\n')
    is_small, size, most = size < 1e8, document.stat().st_size, ["--max-record", "8G"]
    peer = {"dolma, lines": lambda: dolma(args, root, document, 0, 1000)} if is_small else {}
    table(f"One document of one piece, {size / 1e6:.0f} MB", {
        **peer,
        "lanebloom, lines": lambda: ours(args, root, document, most),
        "lanebloom, 13-grams": lambda: ours(args, root, document, [*most, "--ngrams", "13"]),
        "lanebloom, 13-grams, the text": lambda: ours(args, root, document, [*most, "--ngrams", "13"], 1, False),
    }, 1, size, None)
    document.unlink()


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
    parser.add_argument("--peers", help="a Python with datatrove and text-dedup")
    parser.add_argument("--peer-bytes", type=float, default=10e6, help="text for datatrove, and for text-dedup's lines")
    parser.add_argument("--huge", type=float, default=0, help="bytes of a document of one piece")
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

    number_of_words = words(args, plain, root)
    print(f"{number_of_words / 1e6:.1f} million words")

    def table(title, contestants, runs=args.runs, size=size * 1e6, number=number_of_words):
        print(f"\n## {title}\n\n| | s | MB/s | ns/word | peak MiB | times the first |\n|---|--:|--:|--:|--:|--:|")
        results = {name: [] for name in contestants}
        for _ in range(runs):
            for name, run in contestants.items():
                results[name].append(run()[0])
        base = None
        for name, figures in results.items():
            seconds = statistics.median(run[0] for run in figures)
            base = base or seconds
            peak = max(run[1] for run in figures)
            each = f"{seconds / number * 1e9:.1f}" if number else ""
            speed = size / seconds / 1e6
            speed = f"{speed:.0f}" if speed >= 10 else f"{speed:.1f}"
            print(f"| {name} | {seconds:.2f} | {speed} | {each} | {peak:.0f} | {base / seconds:.1f} |", flush=True)

    # A filter of one key: what reading, cutting, hashing and writing cost alone.
    one = root / "one"
    subprocess.run([args.lanebloom, "-q", "--unit", "line", "--build", one], input=b'{"text":"x"}', check=True)
    ngrams = ["--ngrams", "13", "--overlap", str(OVERLAP)]
    for kind, file in files.items():
        table(f"Lines, {kind}", {
            "dolma, 5 million expected": lambda: dolma(args, root, file, 0, 5_000_000),
            "lanebloom": lambda: ours(args, root, file, []),
            "lanebloom, 5 million expected": lambda: ours(args, root, file, ["--expected", "5M"]),
            "lanebloom, 2 threads": lambda: ours(args, root, file, [], 2),
            "lanebloom, the lines without them": lambda: ours(args, root, file, [], 1, False),
            "the same, 2 threads": lambda: ours(args, root, file, [], 2, False),
            "lanebloom, the lines, nothing to find": lambda: ours(args, root, file, ["--against", one], 1, False),
        })
    print(f"\ngzip -dc: {timed(['gzip', '-dc', files['gz']])[0]:.2f} s")
    for kind, file in files.items():
        table(f"13-grams, {kind}", {
            "dolma, 15 million expected": lambda: dolma(args, root, file, 13, 15_000_000),
            "lanebloom --like-dolma": lambda: ours(args, root, file, [*ngrams, "--like-dolma"]),
            "the same, 15 million expected": lambda: ours(args, root, file, [*ngrams, "--like-dolma", "--expected", "15M"]),
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
    files["gz"].unlink()
    if args.peers:
        peers(args, root, plain, table)
    files["plain"].unlink()
    if args.huge:
        huge(args, root, table)
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
