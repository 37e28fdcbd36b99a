//! Compressed input, recognized by its first bytes.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;

const FORMATS: [Compress; 2] = [gzip, zstd];

/// They are unpacked side by side, but pass in order.
#[test]
fn many_compressed_files() {
    let folder = Folder::new();
    let mut random = Random(800);
    let (mut all, mut files, mut count) = (Vec::new(), Vec::new(), 0);
    for number in 0..20 {
        let (first, len) = (random.below(1000) as u64, 1 + random.below(2000) as u64);
        let mut lines = numbers(first, len);
        all.extend_from_slice(&lines);
        count += len;
        if number == 12 {
            // More bytes than are unpacked before its turn.
            let long = [&[b'l'; 1 << 20][..], b"\n"].concat();
            all.extend_from_slice(&long);
            lines.extend(long.repeat(20));
            count += 20;
        }
        let bytes = match random.below(3) {
            // (gzip is not optimized here.)
            _ if number == 12 => zstd(&lines),
            0 => lines,
            1 => gzip(&lines),
            _ => zstd(&lines),
        };
        files.push(folder.file(&format!("{number:02}"), bytes));
    }
    let expected = unique(&all);
    for flags in [&["--threads=1"][..], &["--threads=3"], &["--exact"]] {
        let run = Run::new(dedup(SURE).args(flags).args(&files), "");
        assert_eq!(summary(&run.errors)[0], count);
        assert_bytes(&run.output(), &expected, flags);
    }
    let to = folder.path("to");
    Run::new(dedup(SURE).args(&files).arg("--output-dir").arg(&to), "").output();
    let parts = (0..20).map(|number| fs::read(to.join(format!("{number:02}"))).unwrap());
    assert_bytes(&parts.collect::<Vec<_>>().concat(), &expected, "");

    // The output before an error is whole.
    let (first, last) = (folder.file("first", gzip(b"a\n")), folder.file("last", zstd(b"b\n")));
    let whole = gzip(&numbers(0, 1000));
    let damaged = folder.file("damaged", &whole[..whole.len() - 10]);
    let foreign = folder.file("foreign", b"\xfd7zXZ\0");
    for (wrong, part) in [
        (damaged, "damaged: "),
        (foreign, "xz"),
        (folder.path("missing"), "cannot read "),
    ] {
        let run = Run::new(dedup(SURE).args([&first, &wrong, &last]), "");
        let output = run.error(&[utf8(&wrong), part]);
        assert!(
            output.starts_with(b"a\n") && !output.contains(&b'b'),
            "{}",
            output.escape_ascii()
        );
    }
}

/// A byte-order mark before the header of CSV, of which each read gets one byte: the reader of gzip
/// and zstd gives what a member or a frame has.
#[test]
fn a_byte_order_mark_in_pieces() {
    for compress in FORMATS {
        let pieces = |input: &str| -> Vec<u8> { input.bytes().flat_map(|byte| compress(&[byte])).collect() };
        for flags in [SURE, &["--exact"]] {
            let passes = |input: &str, expected: &str| {
                let output = Run::new(dedup(flags).arg("--csv=k"), pieces(input)).output();
                assert_bytes(&output, expected.as_bytes(), (flags, input));
            };
            passes("\u{feff}k,v\n1,2\n1,3\n", "\u{feff}k,v\n1,2\n");
            // Another letter that begins with the same byte, and only a part of a mark.
            passes("\u{fb01}x,k\n1,2\n1,2\n", "\u{fb01}x,k\n1,2\n");
            let no_mark = [&b"\xef\xbb"[..], b"\xef", b""].map(|part| part.to_vec());
            for part in no_mark {
                let bytes: Vec<u8> = part.iter().flat_map(|&byte| compress(&[byte])).collect();
                let run = Run::new(dedup(flags).arg("--csv=1"), &bytes);
                assert_bytes(&run.output(), &part, flags);
            }
        }
    }
}

/// pzstd puts a frame before each frame that says how long it is; other programs use the other 15
/// magics.
#[test]
fn skippable_frames_of_zstd() {
    for flags in [SURE, &["--exact"]] {
        for magic in 0x50..=0x5f {
            let mut bytes = Vec::new();
            for part in ["P*\nb\n", "P*\nc\n"] {
                let frame = zstd(part.as_bytes());
                bytes.extend_from_slice(&[magic, 0x2a, 0x4d, 0x18, 4, 0, 0, 0]);
                bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
                bytes.extend_from_slice(&frame);
            }
            let output = Run::new(&mut dedup(flags), &bytes).output();
            assert_bytes(&output, b"P*\nb\nc\n", magic);
        }
        // One alone holds nothing.
        let empty = [0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, b'a', b'\n'];
        assert_eq!(Run::new(&mut dedup(flags), empty).output(), b"");
        // Text that only begins like one.
        assert_eq!(Run::new(&mut dedup(flags), "P*M\nP*M\n").output(), b"P*M\n");
        assert_eq!(Run::new(&mut dedup(flags), "^*M\x19\n").output(), b"^*M\x19\n");
    }
}

/// Tapes, and devices with blocks of one size, fill the last block with zeros.
#[test]
fn zeros_after_a_member_of_gzip_are_padding() {
    let folder = Folder::new();
    let parts = [&b"a\nb\n"[..], b"b\nc\n"].map(gzip);
    for zeros in [1, 9, 10, 511, 100_000] {
        let zeros = vec![0; zeros];
        let file = folder.file("padded", [&parts[0], &zeros[..], &parts[1], &zeros].concat());
        let more = folder.file("more", [gzip(b"c\nd\n"), zeros].concat());
        for flags in [SURE, &["--exact"], &["--threads=3"]] {
            let run = Run::new(dedup(flags).args([&file, &more]), "");
            assert_bytes(&run.output(), b"a\nb\nc\nd\n", flags);
        }
    }
    // Anything else after them is damage, and the message names the file alone.
    for after in [&b"\0\0x"[..], b"\0\x1f", b"\0\x1f\x8b\x08"] {
        let file = folder.file("damaged", [&parts[0], after].concat());
        for flags in [SURE, &["--exact"]] {
            let run = Run::new(dedup(flags).arg(&file), "");
            assert!(!run.errors.contains("temporary"), "{}", run.errors);
            run.error(&[utf8(&file)]);
        }
    }
}

/// The library takes windows up to 128 MiB, as `zstd -d` does.
#[test]
fn a_window_that_is_too_large_names_the_command_that_unpacks_it() {
    // The header of a frame with a window of 2^27 or 2^28 bytes, and a raw block, the last one.
    let frame = |log: u8| [&[0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 0x11, 0, 0][..], b"a\n"].concat();
    for flags in [SURE, &["--exact"]] {
        assert_eq!(Run::new(&mut dedup(flags), frame(27)).output(), b"a\n");
        for log in [28, 31] {
            let run = Run::new(&mut dedup(flags), frame(log));
            run.error(&["stdin", "128 MiB", "`zstd -dc --long=31`"]);
        }
    }
    if has("zstd") {
        let run = Run::new(Command::new("zstd").args(["-dc", "--long=31"]), frame(31));
        assert_eq!(run.output(), b"a\n");
    }
}

#[test]
fn few_bytes_that_unpack_to_many() {
    let folder = Folder::new();
    let zeros = vec![0; 3_000_000];
    let file = folder.file("zeros", [gzip(&zeros), gzip(b"\nx\nx\n")].concat());
    let output = Run::new(dedup(SURE).arg(&file), "").output();
    assert_bytes(&output, &[&zeros[..], b"\nx\n"].concat(), "");
}

/// Cut at any place, or with a wrong byte: an error that names the file.
#[test]
fn damage_is_an_error() {
    let folder = Folder::new();
    let input = numbers(0, 3000);
    for compress in FORMATS {
        let whole = compress(&input);
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0xff;
        damaged[whole.len() / 2 + 1] ^= 0xff;
        let after = [&whole[..], b"what is this?"].concat();
        let cut = |len: usize| whole[..len].to_vec();
        let all = [damaged, after, cut(5), cut(whole.len() / 2), cut(whole.len() - 1)];
        for (number, bytes) in all.into_iter().enumerate() {
            let file = folder.file("damaged", &bytes);
            for flags in [SURE, &["--exact"]] {
                let output = Run::new(dedup(flags).arg(&file), "").error(&[utf8(&file)]);
                // A wrong byte may show only by the checksum at the end.
                assert!(number == 0 || input.starts_with(&output), "{number}");
                Run::new(&mut dedup(flags), &bytes).error(&["stdin"]);
            }
        }
    }
}

/// An archive of one file, as tar writes it.
fn tar(name: &str, text: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
    header[148..156].fill(b' ');
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut bytes = [&header[..], text].concat();
    bytes.resize(bytes.len().next_multiple_of(512) + 1024, 0);
    bytes
}

/// By their first bytes, rather than taken for text: their lines are not those of the files in
/// them.
#[test]
fn other_formats_are_refused() {
    let folder = Folder::new();
    let text = folder.file("text", "a\n");
    let magics = [
        (&b"\xfd7zXZ\0"[..], "compressed by xz; unpack it by `xz -dc`"),
        (b"\x5d\0\0", "compressed by lzma; unpack it by `lzma -dc`"),
        (b"BZh91AY&SY", "compressed by bzip2; unpack it by `bzip2 -dc`"),
        (b"BZh1\x17rE8P\x90", "compressed by bzip2; unpack it by `bzip2 -dc`"),
        (b"\x04\x22\x4d\x18", "compressed by lz4; unpack it by `lz4 -dc`"),
        (b"\x02\x21\x4c\x18", "compressed by lz4; unpack it by `lz4 -dc`"),
        (b"LZIP\x01", "compressed by lzip; unpack it by `lzip -dc`"),
        (b"\x89LZO\0\r\n\x1a\n", "compressed by lzop; unpack it by `lzop -dc`"),
        (b"\x1f\x9d", "compressed by compress; unpack it by `compress -dc`"),
        (b"PK\x03\x04", "a zip archive; unpack it by `unzip`"),
        (b"PK\x05\x06", "a zip archive"),
        (b"PK\x07\x08", "a zip archive"),
        (b"7z\xbc\xaf", "a 7z archive; unpack it by `7z x`"),
        (b"Rar!\x1a\x07", "a rar archive; unpack it by `unrar x`"),
        (b"PAR1\x15", "a file of Parquet; convert it"),
        (b"ARROW1\0\0", "a file of Arrow; convert it"),
        (b"Obj\x01", "a file of Avro; convert it"),
    ];
    let mut cases = Vec::from_iter(magics.map(|(magic, part)| ([magic, b"\n\x01\n"].concat(), part)));
    let archive = tar("d/a.jsonl", b"a\nb\n");
    cases.extend([
        (gzip(&archive), "a tar archive; unpack it by `tar xzf`"),
        (zstd(&archive), "a tar archive; unpack it by `tar --zstd -xf`"),
        (tar(&"x".repeat(100), b"a\n"), "a tar archive; unpack it by `tar xf`"),
        (archive.clone(), "a tar archive; unpack it by `tar xf`"),
        (gzip(b"PK\x03\x04\n"), "a zip archive; unpack the gzip first"),
        (zstd(b"PK\x03\x04\n"), "a zip archive; unpack the zstd first"),
        (gzip(&gzip(b"a\n")), "it is compressed twice"),
        (zstd(&gzip(b"a\n")), "it is compressed twice"),
    ]);
    for (bytes, part) in &cases {
        let file = folder.file("file", bytes);
        for flags in [SURE, &["--exact"], &["--threads=3"]] {
            Run::new(dedup(flags).args([&text, &file]), "").error(&[part, utf8(&file)]);
            assert_bytes(&Run::new(&mut dedup(flags), bytes).error(&[part, "stdin"]), b"", part);
        }
        Run::new(dedup(["--in-place"]).args([&text, &file]), "").error(&[utf8(&file)]);
        assert_eq!(&fs::read(&file).unwrap(), bytes);
    }
    // A part of a magic is text.
    for part in magics
        .map(|(magic, _)| &magic[..magic.len() - 1])
        .iter()
        .chain([&&b"BZh9 begins a text\n"[..]])
    {
        assert_bytes(&Run::new(&mut dedup(SURE), part).output(), part, "");
    }
    // The bytes of the tools themselves. (The last one is that of xz.)
    for tool in ["xz", "bzip2", "lz4", "lzip", "lzop", "compress", "xz --format=lzma"] {
        let (name, flag) = tool.split_once(' ').unwrap_or((tool, "-c"));
        for input in ["a\n", ""] {
            if has(name) {
                let packed = Run::new(Command::new(name).args([flag, "-c"]), input).output();
                let name = if flag == "-c" { name } else { "`lzma -dc`" };
                Run::new(&mut dedup(SURE), &packed).error(&["stdin", name]);
            }
        }
    }
    // In pieces, as a slow pipe gives them.
    let mut child = spawn(&mut dedup(SURE));
    let mut to = child.stdin.take().unwrap();
    for piece in archive.chunks(50) {
        // It fails once the program has ended.
        if to.write_all(piece).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    drop(to);
    let output = Run::end(child).error(&["stdin", "a tar archive"]);
    assert_bytes(&output, b"", "");
    // Text that has the word there.
    let line = [&[b'x'; 257][..], b"ustar\n"].concat();
    assert_bytes(&Run::new(&mut dedup(SURE), &line).output(), &line, "");
    let zeros = [&b"a\0"[..], &line].concat();
    assert_bytes(&Run::new(dedup(SURE).arg("-z"), &zeros).output(), &zeros, "");
    for (args, part) in [
        (&["cf"][..], "tar xf"),
        (&["czf"], "tar xzf"),
        (&["--format=pax", "-cf"], "tar xf"),
        (&["--format=v7", "-cf"], "tar xf"),
        (&["--format=v7", "-czf"], "tar xzf"),
    ] {
        if has("tar") {
            let folder = folder.path.join("..").canonicalize().unwrap();
            let name = text.strip_prefix(&folder).unwrap();
            let mut command = Command::new("tar");
            let packed = Run::new(command.args(args).arg("-").arg(name).current_dir(folder), "").output();
            Run::new(&mut dedup(SURE), &packed).error(&[part]);
        }
    }
}
