#!/usr/bin/env bash
# Guava and Commons Codec compute two hashes by MurmurHash3_x64_128, for half of all seeds.
#
# Packages: Guava 33.6.0 and Commons Codec 1.22.0, the jars in PySpark 4.3.0 (PyPI; needs a JDK);
# mmh3 5.3.1 (PyPI).
#
# Hashing.murmur3_128(int seed) and MurmurHash3.hash128x64(data, offset, length, int seed) are the
# same function with a seed of 32 bits. One expects them to agree. They do for seeds below 2^31. For
# the others, a Java int is negative: Guava extends its sign to 64 bits before it starts, the
# reference in C, mmh3 and hash128x64 do not. No seed of theirs gives Guava's hashes.
# (Commons Codec's deprecated hash128 extends the sign too.)
#
# Output seen:
#   seed 7fffffff: Guava 7da207ce78db0433, Commons Codec 7da207ce78db0433, mmh3 7da207ce78db0433
#   seed 9e3779b1: Guava 43e65f3a9f70c76c, Commons Codec eefc35a85743085d, mmh3 eefc35a85743085d
#
# A user of membership filters meets it whose Java services hash with Guava and others with anything
# else. Seed 0 and small seeds pass all tests. Under 0x9e3779b1, a constant that many programs use,
# no key is found. A seed below 2^31 avoids it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyspark==4.3.0 mmh3==5.3.1
jars=$("$work/venv/bin/python" -c "import os, pyspark; print(os.path.dirname(pyspark.__file__) + '/jars')")
cat > "$work/Hashes.java" <<'J'
import com.google.common.hash.Hashing;
import java.nio.charset.StandardCharsets;
import org.apache.commons.codec.digest.MurmurHash3;

class Hashes {
    public static void main(String[] args) {
        byte[] data = "customer:0042".getBytes(StandardCharsets.UTF_8);
        for (int seed : new int[] {0x7fffffff, 0x9e3779b1}) {
            long guava = Hashing.murmur3_128(seed).hashBytes(data).asLong();
            long codec = MurmurHash3.hash128x64(data, 0, data.length, seed)[0];
            System.out.printf("%08x %016x %016x%n", seed, guava, codec);
        }
    }
}
J
java -cp "$jars/guava-33.6.0-jre.jar:$jars/commons-codec-1.22.0.jar" "$work/Hashes.java" > "$work/hashes"
cat > "$work/check.py" <<'P'
import sys

import mmh3

for line, agrees in zip(open(sys.argv[1]).read().splitlines(), (True, False), strict=True):
    seed, guava, codec = line.split()
    reference = f"{mmh3.hash64('customer:0042', int(seed, 16), signed=False)[0]:016x}"
    print(f"seed {seed}: Guava {guava}, Commons Codec {codec}, mmh3 {reference}")
    assert codec == reference and (guava == reference) == agrees
P
"$work/venv/bin/python" "$work/check.py" "$work/hashes"
