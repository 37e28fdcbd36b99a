#!/usr/bin/env bash
# stream-lib 2.9.8, BloomFilter(keys, rate): no filter has a lower rate than about 8.5e-4, whatever
# rate is asked for, and nothing says so.
#
# Package: stream 2.9.8, whose jar lies in PySpark 4.3.0. Needs Java 17 and python3 with pip; 456
# MB are downloaded, Spark is not started.
#
# One expects a filter of the rate that is the second argument, or an exception. The class looks
# the rate up in a table that ends at 15 bits per key. A lower rate gets the last row: 15 bits and
# 8 hash functions. A rate of 1e-6 needs 28.8 bits per key. Besides, add(String) and add(byte[])
# hash a text by different bytes, UTF-16 and those that are given, so a key must be asked for as it
# was added.
#
# Output seen (100,000 keys, 2,000,000 others):
#   rate 0.01: 10.0 bits per key, 5 hash functions, found 0.00943
#   rate 1e-04: 15.0 bits per key, 8 hash functions, found 0.000853
#   rate 1e-06: 15.0 bits per key, 8 hash functions, found 0.000853
#   a String that was asked for by its bytes in UTF-8: false
#
# A user of membership filters meets it who puts such a filter before a store and counts on one
# needless read in a million: there are 850 times as many.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip download -q --no-deps --no-binary=:all: --no-cache-dir pyspark==4.3.0
tar --extract --no-same-owner --file pyspark-*.tar.gz --strip-components=3 pyspark-4.3.0/deps/jars/stream-2.9.8.jar
cat > Check.java <<'J'
import com.clearspring.analytics.stream.membership.BloomFilter;
import java.nio.charset.StandardCharsets;

public class Check {
    static final int KEYS = 100_000;

    /** The share of other keys that a filter for this rate finds. */
    static double found(String rate) {
        BloomFilter filter = new BloomFilter(KEYS, Double.parseDouble(rate));
        for (int i = 0; i < KEYS; i++) {
            filter.add("key " + i);
        }
        int others = 2_000_000, found = 0;
        for (int i = 0; i < others; i++) {
            found += filter.isPresent("other " + i) ? 1 : 0;
        }
        double share = (double) found / others, bits = (double) filter.buckets() / KEYS;
        int functions = filter.getHashCount();
        System.out.printf("rate %s: %.1f bits per key, %d hash functions, found %.3g%n", rate, bits, functions, share);
        return share;
    }

    public static void main(String[] args) {
        double usual = found("0.01"), low = found("1e-04"), lowest = found("1e-06");
        BloomFilter filter = new BloomFilter(KEYS, 0.01);
        filter.add("key");
        boolean byBytes = filter.isPresent("key".getBytes(StandardCharsets.UTF_8));
        System.out.println("a String that was asked for by its bytes in UTF-8: " + byBytes);
        if (usual > 0.0102 || low < 7e-4 || lowest != low || byBytes) {
            throw new AssertionError("the behaviour is another one");
        }
    }
}
J
java -cp "$work/*" Check.java
