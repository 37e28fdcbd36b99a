#!/usr/bin/env bash
# Hadoop 3.5.0, CountingBloomFilter: `and` of two filters loses keys that both contain, and `or`
# invents copies.
#
# Package: hadoop-client-api 3.5.0, whose jar lies in PySpark 4.3.0. Needs Java 17 and python3 with
# pip; 456 MB are downloaded, Spark is not started.
#
# One expects that the intersection of two counting filters takes the lesser counter of each pair,
# and the union the greater one or the sum. Hadoop combines whole words of 64 bits, each with 16
# counters of 4 bits, by & and |. 1 & 2 is 0, so a key that was added once here and twice there is
# absent from the intersection. 1 | 2 is 3, so the union says three copies; and of 2 and 2 it says
# 2.
#
# Output seen:
#   and of 1 and 2 copies: absent; of 1 and 1: present
#   or of 1 and 2 copies: 3; of 2 and 2: 2
#   1000 keys, added 1 to 3 times here and there: 224 are absent from the intersection
#
# A user of membership filters meets it who keeps one filter per node or per day and asks for the
# keys of both: a filter without removals (BloomFilter of the same package) keeps them all.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip download -q --no-deps --no-binary=:all: --no-cache-dir pyspark==4.3.0
tar --extract --no-same-owner --file pyspark-*.tar.gz --strip-components=3 --wildcards 'pyspark-4.3.0/deps/jars/*'
cat > Check.java <<'J'
import org.apache.hadoop.util.bloom.CountingBloomFilter;
import org.apache.hadoop.util.bloom.Key;
import org.apache.hadoop.util.hash.Hash;

public class Check {
    static Key key(int i) {
        return new Key(("key " + i).getBytes());
    }

    /** A filter with the first keys, each with its number of copies. */
    static CountingBloomFilter filter(int... copies) {
        // Large enough that no two keys share a counter often.
        CountingBloomFilter filter = new CountingBloomFilter(1 << 20, 3, Hash.MURMUR_HASH);
        for (int i = 0; i < copies.length; i++) {
            for (int copy = 0; copy < copies[i]; copy++) {
                filter.add(key(i));
            }
        }
        return filter;
    }

    static boolean and(int a, int b) {
        CountingBloomFilter both = filter(a);
        both.and(filter(b));
        return both.membershipTest(key(0));
    }

    static int or(int a, int b) {
        CountingBloomFilter either = filter(a);
        either.or(filter(b));
        return either.approximateCount(key(0));
    }

    static String word(boolean present) {
        return present ? "present" : "absent";
    }

    public static void main(String[] args) {
        System.out.println("and of 1 and 2 copies: " + word(and(1, 2)) + "; of 1 and 1: " + word(and(1, 1)));
        System.out.println("or of 1 and 2 copies: " + or(1, 2) + "; of 2 and 2: " + or(2, 2));
        int[] here = new int[1000], there = new int[1000];
        for (int i = 0; i < 1000; i++) {
            here[i] = 1 + i % 3;
            there[i] = 1 + i / 3 % 3;
        }
        CountingBloomFilter both = filter(here);
        both.and(filter(there));
        int absent = 0;
        for (int i = 0; i < 1000; i++) {
            absent += both.membershipTest(key(i)) ? 0 : 1;
        }
        System.out.println("1000 keys, added 1 to 3 times here and there: " + absent + " are absent from the intersection");
        if (and(1, 2) || !and(1, 1) || or(1, 2) != 3 || or(2, 2) != 2 || absent < 200) {
            throw new AssertionError("the behaviour is another one");
        }
    }
}
J
java -cp "$work/*" Check.java 2> errors || { cat errors && exit 1; }
