#!/usr/bin/env bash
# Tarantool 2.6.0: `get` of a decimal key 7.5 does not find the row 7.50, if a Bloom filter or a hash
# index is asked, and a hash index takes both as two rows of a primary key.
#
# Package: tarantool 2.6.0-1.2+b1, that of Debian 12 (amd64). Needs apt-get with Debian's lists.
#
# 7.5 == 7.50 is true in Tarantool, and a tree index, which compares keys, finds each by the other.
# One expects the same of all indexes. The engine vinyl writes runs of rows with a Bloom filter by
# default (bloom_fpr 0.05), and a filter and a hash index take the bytes of a key. Tarantool keeps
# the zeros at the end of a decimal, so that 7.5 and 7.50 have other bytes. Until a run is written,
# all is found: the rows are lost by the snapshot. bloom_fpr = 1, which means no filter, finds all.
#
# Output seen, for 200 rows 1.50 to 200.50 (rows found as 1.50 and as 1.5, insert of 7.5):
#   vinyl, no filter        200, 200, refused
#   vinyl, before snapshot  200, 200, refused
#   vinyl, after snapshot   200, 4, refused
#   memtx, tree             200, 200, refused
#   memtx, hash             200, 0, taken as a second row
#
# A user of membership filters meets it whose keys are prices or amounts: clients send 7.5 and 7.50 as
# they please, and tests in memory pass. A filter must hash one form of equal keys.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
