#!/usr/bin/env bash
# DataSketches 6.2.0 for Java, BloomFilter: an empty String that was added is absent, and two
# filters that were built alike have no union.
#
# Package: datasketches-java 6.2.0, whose jar lies in PySpark 4.3.0. Needs Java 17 and python3 with
# pip; 456 MB are downloaded, Spark is not started.
#
# A Bloom filter has no false negatives, so one expects that query(x) is true after update(x). For
# an empty String update does nothing, and query says false: a filter that got only that key is
# empty. An empty byte[] is a key. 0.0 and -0.0 are two keys, though HllSketch of the same library
# counts them as one value. And createByAccuracy without a seed draws a random one for each filter,
# so that union throws.
#
# Output seen:
#   empty String: false, isEmpty true; empty byte[]: true
#   0.0 added, -0.0 asked for: false; values that HllSketch counts: 1
#   union of two filters that were built alike: SketchesArgumentException
#
# A user of membership filters meets it who fills filters on several workers and merges them (pass
# one seed to all), or whose column has empty texts or negative zeros: rows of a join are lost.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip download -q --no-deps --no-binary=:all: --no-cache-dir pyspark==4.3.0
tar --extract --no-same-owner --file pyspark-*.tar.gz --strip-components=3 \
    pyspark-4.3.0/deps/jars/datasketches-{java-6.2.0,memory-3.0.2}.jar
cat > Check.java <<'J'
import org.apache.datasketches.common.SketchesArgumentException;
import org.apache.datasketches.filters.bloomfilter.BloomFilter;
import org.apache.datasketches.filters.bloomfilter.BloomFilterBuilder;
import org.apache.datasketches.hll.HllSketch;

public class Check {
    static BloomFilter filter() {
        return BloomFilterBuilder.createByAccuracy(1000, 1e-9);
    }

    public static void main(String[] args) {
        BloomFilter filter = filter();
        filter.update("");
        boolean text = filter.query(""), isEmpty = filter.isEmpty();
        filter.update(new byte[0]);
        boolean bytes = filter.query(new byte[0]);
        System.out.println("empty String: " + text + ", isEmpty " + isEmpty + "; empty byte[]: " + bytes);

        filter.update(0.0);
        boolean zero = filter.query(-0.0);
        HllSketch counter = new HllSketch(12);
        counter.update(0.0);
        counter.update(-0.0);
        long values = Math.round(counter.getEstimate());
        System.out.println("0.0 added, -0.0 asked for: " + zero + "; values that HllSketch counts: " + values);

        String union = "done";
        try {
            filter.union(filter());
        } catch (SketchesArgumentException e) {
            union = e.getClass().getSimpleName();
        }
        System.out.println("union of two filters that were built alike: " + union);
        if (text || !isEmpty || !bytes || zero || values != 1 || union.equals("done")) {
            throw new AssertionError("the behaviour is another one");
        }
    }
}
J
java -cp "$work/*" Check.java
