"""Makes crates/formats/tests/data/split_block.json: small filters by pyarrow, DuckDB and pymilvus.

    python golden.py > split_block.json

ci/engines.sh runs it, and compares what it prints with the file. tests/parquet_rs.rs asks
parquet-rs for the same bytes.
"""

import json
import struct
import tempfile

import duckdb
import pyarrow
import pyarrow.parquet
from pymilvus.client.bloom_filter import BloomFilterBuilder


def bits(letters, values):
    """The bits of floats, as whole numbers."""
    return [struct.unpack("<" + letters[0], struct.pack("<" + letters[1], value))[0] for value in values]


FLOATS = [-1.5, 0.25, 1.0, 3.0, 1e10, 1e-3]
STRINGS = ["", "a", "ann", "12345678", "ünïcödé", "thirty-two bytes of text, exactly"]
FIXED = [bytes(range(i, i + 16)) for i in range(6)]
# name, type of Arrow, values, type of Rust, keys
COLUMNS = [
    ("i32", pyarrow.int32(), values := [-(2**31), -1, 0, 1, 7, 2**31 - 1], "i32", values),
    ("i64", pyarrow.int64(), values := [-(2**63), -1, 0, 1, 10**15, 2**63 - 1], "i64", values),
    ("f32", pyarrow.float32(), FLOATS, "bits of f32", bits("If", FLOATS)),
    ("f64", pyarrow.float64(), FLOATS, "bits of f64", bits("Qd", FLOATS)),
    ("s", pyarrow.string(), STRINGS, "str", STRINGS),
    ("fixed", pyarrow.binary(16), FIXED, "[u8; 16] in hex", [key.hex() for key in FIXED]),
    # Filters of several blocks.
    ("more", pyarrow.int64(), values := list(range(-30, 70)), "i64", values),
    ("words", pyarrow.string(), values := [f"key {i}" for i in range(60)], "str", values),
    ("large", pyarrow.int64(), values := list(range(0, 6000, 10)), "i64", values),
]


def filter_of(path):
    """The bytes of the one filter of a file."""
    query = f"SELECT bloom_filter_offset, bloom_filter_length FROM parquet_metadata('{path}')"
    [(offset, length)] = duckdb.sql(query).fetchall()
    with open(path, "rb") as file:
        return file.read()[offset : offset + length]


def parquet(folder):
    for name, kind, values, rust, keys in COLUMNS:
        rows = pyarrow.table({name: pyarrow.array(values, kind)})
        value = f"hex({name})::UUID" if name == "fixed" else name
        # DuckDB makes filters of chunks with a dictionary, so the values repeat.
        duck = f"{folder}/duck.parquet"
        duckdb.sql(
            f"COPY (SELECT {value} AS {name} FROM rows, range(20)) TO '{duck}' "
            "(DICTIONARY_SIZE_LIMIT 100000, BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.05)"
        )
        by_duck = filter_of(duck)
        # The engines choose different sizes. This finds the number of values by which pyarrow
        # comes to DuckDB's.
        arrow = f"{folder}/arrow.parquet"
        for ndv in (1 << shift for shift in range(16)):
            options = {name: {"ndv": ndv, "fpp": 0.01}}
            pyarrow.parquet.write_table(rows, arrow, bloom_filter_options=options, use_dictionary=False)
            by_arrow = filter_of(arrow)
            if len(by_arrow) >= len(by_duck):
                break
        engines = {f"pyarrow {pyarrow.__version__}": by_arrow, f"DuckDB {duckdb.__version__}": by_duck}
        for made in sorted(set(engines.values())):
            by = [engine for engine, filter in engines.items() if filter == made]
            yield {"by": by, "type": rust, "keys": keys, "hex": made.hex()}


def mbf1():
    numbers = [0, 1, -1, 42, 2**63 - 1, -(2**63), 1234567890123]
    for n, rate, int64, utf8 in [
        (7, 0.005, numbers, []),
        (6, 0.005, [], STRINGS),
        (13, 0.0001, numbers, STRINGS),
        (0, 0.05, [], []),
        (1, 0.05, list(range(-20, 20)), []),
        (100, 0.01, list(range(1000, 1100)), []),
    ]:
        builder = BloomFilterBuilder(n, rate).add_int64_batch(int64).add_string_batch(utf8)
        yield {"n": n, "rate": rate, "int64": int64, "utf8": utf8, "hex": builder.build().hex()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        print('{\n  "what": "Split-block filters. Made by integrations/parquet/golden.py.",')
        for name, cases in [("parquet", parquet(folder)), ("mbf1 by pymilvus 3.0.2", mbf1())]:
            lines = ",\n".join("    " + json.dumps(case, ensure_ascii=False) for case in cases)
            print(f'  "{name}": [\n{lines}\n  ]{"," if name == "parquet" else ""}')
        print("}")


main()
