"""Runs what docs/LANGUAGES.md says: see ci/languages.sh.

    ci/languages.py packages REGISTRY             the packages of a registry that the page names
    ci/languages.py check FOLDER [LANGUAGE...]    the page beside the crate
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path("docs/LANGUAGES.md").read_text(encoding="utf-8")
SEEDS = [0, 1, 42, 2**31 - 1, 2**31, 0x9E3779B1, 2**32 - 1]
JARS = "/usr/share/java/guava.jar:/usr/share/java/commons-codec.jar:/usr/share/java/lz4-java.jar"
DEBIAN = {
    "commons-codec": "libcommons-codec-java",
    "guava": "libguava-java",
    "lz4-java": "liblz4-java",
    "github.com/spaolacci/murmur3": "golang-github-spaolacci-murmur3-dev",
    "github.com/twmb/murmur3": "golang-github-twmb-murmur3-dev",
    "github.com/cespare/xxhash": "golang-github-cespare-xxhash-dev",
    "php": "php-cli",
    "murmurhash3": "ruby-murmurhash3",
    "Digest::MurmurHash3::PurePerl": "libdigest-murmurhash3-pureperl-perl",
}

# Keys that a program could take for something else than a line.
ODD_LINES = [" a b ", "a,b", '"a"', 'say "a"', "a\u2028b", "\\N", "#a", "'", "a\tb", "NULL", "17"]

# The programs of the page, and the suffixes of their files.
PROGRAMS = {
    "Python": "py",
    "JavaScript": "cjs",
    "Java": "java",
    "Go": "go",
    "PHP": "php",
    "Ruby": "rb",
    "ClickHouse": "sql",
    "DuckDB": "py",
    "Any language": "py",
}

# The page


def section(heading):
    """The lines below a heading, up to the next heading of its level."""
    level = re.escape(heading.split(" ")[0])
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{2,{level.count('#')}}} |\Z)", PAGE, re.M | re.S)
    assert found, f"docs/LANGUAGES.md has no heading {heading!r}"
    return found[1]


def table(heading):
    rows = [line.strip("|").split("|") for line in section(heading).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in row] for row in rows]
    assert len(rows) > 2, f"{heading!r} has no table"
    names = rows[0]
    for row in rows[2:]:
        assert len(row) == len(names), f"{heading!r}: {len(row)} cells, not {len(names)}: {row}"
    return [dict(zip(names, row)) for row in rows[2:]]


def code(cell):
    """The first code of a cell, or an empty text."""
    found = re.search(r"`([^`]+)`", cell)
    return found[1] if found else ""


def package(row):
    """Name, version, registry."""
    found = re.fullmatch(r"`([^`]+)` (\S+) \((PyPI|npm|Debian|crates\.io)\b[^)]*\).*", row["package"])
    assert found, f"not a package: {row['package']!r}"
    return found.groups()


def calls():
    return table("## Calls"), table("## Parquet's filters")


def vectors():
    """(bytes, whether they are a text, hash under seed 0, hash under 0x9e3779b1, XXH64)"""
    rows = []
    for row in table("## Test vectors"):
        key, data = code(row["key"]), bytes.fromhex(code(row["bytes"]))
        if key[0] == '"':
            expected = json.loads(key).encode()
        else:
            number, sign, bits = re.fullmatch(r"(-?\d+)([iu])(\d+)", key).groups()
            expected = int(number).to_bytes(int(bits) // 8, "little", signed=sign == "i")
        assert data == expected, f"the bytes of {key} are {expected.hex()}, not {data.hex()}"
        hashes = [int(code(row[name]), 16) for name in ("seed 0", "seed 0x9e3779b1", "XXH64")]
        rows.append((data, key[0] == '"', *hashes))
    return rows


# A program in each language: it evaluates expressions for each case of a file. A case is a line of
# the key's bytes in hexadecimal digits and the seed. The program prints a line for each value: the
# number of the expression, n and a number, s and a text, b and bytes in hexadecimal digits, or u.

TEMPLATES = {
    "Python": (
        "run.py",
        """
import sys
IMPORT
def show(value):
    if value is None:
        return "u"
    return f"n{value}" if isinstance(value, int) else "b" + value.hex() if isinstance(value, bytes) else "s" + value
calls = [EACH]
for line in open("cases"):
    data, seed = line.rstrip("\\n").split(" ")
    data, seed = bytes.fromhex(data), int(seed)
    key = data.decode(errors="replace")
    for n, call in enumerate(calls):
        print(n, show(call(data, key, seed)))
""",
        "lambda data, key, seed: CALL,",
    ),
    "JavaScript": (
        "run.cjs",
        """
const show = (value) => value === undefined ? "u"
    : typeof value === "number" || typeof value === "bigint" ? "n" + value
    : typeof value === "string" ? "s" + value : "b" + Buffer.from(value).toString("hex");
(async () => {
    IMPORT;
    const calls = [EACH];
    for (const line of require("node:fs").readFileSync("cases", "latin1").split("\\n").slice(0, -1)) {
        const [hex, digits] = line.split(" ");
        const data = new Uint8Array(Buffer.from(hex, "hex")), seed = Number(digits);
        const key = new TextDecoder().decode(data);
        for (const [n, call] of calls.entries()) console.log(n, show(await call(data, key, seed)));
    }
})().catch((error) => { console.error(error); process.exitCode = 1; });
""",
        "async (data, key, seed) => CALL,",
    ),
    "Java": (
        "Run.java",
        """
IMPORT
class Run {
    static String show(Object value) {
        return value instanceof Number ? "n" + value
            : value instanceof String ? "s" + value : "b" + java.util.HexFormat.of().formatHex((byte[]) value);
    }
    public static void main(String[] args) throws Exception {
        for (String line : java.nio.file.Files.readAllLines(java.nio.file.Path.of("cases"))) {
            String hex = line.substring(0, line.indexOf(' '));
            int seed = Integer.parseUnsignedInt(line.substring(hex.length() + 1));
            byte[] data = new byte[hex.length() / 2];
            for (int i = 0; i < data.length; i++) data[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
            String key = new String(data, java.nio.charset.StandardCharsets.UTF_8);
            EACH
        }
    }
}
""",
        'System.out.println("NUMBER " + show(CALL));',
    ),
    "Go": (
        "run.go",
        """
package main
import ("bufio"; "encoding/hex"; "encoding/binary"; "fmt"; "os"; "strings"; "strconv")
IMPORT
func show(values ...any) string {
    switch value := values[0].(type) {
    case []byte: return fmt.Sprintf("b%x", value)
    case string: return "s" + value
    default: return fmt.Sprint("n", value)
    }
}
func main() {
    _ = binary.LittleEndian
    file, _ := os.Open("cases")
    lines := bufio.NewScanner(file)
    for lines.Scan() {
        parts := strings.Split(lines.Text(), " ")
        data, _ := hex.DecodeString(parts[0])
        wide, _ := strconv.ParseUint(parts[1], 10, 32)
        seed := uint32(wide)
        _, _ = data, seed
        EACH
    }
}
""",
        'fmt.Println(NUMBER, show(CALL))',
    ),
    "PHP": (
        "run.php",
        """<?php
IMPORT
function show($value) {
    return is_int($value) ? "n$value" : (ctype_xdigit($value) ? "s$value" : 'b' . bin2hex($value));
}
foreach (file('cases', FILE_IGNORE_NEW_LINES) as $line) {
    [$data, $seed] = explode(' ', $line);
    [$data, $seed] = [hex2bin($data), intval($seed)];
    EACH
}
""",
        "echo NUMBER, ' ', show(CALL), \"\\n\";",
    ),
    "Ruby": (
        "run.rb",
        """
IMPORT
def show(value)
  return "n#{value}" if value.is_a?(Integer)
  value.match?(/\\A[0-9a-f]+\\z/) ? "s#{value}" : "b" + value.unpack1("H*")
end
File.foreach("cases", chomp: true) do |line|
  hex, _, seed = line.partition(" ")
  data, seed = [hex].pack("H*"), seed.to_i
  EACH
end
""",
        'puts "NUMBER #{show(CALL)}"',
    ),
    "Perl": (
        "run.pl",
        """
use strict;
use warnings;
IMPORT
sub show { $_[0] =~ /^[0-9a-f]+$/ ? "s$_[0]" : 'b' . unpack 'H*', $_[0] }
open my $cases, '<', 'cases' or die;
while (my $line = <$cases>) {
    my ($data, $seed) = $line =~ /^(\\w*) (\\d+)$/;
    $data = pack 'H*', $data;
    EACH
}
""",
        "print 'NUMBER ', show(CALL), \"\\n\";",
    ),
    "ClickHouse": (
        "run.py",
        '''
import chdb
for n, call in enumerate([EACH]):
    print(chdb.query(f"""SELECT '{n} ' || if(toTypeName(x) LIKE '%String%', 'b' || lower(hex(x)), 'n' || toString(x))
    FROM (SELECT {call} AS x FROM (SELECT unhex(substringIndex(line, ' ', 1)) AS data
    FROM file('cases', LineAsString, 'line String'))) SETTINGS max_threads = 1""", "TSVRaw"), end="")
''',
        '"""CALL""",',
    ),
    "DuckDB": (
        "run.py",
        """
import duckdb
cases = [line.rstrip("\\n").split(" ") for line in open("cases")]
keys = [bytes.fromhex(data).decode(errors="replace") for data, seed in cases]
calls = [EACH]
for key in keys:
    for n, call in enumerate(calls):
        print(n, f"n{duckdb.execute(f'SELECT {call} FROM (SELECT ? AS key)', [key]).fetchone()[0]}")
""",
        '"""CALL""",',
    ),
    "Rust": (
        "src/main.rs",
        """
trait Show { fn show(&self) -> String; }
impl Show for u64 { fn show(&self) -> String { format!("n{self}") } }
impl Show for u32 { fn show(&self) -> String { format!("n{self}") } }
impl<const N: usize> Show for [u8; N] {
    fn show(&self) -> String { "b".to_string() + &self.map(|byte| format!("{byte:02x}")).concat() }
}
fn main() {
    for line in std::fs::read_to_string("cases").unwrap().lines() {
        let (hex, seed) = line.split_once(' ').unwrap();
        let seed: u32 = seed.parse().unwrap();
        let data = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..][..2], 16).unwrap());
        let data = &data.collect::<Vec<_>>()[..];
        EACH
    }
}
""",
        'println!("NUMBER {}", (CALL).show());',
    ),
}


class Machine:
    def __init__(self, folder):
        self.folder = folder.resolve()
        self.python = str(self.folder / "venv/bin/python")
        self.environment = {
            **os.environ,
            "GO111MODULE": "off",
            "GOPATH": "/usr/share/gocode",
            "GOCACHE": str(self.folder / "go"),
            "PYTHONUTF8": "1",
            "LC_ALL": "C.UTF-8",
        }
        self.commands = {
            "py": [self.python],
            "cjs": ["node"],
            "java": ["java", "-cp", JARS],
            "go": ["go", "run"],
            "php": ["php"],
            "rb": ["ruby"],
            "pl": ["perl"],
        }

    def write_manifest(self):
        """The manifest of the Rust programs, with the page's crates."""
        rows = [package(row) for row in table("## Calls")]
        crates = [f'{name} = "={version}"' for name, version, registry in rows if registry == "crates.io"]
        root = Path.cwd()
        crates += [f'lanebloom = {{ path = "{root}" }}', f'lanebloom-formats = {{ path = "{root}/crates/formats" }}']
        manifest = ["[package]", 'name = "languages"', 'edition = "2024"', "[workspace]", "[dependencies]", *crates]
        (self.folder / "Cargo.toml").write_text("\n".join(manifest) + "\n")

    def start(self, name, source, keys=None):
        """A program's output, by lines."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
        if name.endswith(".rs"):
            command = ["cargo", "run", "--quiet", "--manifest-path", "Cargo.toml"]
        else:
            command = [*self.commands[path.suffix[1:]], name]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, input=keys, capture_output=True)
        if done.returncode:
            sys.exit(f"{source}\n{done.stdout.decode()[-500:]}{done.stderr.decode()[-3000:]}\n{command} failed")
        return done.stdout.decode().split("\n")[:-1]

    def evaluate(self, language, imports, expressions, cases):
        """For each expression its values, one for each case."""
        name, program, each = TEMPLATES[language]
        lines = [each.replace("NUMBER", str(n)).replace("CALL", call) for n, call in enumerate(expressions)]
        program = program.replace("IMPORT", imports).replace("EACH", "\n".join(lines))
        (self.folder / "cases").write_text("".join(f"{data.hex()} {seed}\n" for data, seed, _ in cases))
        values = [[] for _ in expressions]
        for line in self.start(name, program):
            if re.match(r"\d+ [nsbu]", line):
                number, value = line.split(" ", 1)
                values[int(number)].append(value)
        assert all(len(some) == len(cases) for some in values), f"{language}: {[len(some) for some in values]} values"
        return values


def is_of_kind(value, form):
    """Whether a call returns what the page says."""
    if form.startswith("number"):
        low = -(2**63) if form.startswith("number with sign") else 0
        return value[0] == "n" and low <= int(value[1:]) < low + 2**64
    kind = {"digits": "s", "bytes, lowest first": "b", "bytes, highest first": "b"}[form.split(";")[0]]
    return re.fullmatch(rf"{kind}[0-9a-f]{{16}}", value) is not None


def hash_of(value, form=""):
    """The hash that a value is."""
    kind, rest = value[0], value[1:]
    if kind == "b":
        return int.from_bytes(bytes.fromhex(rest), "little" if "lowest first" in form else "big")
    return None if kind == "u" else int(rest, 10 if kind == "n" else 16) % 2**64


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def check(self, name, fault):
        if fault:
            self.failed += 1
            print(f"FAILED {name}: {fault}")
        else:
            self.passed += 1
            print(f"ok     {name}")


def show(case, value, expected):
    data, seed, _ = case
    return f"bytes {data.hex() or 'none'}, seed {seed:#x}: {value}, and the crate {expected:016x}"


def wrong_call(form, cases, values, hashes):
    """Why a call is not as the page says, or None."""
    for case, value, expected in zip(cases, values, hashes):
        if "seed 0 only" in form and case[1] or "seeds below 2^31 only" in form and case[1] >= 2**31:
            continue
        if not is_of_kind(value, form) or hash_of(value, form) != expected:
            return show(case, value, expected)
    return None


def wrong_neighbour(note, form, cases, values, hashes):
    """Why a call that is to return another number is not as the page says, or None."""
    for case, value, expected in zip(cases, values, hashes):
        data, seed, _ = case
        if "beyond ASCII" in note:
            differs = not data.isascii()
        elif "bytes above 0x7f behind the last whole 16 bytes" in note:
            # (The sign of the last byte of eight is shifted out.)
            tail = data[len(data) // 16 * 16 :]
            differs = seed != 0 or not (tail[:7] + tail[8:]).isascii()
        elif "seeds from 2^31" in note:
            differs = seed >= 2**31
        elif "seeds other than 0" in note:
            differs = seed != 0
        elif data:
            differs = True
        else:
            continue
        if (hash_of(value, form) != expected) != differs:
            return ("is the hash for " if differs else "is another number for ") + show(case, value, expected)
    return None


def cases_of(vectors):
    """Keys of all lengths, and random bytes, under all seeds."""
    texts = [data for data, is_text, *_ in vectors if is_text] + [text.encode() for text in ODD_LINES]
    texts += [("customer:0042/orders?page=17&" * 2)[:n].encode() for n in range(1, 49)]
    texts += [(letter * n).encode() for letter in "é東🦀" for n in range(1, 18)]
    random.seed(1)
    others = [data for data, is_text, *_ in vectors if not is_text] + [random.randbytes(n) for n in range(1, 40)]
    return [(data, seed, kind) for seed in SEEDS for kind, some in ((True, texts), (False, others)) for data in some]


def check_rows(machine, checks, rows, cases, hashes):
    for row in rows:
        language, (name, version, registry) = row["language"], package(row)
        title = f"{language} {name} {version}"
        if registry == "Debian":
            query = ["dpkg-query", "-W", "-f", "${Version}", DEBIAN[name]]
            installed = subprocess.run(query, capture_output=True, text=True).stdout
            if not re.match(rf"(\d+:)?{re.escape(version)}(?!\d)", installed):
                checks.check(title, f"{DEBIAN[name]} has the version {installed or 'none: ci/install.sh languages'}")
                continue
        call, form = code(row["call"]), row["returns"]
        cell = row["calls that return another number"]
        pieces = re.split(r"(?:^|(?<=\. ))(?=`[^`]+`: )", cell)[1:]
        neighbours = [re.fullmatch(r"`([^`]+)`: (.*?)(?:\. )?", piece).groups() for piece in pieces]
        assert "".join(pieces) == cell and (call or neighbours), f"not a row: {row}"
        assert row["call"] == (f"`{call}`" if call else "none") and bool(call) == bool(form), f"not a row: {row}"
        expressions = [call] * bool(call) + [neighbour for neighbour, _ in neighbours]
        values = machine.evaluate(language, code(row["import"]), expressions, cases)
        notes = [None] * bool(call) + [note for _, note in neighbours]
        for expression, note, found in zip(expressions, notes, values):
            takes_text = re.search(r"\bkey\b", expression)
            at = [i for i, case in enumerate(cases) if case[2] or not takes_text]
            some = [cases[i] for i in at], [found[i] for i in at], [hashes[i] for i in at]
            if note is None:
                checks.check(f"{title}: {expression}", wrong_call(form, *some))
            else:
                checks.check(f"{title}, not {expression}", wrong_neighbour(note, form, *some))


def check_program(machine, checks, name, suffix, keys, reference):
    """A program of the page prints the crate's hashes of the keys that it reads."""
    source = re.search(r"^```\w+\n(.*?)^```$", section(f"### {name}"), re.M | re.S)[1]
    lines = b"".join(key + b"\n" for key in keys)
    (machine.folder / "keys.txt").write_bytes(lines)
    if suffix == "sql":
        seed = 0
        source = f"import chdb\nprint(chdb.query({source!r}, 'TSVRaw'), end='')"
        printed = machine.start("program.py", source)
    else:
        seed = int(re.search(r"(?i)seed = (0x[0-9a-f]+)", source)[1], 16)
        printed = machine.start(f"program.{suffix}", source, lines)
    expected = [f"0x{reference[key, seed][0]:016x}" for key in keys]
    checks.check(f"program of {name}", None if printed == expected else f"{printed[:3]}..., and not {expected[:3]}...")


def main():
    if sys.argv[1] == "packages":
        names = {package(row) for rows in calls() for row in rows if package(row)[2] == sys.argv[2]}
        joined = {"PyPI": "==", "npm": "@"}[sys.argv[2]]
        print("\n".join(sorted(name + joined + version for name, version, _ in names)))
        return
    machine, checks = Machine(Path(sys.argv[2])), Checks()
    chosen, languages = sys.argv[3:], [*TEMPLATES, *(name for name in PROGRAMS if name not in TEMPLATES)]
    if unknown := [name for name in chosen if name not in languages]:
        sys.exit(f"not a language of the page: {unknown[0]!r}. Languages: {', '.join(languages)}")
    known = vectors()
    cases = cases_of(known)
    machine.write_manifest()
    of_crate = [
        "lanebloom::KeyHasher::hash_key(&lanebloom::Murmur3::with_seed(seed), data)",
        "lanebloom_formats::splitblock::hash(data)",
    ]
    hashes = [[hash_of(value) for value in some] for some in machine.evaluate("Rust", "", of_crate, cases)]

    reference = {(data, seed): both for (data, seed, _), *both in zip(cases, *hashes)}
    for data, _, *written in known:
        murmur3, parquet = reference[data, 0]
        expected = [murmur3, reference[data, 0x9E3779B1][0], parquet]
        fault = None if written == expected else " ".join(f"{hash:016x}" for hash in expected) + " by the crate"
        checks.check(f"vector {data.hex() or 'none'}", fault)
    for rows, expected in zip(calls(), hashes):
        check_rows(machine, checks, [row for row in rows if not chosen or row["language"] in chosen], cases, expected)
    versions = {package(row)[:2] for rows in calls() for row in rows}
    for name, version in re.findall(r"`(?:pip|npm) install (\S+?)(?:==|@)([0-9.]+)`", PAGE):
        checks.check(f"install {name} {version}", None if (name, version) in versions else "not in the tables")
    for row in table("## Integers"):
        if not chosen or row["language"] in chosen:
            call = code(row["bytes"])
            (value,), *_ = machine.evaluate(row["language"], "", [call], [(b"", 0, True)])
            checks.check(f"{row['language']}: {call}", None if value == "b1100000000000000" else value)
    lines = [data for data, is_text, *_ in known if is_text and data] + [text.encode() for text in ODD_LINES]
    for name, suffix in PROGRAMS.items():
        if not chosen or name in chosen:
            check_program(machine, checks, name, suffix, lines, reference)

    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(1 if checks.failed or not checks.passed else 0)


if __name__ == "__main__":
    main()
