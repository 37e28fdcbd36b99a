//! Where lines go: `--output`, `--in-place`, `--output-dir`.

use super::*;

const BOTH: [&[&str]; 2] = [&[], &["--exact"]];

/// The files of a folder, by their paths in it, with their bytes.
fn contents(folder: &Path) -> Vec<(String, String)> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = utf8(path.strip_prefix(folder).unwrap()).replace('\\', "/");
            files.push((name, String::from_utf8(fs::read(&path).unwrap()).unwrap()));
        }
    }
    files.sort();
    files
}

fn expected(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|&(name, text)| (name.into(), text.into())).collect()
}

#[test]
fn a_file_instead_of_stdout() {
    for flags in BOTH {
        let folder = Folder::new();
        let (input, output) = (folder.file("in", "a\nb\na\n"), folder.path("out"));
        let run = |more: &[&str]| Run::new(dedup(flags).args(more).arg(&input).arg("-o").arg(&output), "");
        assert_eq!(run(&[]).output(), b"");
        assert_eq!(fs::read(&output).unwrap(), b"a\nb\n");
        run(&["--count"]).output();
        assert_eq!(fs::read(&output).unwrap(), b"2\n");
        run(&["--only-duplicates"]).output();
        assert_eq!(fs::read(&output).unwrap(), b"a\n");
        assert_eq!(
            Run::new(dedup(flags).args(["-o", "-"]).arg(&input), "").output(),
            b"a\nb\n"
        );

        // An error leaves the file as it was, and nothing beside it.
        let error = |part: &str, more: &[&str]| {
            assert_eq!(run(more).error(&[part]), b"");
            assert_eq!(fs::read(&output).unwrap(), b"a\n");
            assert_eq!(contents(&folder.path).len(), 2, "{:?}", contents(&folder.path));
        };
        error("missing", &["missing"]);
        error("no column", &["--csv=x"]);
        #[cfg(unix)]
        {
            let many = folder.file("in", numbers(0, 100_000));
            let run = Run::new(
                &mut limited(dedup(flags).arg(&many).arg("-o").arg(&output), 100, true),
                "",
            );
            run.error(&["cannot write the output", "File too large"]);
        }
        error("missing", &["missing"]);
    }
    let folder = Folder::new();
    let missing = folder.path("missing/file");
    Run::new(dedup(["-o"]).arg(&missing), "").error(&[utf8(&missing), "folder"]);
    Run::new(dedup(["-o"]).arg(&folder.path), "").error(&[utf8(&folder.path), "directory"]);
}

/// Its lines would be lost: the file is another one once it is replaced.
#[test]
fn an_output_that_is_an_input() {
    let folder = Folder::new();
    let file = folder.file("file", "a\na\n");
    let other = folder.file("other", "b\n");
    let error = |command: &mut Command| {
        let stdin = fs::File::open(&file).unwrap();
        let output = command.current_dir(&folder.path).stdin(stdin).output();
        Run::of(output.unwrap()).error(&["it is also an input; --in-place"]);
    };
    error(dedup(["other", "./file", "-o"]).arg(&file));
    error(dedup(["-o"]).arg(&file));
    error(dedup([".", "-o"]).arg(&file));
    error(&mut dedup(["file", "--output-dir", "."]));
    error(dedup(["file", "other", "--output-dir"]).arg(&folder.path));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&file, folder.path("link")).unwrap();
        error(&mut dedup(["file", "-o", "link"]));
        error(&mut dedup(["link", "-o", "file"]));
        fs::remove_file(folder.path("link")).unwrap();
    }
    assert_eq!(
        contents(&folder.path),
        expected(&[("file", "a\na\n"), ("other", "b\n")])
    );
    // And one that is the state.
    let state = folder.path("state");
    Run::new(dedup(["--state", utf8(&state), "-o", utf8(&state)]).arg(&other), "")
        .error(&["the state", "also an output"]);
    assert!(!state.exists());
    // And a state that is an input, and the list of inputs.
    let list = folder.file("list", "other\n");
    let lists = |more: &[&str], part: &str| {
        let mut run = dedup(["--files-from", "list"]);
        Run::new(run.args(more).current_dir(&folder.path), "").error(&["cannot write", part]);
        assert_eq!(fs::read(&list).unwrap(), b"other\n");
    };
    lists(&["-o", "list"], "list: it is also the list of inputs");
    lists(&["--state", "list"], "the state list: it is also the list of inputs");
    lists(&["list", "--in-place"], "list: it is also the list of inputs");
    lists(&["--state", "other"], "the state other: it is also an input");
}

#[test]
fn inputs_are_replaced() {
    for flags in BOTH {
        let folder = Folder::new();
        let texts = [
            ("a", "1\n2\n1\n3"),
            ("b", "3\n4\r\n4"),
            ("c/d", "5\n6\n"),
            ("c/e", ""),
            ("c/f", "1\n"),
        ];
        fs::create_dir(folder.path("c")).unwrap();
        for (name, text) in texts {
            folder.file(name, text);
        }
        let before = fs::metadata(folder.path("c/d")).unwrap().modified().unwrap();
        let command = |names: &[&str]| {
            let mut command = dedup(flags);
            command.arg("--in-place").args(names).current_dir(&folder.path);
            command
        };
        let run = Run::new(&mut command(&["a", "b", "c"]), "");
        assert_eq!(summary(&run.errors), [10, 6, 4], "{}", run.errors);
        assert_eq!(run.output(), b"");
        let after = [
            ("a", "1\n2\n3"),
            ("b", "4\r\n"),
            ("c/d", "5\n6\n"),
            ("c/e", ""),
            ("c/f", ""),
        ];
        assert_eq!(contents(&folder.path), expected(&after), "{flags:?}");
        assert_eq!(
            fs::metadata(folder.path("c/d")).unwrap().modified().unwrap(),
            before,
            "it stays the same"
        );

        // So does one file without duplicates.
        let before = fs::metadata(folder.path("a")).unwrap().modified().unwrap();
        Run::new(&mut command(&["a"]), "").output();
        assert_eq!(fs::metadata(folder.path("a")).unwrap().modified().unwrap(), before);

        // More files than stay open; each has its header.
        let names: Vec<_> = (0..40).map(|number| format!("{number:02}.csv")).collect();
        for name in &names {
            folder.file(name, format!("k,v\nsame,1\n{name},2\n"));
        }
        let names = Vec::from_iter(names.iter().map(|name| &name[..]));
        Run::new(command(&names).arg("--csv=k"), "").output();
        for (number, name) in names.iter().enumerate() {
            let first = if number == 0 { "same,1\n" } else { "" };
            assert_eq!(
                fs::read_to_string(folder.path(name)).unwrap(),
                format!("k,v\n{first}{name},2\n")
            );
        }
    }
}

/// An error leaves all files as they were.
#[test]
fn what_cannot_be_replaced() {
    let folder = Folder::new();
    let texts = [("a", "1\n1\n"), ("b", "2\n2\n")];
    for (name, text) in texts {
        folder.file(name, text);
    }
    let zstd = zstd::encode_all(&b"1\n1\n"[..], 1).unwrap();
    let packed = folder.file("packed", &zstd);
    let error = |names: &[&str], parts: &[&str]| {
        for flags in BOTH {
            let run = Run::new(
                dedup(flags).arg("--in-place").args(names).current_dir(&folder.path),
                "x\n",
            );
            assert_eq!(run.error(parts), b"");
        }
        for (name, text) in texts {
            assert_eq!(fs::read_to_string(folder.path(name)).unwrap(), text);
        }
    };
    error(&["a", "missing", "b"], &["missing", NO_FILE]);
    error(&[], &["--in-place", "stdin"]);
    error(&["a", "-"], &["--in-place", "stdin"]);
    error(&["a", "packed"], &["packed", "compressed"]);
    error(&["a", "b", "./a"], &["a: two inputs"]);
    error(&["--csv=no", "a"], &["a: ", "no column"]);
    error(&["--in-place", "a"], &["--in-place"]);
    error(&["a", "--count"], &["--in-place", "--count"]);
    error(&["a", "-d"], &["--in-place", "--only-duplicates"]);
    error(&["a", "-o", "b"], &["--in-place", "--output"]);
    error(&["a", "--max-record=1"], &["a: line 1"]);
    assert_eq!(fs::read(packed).unwrap(), zstd);
    assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 3);
}

/// Lines of it would go, and the rest would be worth nothing.
#[test]
fn what_is_no_text_is_not_replaced() {
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    folder.file("in/a", "1\n1\n");
    let zip = b"PK\x03\x04\x14\0\n\n\n\n".to_vec();
    let late = [&b"1\n".repeat(32 << 10)[..63 << 10], b"\0\n\n"].concat();
    let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| Vec::from_iter(text.encode_utf16().flat_map(order));
    let mut all = vec![
        ("zip", zip, "it is a zip archive"),
        (
            "database",
            b"SQLite format 3\0\n\n".to_vec(),
            "a zero byte at offset 15",
        ),
        ("late", late, "a zero byte at offset 64512"),
        ("utf16", utf16("\u{feff}\u{4e2d}\u{4e2d}", u16::to_le_bytes), "UTF-16"),
        ("utf16", utf16("\u{feff}a\na\n", u16::to_be_bytes), "UTF-16"),
        ("no mark", utf16("a\na\n", u16::to_le_bytes), "a zero byte at offset 1"),
        ("lz4", b"\x02\x21\x4c\x18\n\n".to_vec(), "lz4 -dc"),
        ("Z", b"\x1f\x9d\x90\n\n".to_vec(), "compress -dc"),
    ];
    let frame = zstd::encode_all(&b"1\n1\n"[..], 1).unwrap();
    all.extend((0x50..=0x5f).map(|magic| {
        let skipped = [&[magic, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"\n\n\n"].concat();
        ("zst", [skipped, frame.clone()].concat(), "compressed")
    }));
    for (name, bytes, part) in &all {
        let path = folder.file(&format!("in/{name}"), bytes);
        for (flags, input) in BOTH
            .into_iter()
            .flat_map(|flags| [(flags, &path), (flags, &folder.path)])
        {
            let run = Run::new(dedup(flags).arg("--in-place").arg(input), "");
            run.error(&[utf8(&path), part]);
            assert_eq!(&fs::read(&path).unwrap(), bytes, "{name}");
            assert_eq!(fs::read(folder.path("in/a")).unwrap(), b"1\n1\n");
        }
        fs::remove_file(path).unwrap();
    }
    // Lines that end with zeros were asked for, and another file loses nothing.
    let zeros = folder.file("zeros", "1\x001\0\n\0");
    Run::new(dedup(["-z", "--in-place"]).arg(&zeros), "").output();
    assert_eq!(fs::read(&zeros).unwrap(), b"1\0\n\0");
    assert_eq!(Run::new(&mut dedup([&zeros]), "").output(), b"1\0\n\0");
}

/// Also an access control list, which is one on Linux.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
#[test]
fn a_file_that_is_replaced_keeps_its_attributes() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = Folder::new();
    let path = folder.file("file", "1\n1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let long = vec![b'x'; 2000];
    let mut all: Vec<(&str, &[u8])> = vec![("user.origin", b"a\0b"), ("user.empty", b""), ("user.long", &long)];
    // user::rw-, user:4711:rw-, group::r--, mask::rw-, other::---
    let list: Vec<u8> = [
        (1, 6, u32::MAX),
        (2, 6, 4711),
        (4, 4, u32::MAX),
        (16, 6, u32::MAX),
        (32, 0, u32::MAX),
    ]
    .iter()
    .fold(vec![2, 0, 0, 0], |mut list, &(tag, permissions, id)| {
        list.extend([tag, 0, permissions, 0]);
        list.extend(u32::to_le_bytes(id));
        list
    });
    let has_lists =
        cfg!(target_os = "linux") && setxattr(&path, "system.posix_acl_access", &list, XattrFlags::empty()).is_ok();
    if has_lists {
        all.push(("system.posix_acl_access", &list));
    } else {
        eprintln!("skipped: no access control lists");
    }
    for (name, value) in &all[..3] {
        if let Err(error) = setxattr(&path, *name, value, XattrFlags::empty()) {
            return eprintln!("skipped: no extended attributes: {error}");
        }
    }
    let before = fs::metadata(&path).unwrap();
    let run = Run::new(dedup(["--in-place"]).arg(&path), "");
    assert!(!run.errors.contains("attribute"), "{}", run.errors);
    run.output();
    assert_eq!(fs::read(&path).unwrap(), b"1\n");
    for (name, value) in all {
        let mut buffer = [0; 4096];
        let len = getxattr(&path, name, &mut buffer).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(&buffer[..len], value, "{name}");
    }
    let after = fs::metadata(&path).unwrap();
    assert_eq!(
        (before.mode(), before.uid(), before.gid()),
        (after.mode(), after.uid(), after.gid())
    );
    assert_ne!(before.ino(), after.ino(), "it was replaced");

    // A file without a list gets none from its folder, which would let others read it.
    let private = folder.file("private", "1\n1\n");
    if has_lists {
        setxattr(&folder.path, "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
        Run::new(dedup(["--in-place"]).arg(&private), "").output();
        assert!(getxattr(&private, "system.posix_acl_access", &mut [0; 64]).is_err());
        let new = folder.file("new", "");
        assert!(
            getxattr(&new, "system.posix_acl_access", &mut [0; 64]).is_ok(),
            "others do"
        );
    }
}

#[test]
fn a_folder_of_outputs() {
    for flags in BOTH {
        let folder = Folder::new();
        fs::create_dir_all(folder.path("in/deep")).unwrap();
        for (name, text) in [
            ("in/b", "1\n2\n"),
            ("in/deep/c", "2\n3"),
            ("in/empty", ""),
            ("a", "1\n1\n4"),
        ] {
            folder.file(name, text);
        }
        folder.file("in/packed.zst", zstd::encode_all(&b"5\n1\n"[..], 1).unwrap());
        folder.file("in/plain.gz", "6\n");
        let before = contents(&folder.path("in/deep"));
        let run = |inputs: &[&str], to: &str| {
            let mut command = dedup(flags);
            command
                .args(inputs)
                .args(["--output-dir", to])
                .current_dir(&folder.path);
            Run::new(&mut command, "x\n")
        };
        assert_eq!(run(&["a", "in"], "new/out").output(), b"");
        let files = [
            ("a", "1\n4"),
            ("in/b", "2\n"),
            ("in/deep/c", "3"),
            ("in/empty", ""),
            ("in/packed", "5\n"),
            ("in/plain.gz", "6\n"),
        ];
        assert_eq!(contents(&folder.path("new/out")), expected(&files), "{flags:?}");
        assert_eq!(contents(&folder.path("in/deep")), before);
        // Again, over the files of before.
        run(&["in/deep", "in/deep/c"], "new/out").output();
        assert_eq!(fs::read(folder.path("new/out/c")).unwrap(), b"");
        run(&["-d", "a"], "new/out").output();
        assert_eq!(fs::read(folder.path("new/out/a")).unwrap(), b"1\n");

        run(&["a", "in/../a"], "out").error(&[utf8(&Path::new("out").join("a")), ": two inputs"]);
        run(&[], "out").error(&["--output-dir", "stdin"]);
        run(&["missing"], "out").error(&["missing", NO_FILE]);
        // Windows says it in its own words.
        let reason = if cfg!(windows) {
            "os error"
        } else {
            "not a regular file"
        };
        run(&[NULL], "out").error(&[NULL, reason]);
        run(&["a", "--count"], "out").error(&["--count"]);
        run(&["a"], "a").error(&["a"]);
    }
}

/// A name of a descriptor leads to the file behind it, which others write too: what it has, and the
/// messages of the run, would be lost.
#[cfg(target_os = "linux")]
#[test]
fn an_open_descriptor_is_not_replaced() {
    let folder = Folder::new();
    folder.file("in", "a\na\n");
    std::os::unix::fs::symlink("/dev/fd/2", folder.path("link")).unwrap();
    let run = |before: &str, args: &[&str]| {
        folder.file("log", "old\n");
        let mut command = after(before, &dedup(args));
        Run::new(command.current_dir(&folder.path), "")
    };
    let log = || fs::read_to_string(folder.path("log")).unwrap();
    for name in ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2", "link", "log"] {
        run("exec 2>>log", &["in", "-o", name]).error(&[]);
        let message = format!("old\nlanebloom: cannot write {name}: stderr goes to this file\n");
        assert_eq!(log(), message);
    }
    run("exec 2>>log", &["in", "--state", "/dev/stderr"]).error(&[]);
    assert!(
        log().starts_with("old\nlanebloom: the state /dev/stderr: stderr goes"),
        "{}",
        log()
    );
    run("exec 2>>log", &["log", "--in-place"]).error(&[]);
    assert!(
        log().starts_with("old\nlanebloom: cannot write log: stderr goes"),
        "{}",
        log()
    );
    for name in ["/dev/stdout", "/dev/fd/1", "log"] {
        run("exec >>log", &["in", "-o", name]).error(&["stdout goes to this file; `-o -` writes to stdout"]);
        assert_eq!(log(), "old\n", "{name}");
    }
    run("exec 3>>log", &["in", "-o", "/dev/fd/3"]).error(&["it is an open descriptor: give the path of its file"]);
    assert_eq!(log(), "old\n");
    // A pipe has no file.
    run(":", &["in", "-o", "/dev/stdout"]).error(&["/dev/stdout: it is not a regular file; `-o -` writes to stdout"]);
    run("exec >>log", &["in", "-o", "-"]).output();
    assert_eq!(log(), "old\na\n");
    run("exec 3>>log", &["in", "-o", "log"]).output();
    assert_eq!(log(), "a\n", "another program's file is replaced");
}
