// Guava's own BloomFilter, for tests/formats/guava_jvm.rs: requests on the standard input, answers on the standard output, both as
// java.io.DataInput and DataOutput have them. First the name and the version of the library: length (int), UTF-8. A request is a byte:
//
//   'm' make a filter: strategy (byte), expected insertions (long), rate (double), keys
//       -> for each key what put said (byte), the filter
//   'a' ask a filter: length (int) and bytes of its stream, keys
//       -> for each key what mightContain said (byte), the filter
//   'u' unite two filters: length and bytes of each stream
//       -> 1 and the union, or 0 where Guava throws
//   'f' formulas: expected insertions (long), rate (double)
//       -> the number of longs and of hash functions (long, int), or 0 and 0 where Guava throws
//
// Keys are a funnel (byte, see FUNNELS), their number (int), and the keys; a filter is the length of its stream (int), the stream,
// expectedFpp (double), and approximateElementCount (long, -1 where Guava throws).

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class Guava {
    interface Reader {
        Object read(DataInputStream in) throws IOException;
    }

    static final class Kind {
        final Funnel<Object> funnel;
        final Reader reader;

        @SuppressWarnings("unchecked")
        Kind(Funnel<?> funnel, Reader reader) {
            this.funnel = (Funnel<Object>) funnel;
            this.reader = reader;
        }
    }

    /** All that a PrimitiveSink takes. */
    static final class Compound {
        byte aByte;
        short aShort;
        char aChar;
        int anInt;
        long aLong;
        float aFloat;
        double aDouble;
        boolean aBoolean;
        byte[] bytes;
        String string;
        String chars;
    }

    static final Funnel<Compound> COMPOUND = (key, into) -> {
        into.putByte(key.aByte).putShort(key.aShort).putChar(key.aChar).putInt(key.anInt).putLong(key.aLong);
        into.putFloat(key.aFloat).putDouble(key.aDouble).putBoolean(key.aBoolean).putBytes(key.bytes);
        into.putString(key.string, StandardCharsets.UTF_8).putUnencodedChars(key.chars);
    };

    static final Kind[] FUNNELS = {
        new Kind(Funnels.integerFunnel(), DataInputStream::readInt),
        new Kind(Funnels.longFunnel(), DataInputStream::readLong),
        new Kind(Funnels.byteArrayFunnel(), Guava::readBytes),
        new Kind(Funnels.stringFunnel(StandardCharsets.UTF_8), Guava::readString),
        new Kind(Funnels.unencodedCharsFunnel(), Guava::readString),
        new Kind(Funnels.stringFunnel(StandardCharsets.UTF_16), Guava::readString),
        new Kind(Funnels.stringFunnel(StandardCharsets.UTF_16LE), Guava::readString),
        new Kind(Funnels.sequentialFunnel(Funnels.integerFunnel()), in -> readList(in, DataInputStream::readInt)),
        new Kind(
            Funnels.sequentialFunnel(Funnels.stringFunnel(StandardCharsets.UTF_8)),
            in -> readList(in, Guava::readString)),
        new Kind(COMPOUND, Guava::readCompound),
    };

    static byte[] readBytes(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }

    static String readString(DataInputStream in) throws IOException {
        char[] units = new char[in.readInt()];
        for (int i = 0; i < units.length; i++) {
            units[i] = in.readChar();
        }
        return new String(units);
    }

    static List<Object> readList(DataInputStream in, Reader reader) throws IOException {
        int length = in.readInt();
        List<Object> list = new ArrayList<>(length);
        for (int i = 0; i < length; i++) {
            list.add(reader.read(in));
        }
        return list;
    }

    static Compound readCompound(DataInputStream in) throws IOException {
        Compound key = new Compound();
        key.aByte = in.readByte();
        key.aShort = in.readShort();
        key.aChar = in.readChar();
        key.anInt = in.readInt();
        key.aLong = in.readLong();
        key.aFloat = in.readFloat();
        key.aDouble = in.readDouble();
        key.aBoolean = in.readBoolean();
        key.bytes = readBytes(in);
        key.string = readString(in);
        key.chars = readString(in);
        return key;
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        writeVersion(out);
        for (int request = in.read(); request >= 0; request = in.read()) {
            switch (request) {
                case 'm': {
                    int strategy = in.readByte();
                    long insertions = in.readLong();
                    double rate = in.readDouble();
                    Kind kind = FUNNELS[in.readByte()];
                    BloomFilter<Object> filter = create(kind.funnel, insertions, rate, strategy);
                    for (Object key : readList(in, kind.reader)) {
                        out.writeBoolean(filter.put(key));
                    }
                    write(out, filter);
                    break;
                }
                case 'a': {
                    byte[] stream = readBytes(in);
                    Kind kind = FUNNELS[in.readByte()];
                    BloomFilter<Object> filter = BloomFilter.readFrom(new ByteArrayInputStream(stream), kind.funnel);
                    for (Object key : readList(in, kind.reader)) {
                        out.writeBoolean(filter.mightContain(key));
                    }
                    write(out, filter);
                    break;
                }
                case 'u': {
                    Funnel<Object> funnel = FUNNELS[0].funnel;
                    BloomFilter<Object> one = BloomFilter.readFrom(new ByteArrayInputStream(readBytes(in)), funnel);
                    BloomFilter<Object> other = BloomFilter.readFrom(new ByteArrayInputStream(readBytes(in)), funnel);
                    if (one.isCompatible(other)) {
                        one.putAll(other);
                        out.writeByte(1);
                        write(out, one);
                    } else {
                        out.writeByte(0);
                    }
                    break;
                }
                case 'f': {
                    BloomFilter<Object> filter = null;
                    try {
                        filter = create(FUNNELS[0].funnel, in.readLong(), in.readDouble(), 1);
                    } catch (IllegalArgumentException e) {
                        // Told by the zeros.
                    }
                    byte[] stream = filter == null ? new byte[6] : stream(filter);
                    out.writeLong((stream.length - 6) / 8);
                    out.writeInt(stream[1] & 0xff);
                    break;
                }
                default:
                    throw new IOException("no request: " + request);
            }
            out.flush();
        }
    }

    /** BloomFilter.create with a strategy, which it keeps to itself. */
    @SuppressWarnings("unchecked")
    static BloomFilter<Object> create(Funnel<Object> funnel, long insertions, double rate, int ordinal) throws Exception {
        Class<?> strategy = Class.forName("com.google.common.hash.BloomFilter$Strategy");
        Object constant = Class.forName("com.google.common.hash.BloomFilterStrategies").getEnumConstants()[ordinal];
        Method create =
            BloomFilter.class.getDeclaredMethod("create", Funnel.class, long.class, double.class, strategy);
        create.setAccessible(true);
        try {
            return (BloomFilter<Object>) create.invoke(null, funnel, insertions, rate, constant);
        } catch (InvocationTargetException e) {
            throw (RuntimeException) e.getCause();
        }
    }

    static byte[] stream(BloomFilter<Object> filter) throws IOException {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        filter.writeTo(stream);
        return stream.toByteArray();
    }

    static void write(DataOutputStream out, BloomFilter<Object> filter) throws IOException {
        byte[] stream = stream(filter);
        out.writeInt(stream.length);
        out.write(stream);
        out.writeDouble(filter.expectedFpp());
        long count = -1;
        try {
            count = filter.approximateElementCount();
        } catch (ArithmeticException e) {
            // The filter is full.
        }
        out.writeLong(count);
    }

    static void writeVersion(DataOutputStream out) throws IOException {
        Properties maven = new Properties();
        try (InputStream file = BloomFilter.class.getResourceAsStream("/META-INF/maven/com.google.guava/guava/pom.properties")) {
            maven.load(file);
        }
        byte[] version = ("Guava " + maven.getProperty("version")).getBytes(StandardCharsets.UTF_8);
        out.writeInt(version.length);
        out.write(version);
        out.flush();
    }
}
