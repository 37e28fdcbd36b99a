#!/usr/bin/env bash
# The Python package: a wheel and an sdist, the tests with all libraries and with types in a clean
# environment, then the tests that need none of them on every CPython of pyenv, and where Debian's
# packages are to be had on 3.14. (About 15 minutes on two busy cores; half of it downloads and
# installs the libraries)
#
# usage: ci/python.sh [FOLDER]
#        ci/python.sh spark
#
# The wheel and the sdist stay in FOLDER, if it is named. `spark` runs only the tests of
# lanebloom.spark, with three versions of PySpark, of 450 MB each. They need a JDK 17.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mode=
[[ ${1-} != spark ]] || { mode=spark && shift; }
out=${1:-$work/dist}
python=${PYTHON:-python3}

"$python" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/pip" install -q -U pip 'maturin>=1.9,<2'
"$bin/maturin" build --release --locked --strip -q -m crates/python/Cargo.toml -o "$out"

if [[ $mode == spark ]]; then
    export LANEBLOOM_ROOT=$PWD
    # Spark 3.5 and 4.0 have version 1 of the format, and no arrow_udf.
    for spark in '3.5.*' '4.0.*' '4.*'; do
        echo "PySpark $spark"
        "$python" -m venv "$work/spark"
        "$work/spark/bin/pip" install -q "$(ls "$out"/lanebloom-*.whl)" "pyspark[connect]==$spark" 'pandas<3' pyarrow pytest setuptools
        cp -r crates/python/tests "$work/tests"
        (cd "$work/tests" && "$work/spark/bin/python" -m pytest -q -p no:cacheprovider test_spark.py)
        rm -rf "$work/spark" "$work/tests"
    done
    exit
fi

"$bin/maturin" sdist -m crates/python/Cargo.toml -o "$out"
wheel=$(ls "$out"/lanebloom-*-cp39-abi3-*.whl)
size=$(stat -c %s "$wheel")
echo "${wheel##*/}: $size bytes"
if ((size >= 3000000)); then
    echo "the wheel has $size bytes, 3000000 or more"
    exit 1
fi

# The command, which writes files that the tests read.
target=$(cargo metadata --no-deps --format-version 1 | "$python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
cargo build -q -p lanebloom-cli
export LANEBLOOM_COMMAND=$target/debug/lanebloom

# The tests, without the source beside them: what is installed is what is tested.
mkdir "$work/tests"
cp crates/python/tests/*.{py,txt} "$work/tests"
export LANEBLOOM_ROOT=$PWD

"$bin/pip" install -q "$wheel" -r crates/python/tests/requirements.txt
(cd "$work/tests" && "$bin/python" -m pytest -q -p no:cacheprovider .)
(cd "$work/tests" && "$bin/python" -m mypy --strict typed.py)
(cd "$work/tests" && "$bin/python" -m mypy.stubtest lanebloom._lanebloom --ignore-disjoint-bases --allowlist stubtest.txt)
(cd "$work/tests" && "$bin/pyright" --pythonpath "$bin/python" typed.py)

# What the sdist builds is importable. (The dependencies are compiled again: not optimized here.)
PATH=$bin:$PATH "$bin/pip" wheel -q --no-deps --no-build-isolation -w "$work/from_sdist" "$out"/lanebloom-*.tar.gz
"$python" -m venv "$work/sdist"
"$work/sdist/bin/pip" install -q "$work"/from_sdist/*.whl
"$work/sdist/bin/python" -c 'import lanebloom; assert lanebloom.BloomFilter(9).add(1)'

pythons=("$HOME"/.pyenv/versions/3.*/bin/python)
[[ $(uname -m) != x86_64 ]] || ! command -v apt-get >/dev/null || pythons+=("$(ci/fetch/python.sh)")
for other in "${pythons[@]}"; do
    version=$("$other" -c 'import sys; print("%d.%02d" % sys.version_info[:2])') || continue
    [[ $version < 3.09 ]] && continue
    # (That of Debian has no pip.)
    "$other" -m venv --without-pip "$work/$version"
    "$other" -m ensurepip --version >/dev/null 2>&1 && "$other" -m venv "$work/$version"
    pip=("$work/$version/bin/pip")
    [[ -x ${pip[0]} ]] || pip=("$bin/pip" --python "$work/$version/bin/python")
    "${pip[@]}" install -q "$wheel" pytest hypothesis numpy
    echo "CPython $version"
    (cd "$work/tests" && "$work/$version/bin/python" -m pytest -q -p no:cacheprovider . --ignore test_recipes.py)
done
