// Spark's own BloomFilter, for tests/formats/spark_jvm.rs: requests on the standard input, answers
// on the standard output, both as java.io.DataInput and DataOutput have them. First the
// name and the version of the library: length (int), UTF-8. A request is a byte:
//
//   'm' make a filter: version (byte), seed (int), expected items (long), bits (long), keys
//       -> for each key what put said (byte), the filter
//   'a' ask a filter: length (int) and bytes of its stream, keys
//       -> for each key what mightContain said (byte), the filter
//   'u', 'i' merge or intersect two filters: length and bytes of each stream
//       -> 1 and the first one, or 0 where Spark throws
//   'f' formulas: expected items (long), rate (double)
//   'b' formulas: expected items (long), bits (long)
//       -> the number of longs and of hash functions (int, int), or 0 and 0 where Spark throws
//
// Keys are a kind (byte, see KINDS), their number (int), and the keys; a filter is the length of
// its stream (int), the stream, expectedFpp (double), and cardinality (long).

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.spark.util.sketch.BloomFilter;
import org.apache.spark.util.sketch.IncompatibleMergeException;

public class Spark {
    interface Kind {
        Object read(DataInputStream in) throws IOException;
    }

    static final Kind[] KINDS = {
        DataInputStream::readInt,
        DataInputStream::readLong,
        Spark::readBytes,
        Spark::readString,
        DataInputStream::readShort,
        DataInputStream::readByte,
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

    interface Put {
        boolean put(Object key);
    }

    static void each(DataInputStream in, DataOutputStream out, Put put) throws IOException {
        Kind kind = KINDS[in.readByte()];
        int length = in.readInt();
        for (int i = 0; i < length; i++) {
            out.writeBoolean(put.put(kind.read(in)));
        }
    }

    interface Make {
        BloomFilter make();
    }

    static void size(DataOutputStream out, Make make) throws IOException {
        ByteBuffer header = ByteBuffer.allocate(16);
        try {
            header = ByteBuffer.wrap(stream(make.make()));
        } catch (IllegalArgumentException e) {
            // Told by the zeros.
        }
        out.writeInt(header.getInt(12));
        out.writeInt(header.getInt(4));
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        writeVersion(out);
        for (int request = in.read(); request >= 0; request = in.read()) {
            switch (request) {
                case 'm': {
                    BloomFilter.Version version = in.readByte() == 1 ? BloomFilter.Version.V1 : BloomFilter.Version.V2;
                    int seed = in.readInt();
                    BloomFilter filter = BloomFilter.create(version, in.readLong(), in.readLong(), seed);
                    each(in, out, filter::put);
                    write(out, filter);
                    break;
                }
                case 'a': {
                    BloomFilter filter = BloomFilter.readFrom(readBytes(in));
                    each(in, out, filter::mightContain);
                    write(out, filter);
                    break;
                }
                case 'u':
                case 'i': {
                    BloomFilter one = BloomFilter.readFrom(readBytes(in));
                    BloomFilter other = BloomFilter.readFrom(readBytes(in));
                    boolean compatible = one.isCompatible(other);
                    try {
                        one = request == 'u' ? one.mergeInPlace(other) : one.intersectInPlace(other);
                        if (!compatible) throw new IllegalStateException("merged, but not compatible");
                    } catch (IncompatibleMergeException e) {
                        if (compatible) throw e;
                    }
                    out.writeBoolean(compatible);
                    if (compatible) {
                        write(out, one);
                    }
                    break;
                }
                case 'f': {
                    long items = in.readLong();
                    double rate = in.readDouble();
                    size(out, () -> BloomFilter.create(items, rate));
                    break;
                }
                case 'b': {
                    long items = in.readLong();
                    long bits = in.readLong();
                    size(out, () -> BloomFilter.create(items, bits));
                    break;
                }
                default:
                    throw new IOException("no request: " + request);
            }
            out.flush();
        }
    }

    static byte[] stream(BloomFilter filter) {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        try {
            filter.writeTo(stream);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        return stream.toByteArray();
    }

    static void write(DataOutputStream out, BloomFilter filter) throws IOException {
        byte[] stream = stream(filter);
        out.writeInt(stream.length);
        out.write(stream);
        out.writeDouble(filter.expectedFpp());
        out.writeLong(filter.cardinality());
    }

    static void writeVersion(DataOutputStream out) throws IOException {
        Properties maven = new Properties();
        try (InputStream file = BloomFilter.class.getResourceAsStream("/META-INF/maven/org.apache.spark/spark-sketch_2.13/pom.properties")) {
            maven.load(file);
        }
        byte[] version = ("Spark " + maven.getProperty("version")).getBytes(StandardCharsets.UTF_8);
        out.writeInt(version.length);
        out.write(version);
        out.flush();
    }
}
