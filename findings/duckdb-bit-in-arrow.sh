#!/usr/bin/env bash
# DuckDB 2.0.1 and pyarrow 26.0.1: a column of the type BIT leaves DuckDB by Arrow as plain binary
# of DuckDB's own: a byte with the number of unused bits, then the bits, the unused ones set. '0101'
# is the bytes 04 f5. Nothing in the schema says so. BIGNUM, by the same way, is marked as
# arrow.opaque, and fetchall() gives the text '0101'.
#
# Seen: "binary None b'\x04\xf5'", "extension<arrow.opaque[...]>", "0101".
#
# Who fills a filter of membership from an Arrow column and looks up the values of fetchall() finds
# none of them. CAST(x AS VARCHAR) in SQL makes both the same text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import duckdb
import pyarrow

bits = pyarrow.table(duckdb.sql("select '0101'::bit as x"))
(value,) = bits["x"].to_pylist()
print(bits.schema.field("x").type, bits.schema.field("x").metadata, value)
assert bits.schema.field("x").type == pyarrow.binary() and value == b"\x04\xf5"
number = pyarrow.table(duckdb.sql("select 17::bignum as x"))
print(number.schema.field("x").type)
assert "arrow.opaque" in str(number.schema.field("x").type)
((text,),) = duckdb.sql("select '0101'::bit as x").fetchall()
print(text)
assert text == "0101"
PYTHON
