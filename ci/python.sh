#!/usr/bin/env bash
# The Python package: a wheel and an sdist, the tests with all libraries and with types in a clean
# environment, then the tests that need none of them on every CPython of pyenv, and where Debian's
# packages are to be had on 3.14. (About 15 minutes on two busy cores; half of it downloads and
# installs the libraries)
#
# usage: ci/python.sh [FOLDER]
#        ci/python.sh spark
#        ci/python.sh free-threaded [FOLDER]
#
# The wheel and the sdist stay in FOLDER, if it is named. `spark` runs only the tests of
# lanebloom.spark, with three versions of PySpark, of 450 MB each. They need a JDK 17.
# `free-threaded` builds a wheel for CPython 3.13 without the interpreter's lock, and CPython itself
# the first time (ci/fetch/python_free_threaded.sh), and runs all tests with what has wheels for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mode=
case ${1-} in spark | free-threaded) mode=$1 && shift ;; esac
out=${1:-$work/dist}
python=${PYTHON:-python3}
manifest=integrations/python/Cargo.toml

if [[ $mode == free-threaded ]]; then
    python=$(ci/fetch/python_free_threaded.sh)
    # PyO3 0.28 is the last version that supports 3.13t. Of what the package calls, only the
    # constructor of a capsule differs.
    mkdir "$work/crate"
    manifest=$work/crate/Cargo.toml
    cp -r integrations/python/{Cargo.toml,Cargo.lock,pyproject.toml,README.md,LICENSE*,build.rs,python,src} "$work/crate"
    sed -i -E 's|^(pyo3.*)"0\.30"|\1"0.28"|; s|path = "\.\./\.\."|path = "'"$PWD"'"|; s|path = "\.\./\.\./|path = "'"$PWD"'/|' "$manifest"
    sed -i -E 's/new_with_value\(py, (\w+), (c"\w+")\)/new(py, \1, Some(\2.into()))/' "$work/crate/src/arrow.rs"
    cargo update -q --manifest-path "$manifest" -p pyo3 -p pyo3-build-config
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/python3.13t
    export CARGO_TARGET_DIR PYTHON_GIL=0
fi

"$python" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/pip" install -q -U pip 'maturin>=1.9,<2'
"$bin/maturin" build --release --locked --strip -q -i "$bin/python" -m "$manifest" -o "$out"

if [[ $mode == free-threaded ]]; then
    export LANEBLOOM_ROOT=$PWD
    # The others have no wheels for it: their tests are skipped.
    "$bin/pip" install -q --only-binary :all: "$(ls "$out"/lanebloom-*-cp313t-*.whl)" numpy pandas pyarrow hypothesis pytest typing_extensions
    cp -r integrations/python/tests "$work/tests"
    cd "$work/tests"
    "$bin/python" -c 'import lanebloom, sys; assert not sys._is_gil_enabled()'
    timeout 1800 "$bin/python" -m pytest -q -p no:cacheprovider .
    exit
fi

if [[ $mode == spark ]]; then
    export LANEBLOOM_ROOT=$PWD
    # Spark 3.5 and 4.0 have version 1 of the format, and no arrow_udf.
    for spark in '3.5.*' '4.0.*' '4.*'; do
        echo "PySpark $spark"
        "$python" -m venv "$work/spark"
        # PySpark 3.5 has NumPy 1, which pyarrow 26 refuses.
        arrow=pyarrow
        [[ $spark != 3.* ]] || arrow='pyarrow<26'
        "$work/spark/bin/pip" install -q "$(ls "$out"/lanebloom-*.whl)" "pyspark[connect]==$spark" 'pandas<3' "$arrow" pytest setuptools
        cp -r integrations/python/tests "$work/tests"
        (cd "$work/tests" && "$work/spark/bin/python" -m pytest -q -p no:cacheprovider test_spark.py)
        rm -rf "$work/spark" "$work/tests"
    done
    exit
fi

PYO3_PYTHON=$bin/python cargo clippy -q --locked --manifest-path "$manifest" --all-targets -- -D warnings
"$bin/maturin" sdist -m "$manifest" -o "$out"
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
cp integrations/python/tests/*.{py,txt} "$work/tests"
export LANEBLOOM_ROOT=$PWD

"$bin/pip" install -q "$wheel" -r integrations/python/tests/requirements.txt
(cd "$work/tests" && "$bin/python" -m pytest -q -p no:cacheprovider .)
(cd "$work/tests" && "$bin/python" -m mypy --strict typed.py)
(cd "$work/tests" && "$bin/python" -m mypy.stubtest lanebloom._lanebloom --ignore-disjoint-bases --allowlist stubtest.txt)
(cd "$work/tests" && "$bin/pyright" --pythonpath "$bin/python" typed.py)

# The package that the sdist builds is importable. (The dependencies are compiled again: not
# optimized here.)
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
