// Spark's BloomFilter under the measurements of benches/spark.rs, which starts this by
// `java -cp spark-sketch.jar SparkPeer.java KEYS VERSION long|string` and asks, a line at a time:
//
//   put ROUND        a new filter for the keys at 1%, and all keys of the round in it
//   contains ROUND   as many keys, half of them in the filter of the round, in no order
//   present ROUND    as many keys, all of them in it
//                    -> nanoseconds, how many were found or new
//
// Key i is a number or 24 characters; both are made, untimed, as `Key` of spark.rs makes them.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.spark.util.sketch.BloomFilter;

public class SparkPeer {
    static long number(long i) {
        long z = (i + 1) * 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    static String string(long number) {
        char[] chars = "user:id-0000000000000000".toCharArray();
        for (int i = 23; i >= 8; i--) {
            chars[i] = Character.forDigit((int) number & 15, 16);
            number >>>= 4;
        }
        return new String(chars);
    }

    /** The key with this number among those of a request. */
    static long key(String work, long round, int i, int n) {
        long put = round * n;
        if (work.equals("put")) return number(put + i);
        long random = number(~(put + i));
        if (work.equals("contains") && random < 0) return number((1L << 50) + put + i);
        return number(put + Long.remainderUnsigned(random, n));
    }

    static int puts(BloomFilter filter, long[] keys) {
        int count = 0;
        for (long key : keys) {
            if (filter.putLong(key)) count++;
        }
        return count;
    }

    static int lookups(BloomFilter filter, long[] keys) {
        int count = 0;
        for (long key : keys) {
            if (filter.mightContainLong(key)) count++;
        }
        return count;
    }

    static int puts(BloomFilter filter, String[] keys) {
        int count = 0;
        for (String key : keys) {
            if (filter.putString(key)) count++;
        }
        return count;
    }

    static int lookups(BloomFilter filter, String[] keys) {
        int count = 0;
        for (String key : keys) {
            if (filter.mightContainString(key)) count++;
        }
        return count;
    }

    static BloomFilter filter;

    static String run(String work, long round, int n, BloomFilter.Version version, boolean ofLongs) {
        long[] longs = new long[ofLongs ? n : 0];
        String[] strings = new String[ofLongs ? 0 : n];
        for (int i = 0; i < n; i++) {
            long key = key(work, round, i, n);
            if (ofLongs) longs[i] = key;
            else strings[i] = string(key);
        }
        boolean put = work.equals("put");
        if (put) {
            filter = BloomFilter.create(version, n, BloomFilter.optimalNumOfBits(n, 0.01), 0);
        }
        System.gc();
        long start = System.nanoTime();
        int count;
        if (ofLongs) count = put ? puts(filter, longs) : lookups(filter, longs);
        else count = put ? puts(filter, strings) : lookups(filter, strings);
        return (System.nanoTime() - start) + " " + count;
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        BloomFilter.Version version = BloomFilter.Version.valueOf(args[1]);
        boolean ofLongs = args[2].equals("long");
        // Until the compiler has done what it does.
        for (int i = 0; i < 10; i++) {
            for (String work : new String[] {"put", "contains", "present"}) {
                run(work, 1000 + i, 1 << 18, version, ofLongs);
            }
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            System.out.println(run(words[0], Long.parseLong(words[1]), n, version, ofLongs));
        }
    }
}
