// The other end of tests/servers/redis_peers.rs: what Java programs do with Guava's hashing and a bitmap of Redis, one command after another and
// without scripts. Takes the server's port, then requests on standard input, and answers on standard output, all numbers big-endian:
//
//   string: int length, UTF-8
//   g: string base, string cursor, long insertions, double rate; a filter that grows
//   j: string key, int insertions, double rate, int seconds; one bitmap through pipelines, which expires
//      after either: byte, 1 to insert and 0 to ask; int number of keys, strings
//      -> long bits, int functions, then for each key byte answer (of an insert: whether a bit changed), and its offsets as longs
//
// Guava's murmur3_128 hashes; the sizes are by the formulas that Guava had up to 2024.

import com.google.common.hash.Hashing;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

public class RedisBitmaps {
    static DataInputStream fromRedis;
    static DataOutputStream toRedis;

    static void send(Object... words) throws IOException {
        toRedis.writeBytes("*" + words.length + "\r\n");
        for (Object word : words) {
            byte[] bytes = word.toString().getBytes(StandardCharsets.UTF_8);
            toRedis.writeBytes("$" + bytes.length + "\r\n");
            toRedis.write(bytes);
            toRedis.writeBytes("\r\n");
        }
    }

    /** An integer, or a string as one; null where there is nothing. */
    static Long receive() throws IOException {
        toRedis.flush();
        String reply = line();
        switch (reply.charAt(0)) {
            case ':':
                return Long.parseLong(reply.substring(1));
            case '$':
                return reply.equals("$-1") ? null : (Long) Long.parseLong(line());
            case '+':
                return 0L;
            default:
                throw new IOException(reply);
        }
    }

    static String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = fromRedis.read(); c != '\r'; c = fromRedis.read()) {
            if (c < 0) {
                throw new EOFException();
            }
            line.append((char) c);
        }
        fromRedis.read();
        return line.toString();
    }

    static Long call(Object... words) throws IOException {
        send(words);
        return receive();
    }

    static long optimalNumOfBits(long n, double p) {
        return (long) (-n * Math.log(p) / (Math.log(2) * Math.log(2)));
    }

    static int optimalNumOfHashFunctions(long n, long m) {
        return Math.max(1, (int) Math.round((double) m / n * Math.log(2)));
    }

    static long[] offsets(String key, long bits, int functions) {
        byte[] hash = Hashing.murmur3_128().hashString(key, StandardCharsets.UTF_8).asBytes();
        ByteBuffer halves = ByteBuffer.wrap(hash).order(ByteOrder.LITTLE_ENDIAN);
        long combined = halves.getLong();
        long step = halves.getLong();
        long[] offsets = new long[functions];
        for (int i = 0; i < functions; i++) {
            offsets[i] = (combined & Long.MAX_VALUE) % bits;
            combined += step;
        }
        return offsets;
    }

    interface Filter {
        boolean insert(long[] offsets) throws IOException;

        boolean contains(long[] offsets) throws IOException;
    }

    /** One bitmap for each number up to the cursor, and the next one when the last is more than half full. */
    static final class Growing implements Filter {
        final String base;
        final String cursor;
        final long bits;

        Growing(String base, String cursor, long bits) throws IOException {
            this.base = base;
            this.cursor = cursor;
            this.bits = bits;
            if (call("BITCOUNT", name(last())) == 0) {
                call("SETBIT", name(last()), bits - 1, 0);
            }
        }

        String name(long number) {
            return base + "-" + number;
        }

        long last() throws IOException {
            Long last = call("GET", cursor);
            return last == null ? 0 : last;
        }

        public boolean contains(long[] offsets) throws IOException {
            long last = last();
            for (long number = 0; number <= last; number++) {
                boolean all = true;
                for (long offset : offsets) {
                    all &= call("GETBIT", name(number), offset) == 1;
                }
                if (all) {
                    return true;
                }
            }
            return false;
        }

        public boolean insert(long[] offsets) throws IOException {
            boolean changed = false;
            if (last() == 0 || !contains(offsets)) {
                for (long offset : offsets) {
                    changed |= call("SETBIT", name(last()), offset, 1) == 0;
                }
            }
            if (call("BITCOUNT", name(last())) * 2 > bits) {
                call("SETBIT", name(call("INCR", cursor)), bits - 1, 0);
            }
            return changed;
        }
    }

    static final class Piped implements Filter {
        final String key;
        final int seconds;

        Piped(String key, int seconds) {
            this.key = "bf:" + key;
            this.seconds = seconds;
        }

        public boolean contains(long[] offsets) throws IOException {
            for (long offset : offsets) {
                send("GETBIT", key, offset);
            }
            boolean all = true;
            for (long ignored : offsets) {
                all &= receive() == 1;
            }
            return all;
        }

        public boolean insert(long[] offsets) throws IOException {
            for (long offset : offsets) {
                send("SETBIT", key, offset, 1);
            }
            boolean changed = false;
            for (long ignored : offsets) {
                changed |= receive() == 0;
            }
            call("EXPIRE", key, seconds);
            return changed;
        }
    }

    static String string(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    public static void main(String[] args) throws IOException {
        Socket socket = new Socket("127.0.0.1", Integer.parseInt(args[0]));
        socket.setTcpNoDelay(true);
        fromRedis = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        toRedis = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        for (int request = in.read(); request >= 0; request = in.read()) {
            Filter filter;
            long bits;
            int functions;
            switch (request) {
                case 'g': {
                    String base = string(in);
                    String cursor = string(in);
                    long insertions = in.readLong();
                    long exact = optimalNumOfBits(insertions, in.readDouble());
                    functions = optimalNumOfHashFunctions(insertions, exact);
                    bits = (exact + 63) / 64 * 64;
                    filter = new Growing(base, cursor, bits);
                    break;
                }
                case 'j': {
                    String key = string(in);
                    int insertions = in.readInt();
                    double rate = in.readDouble();
                    int length = (int) (-insertions * Math.log(rate) / (Math.log(2) * Math.log(2)));
                    bits = length;
                    functions = optimalNumOfHashFunctions(insertions, length);
                    filter = new Piped(key, in.readInt());
                    break;
                }
                default:
                    throw new IOException("no request: " + request);
            }
            boolean insert = in.readByte() == 1;
            out.writeLong(bits);
            out.writeInt(functions);
            for (int left = in.readInt(); left > 0; left--) {
                long[] offsets = offsets(string(in), bits, functions);
                out.writeBoolean(insert ? filter.insert(offsets) : filter.contains(offsets));
                for (long offset : offsets) {
                    out.writeLong(offset);
                }
            }
            out.flush();
        }
    }
}
