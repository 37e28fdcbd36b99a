// Guava's BloomFilter under the measurements of benches/guava.rs, which starts this by `java -cp guava.jar GuavaPeer.java long|string`
// and asks, a line at a time:
//
//   load FILE BASE              read the filter, in which keys 0..BASE are
//   keys contains|put FROM N    make the keys of the next run, untimed
//   contains|put THREADS        -> nanoseconds, how many were found or new, bytes allocated
//   fpp                         -> the bits of expectedFpp
//
// Key i is a number or 24 characters; both are made as `Key` of guava.rs makes them.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;

public class GuavaPeer {
    static final com.sun.management.ThreadMXBean THREADS =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

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

    /** Half of the keys that are asked for are in the filter. */
    static long asked(long i, long base) {
        long n = number(i);
        return n < 0 ? number(Long.remainderUnsigned(n, base)) : number(i | 1L << 62);
    }

    /** One type of keys in a process, as in most services, so that the compiler sees one funnel. */
    interface Run {
        void keys(boolean contains, long from, int n);
        int contains(int from, int to);
        int put(int from, int to);
    }

    static BloomFilter<Long> longs;
    static BloomFilter<CharSequence> strings;
    static long base;

    static final class Longs implements Run {
        long[] keys;

        public void keys(boolean contains, long from, int n) {
            keys = new long[n];
            for (int i = 0; i < n; i++) {
                keys[i] = contains ? asked(from + i, base) : number(base + from + i);
            }
        }

        public int contains(int from, int to) {
            int found = 0;
            for (int i = from; i < to; i++) {
                if (longs.mightContain(keys[i])) found++;
            }
            return found;
        }

        public int put(int from, int to) {
            int changed = 0;
            for (int i = from; i < to; i++) {
                if (longs.put(keys[i])) changed++;
            }
            return changed;
        }
    }

    static final class Strings implements Run {
        String[] keys;

        public void keys(boolean contains, long from, int n) {
            keys = new String[n];
            for (int i = 0; i < n; i++) {
                keys[i] = string(contains ? asked(from + i, base) : number(base + from + i));
            }
        }

        public int contains(int from, int to) {
            int found = 0;
            for (int i = from; i < to; i++) {
                if (strings.mightContain(keys[i])) found++;
            }
            return found;
        }

        public int put(int from, int to) {
            int changed = 0;
            for (int i = from; i < to; i++) {
                if (strings.put(keys[i])) changed++;
            }
            return changed;
        }
    }

    static int slice(Run run, boolean contains, int from, int to) {
        return contains ? run.contains(from, to) : run.put(from, to);
    }

    static void measure(Run run, boolean contains, int threads, int n) throws Exception {
        CyclicBarrier begin = new CyclicBarrier(threads + 1);
        CountDownLatch end = new CountDownLatch(threads);
        int[] counts = new int[threads];
        long[] bytes = new long[threads], starts = new long[threads], ends = new long[threads];
        for (int t = 0; t < threads; t++) {
            int thread = t;
            new Thread(() -> {
                try {
                    long id = Thread.currentThread().getId();
                    int from = (int) ((long) n * thread / threads), to = (int) ((long) n * (thread + 1) / threads);
                    begin.await();
                    long before = THREADS.getThreadAllocatedBytes(id);
                    starts[thread] = System.nanoTime();
                    counts[thread] = slice(run, contains, from, to);
                    ends[thread] = System.nanoTime();
                    bytes[thread] = THREADS.getThreadAllocatedBytes(id) - before;
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                } finally {
                    end.countDown();
                }
            }).start();
        }
        begin.await();
        end.await();
        // From when the first begins until the last ends.
        long start = Long.MAX_VALUE, time = 0, count = 0, allocated = 0;
        for (int t = 0; t < threads; t++) {
            start = Math.min(start, starts[t]);
        }
        for (int t = 0; t < threads; t++) {
            count += counts[t];
            allocated += bytes[t];
            time = Math.max(time, ends[t] - start);
        }
        System.out.println(time + " " + count + " " + allocated);
    }

    public static void main(String[] args) throws Exception {
        boolean ofLongs = args[0].equals("long");
        Run run = ofLongs ? new Longs() : new Strings();

        // Until the compiler has done what it does: on a filter of its own.
        longs = BloomFilter.create(Funnels.longFunnel(), 1 << 20, 0.01);
        strings = BloomFilter.create(Funnels.stringFunnel(StandardCharsets.UTF_8), 1 << 20, 0.01);
        base = 1 << 18;
        for (int pass = 0; pass < 10; pass++) {
            for (boolean contains : new boolean[] {false, true}) {
                run.keys(contains, pass << 18, 1 << 18);
                for (int i = 0; i < 1 << 18; i += 1 << 12) {
                    slice(run, contains, i, i + (1 << 12));
                }
            }
        }

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int n = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "load":
                    base = Long.parseLong(words[2]);
                    try (InputStream file = new BufferedInputStream(new FileInputStream(words[1]), 1 << 16)) {
                        if (ofLongs) {
                            longs = BloomFilter.readFrom(file, Funnels.longFunnel());
                        } else {
                            strings = BloomFilter.readFrom(file, Funnels.stringFunnel(StandardCharsets.UTF_8));
                        }
                    }
                    System.out.println("loaded");
                    break;
                case "keys":
                    n = Integer.parseInt(words[3]);
                    run.keys(words[1].equals("contains"), Long.parseLong(words[2]), n);
                    System.gc();
                    System.out.println("made");
                    break;
                case "fpp":
                    double fpp = ofLongs ? longs.expectedFpp() : strings.expectedFpp();
                    System.out.println(Double.doubleToLongBits(fpp));
                    break;
                default:
                    measure(run, words[0].equals("contains"), Integer.parseInt(words[1]), n);
            }
        }
    }
}
