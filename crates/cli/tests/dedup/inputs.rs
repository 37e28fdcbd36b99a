//! Folders, and lists of files, as inputs.

use super::*;

/// All files in it and below, hidden ones too, by name.
#[test]
fn a_folder_stands_for_its_files() {
    let folder = Folder::new();
    let all = folder.path("all");
    fs::create_dir_all(all.join("b/.deep")).unwrap();
    fs::create_dir(all.join("empty")).unwrap();
    for (name, text) in [
        ("c", "1\n5\n"),
        ("b/x", "4\n1\n"),
        ("b/.deep/y", "3"),
        ("a", "1\n"),
        (".hidden", "2\n1\n"),
    ] {
        fs::write(all.join(name), text).unwrap();
    }
    let outside = folder.file("outside", "6\n");
    for flags in [&[][..], &["--exact"]] {
        // .hidden, a, b/.deep/y, b/x, c
        assert_eq!(
            Run::new(dedup(flags).arg(&all), "").output(),
            b"2\n1\n3\n4\n5\n",
            "{flags:?}"
        );
        let run = Run::new(dedup(flags).arg(&outside).arg(all.join("b")).arg(&all), "");
        assert_eq!(run.output(), b"6\n3\n4\n1\n2\n5\n");
        // Nothing is not stdin.
        let empty = all.join("empty");
        Run::new(dedup(flags).arg(&empty), "7\n").error(&["the folder", utf8(&empty), "no file to read"]);
    }
    let filter = folder.path("filter");
    Run::new(lanebloom().args(["build", "-o"]).arg(&filter).arg(&all), "").output();
    let run = Run::new(lanebloom().arg("query").arg(&filter).args([&all, &outside]), "");
    assert_eq!(run.status.code(), Some(1));
    assert!(
        run.output.ends_with(b"present\t1\npresent\t5\nabsent\t6\n"),
        "{:?}",
        run.output.escape_ascii()
    );

    // The output is in the folder.
    let output = all.join("a");
    let to = fs::File::options().append(true).open(&output).unwrap();
    let run = Run::of(dedup([&all]).stdout(to).output().unwrap());
    run.error(&[utf8(&output), "also the output"]);
}

/// Hubs of models keep such folders: links to files that are elsewhere.
#[cfg(unix)]
#[test]
fn links_in_a_folder_are_read() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    for name in ["blobs", "hub/deep", "more/x"] {
        fs::create_dir_all(folder.path(name)).unwrap();
    }
    for (name, text) in [("blobs/1", "1\n2\n"), ("blobs/2", "2\n3\n"), ("more/x/y", "4\n")] {
        folder.file(name, text);
    }
    let link = |to: &str, name: &str| symlink(to, folder.path(name)).unwrap();
    link("../blobs/1", "hub/a");
    link("../../blobs/2", "hub/deep/b");
    link("../more", "hub/folder");
    let run = |command: &str| Run::new(lanebloom().args(command.split(' ')).current_dir(&folder.path), "9\n");
    let not_read = |run: &Run, count: &str| assert!(run.errors.contains(count), "{}", run.errors);
    for flags in ["", " --exact", " --count-each"] {
        let dedup = run(&format!("dedup hub{flags}"));
        assert!(!dedup.errors.contains("not read"), "{}", dedup.errors);
        assert_eq!(dedup.output().iter().filter(|&&byte| byte == b'\n').count(), 4);
    }
    assert_eq!(run("dedup hub/*").output(), b"1\n2\n3\n4\n");
    run("dedup hub --output-dir out").output();
    assert_eq!(fs::read(folder.path("out/hub/folder/x/y")).unwrap(), b"4\n");

    // Circles, also by way of a folder outside; a pipe without a writer, which would be waited for.
    link(".", "hub/deep/self");
    link("../..", "hub/deep/up");
    link("../../hub", "more/x/back");
    let mut skipped = 3;
    if has("mkfifo") {
        let made = Command::new("mkfifo").arg(folder.path("hub/fifo")).status().unwrap();
        assert!(made.success());
        skipped += 1;
    }
    let count = format!("; {skipped} files not read: pipes, devices, links that lead back or again");
    for command in [
        "dedup hub",
        "dedup hub --exact",
        "build hub -o filter",
        "query filter hub",
    ] {
        let run = run(command);
        not_read(&run, &count);
        run.output();
    }
    assert_eq!(run("dedup **/hub").output(), b"1\n2\n3\n4\n");
    for pattern in ["hub/deep/*", "hub/**/b"] {
        assert_eq!(run(&format!("dedup {pattern}")).output(), b"2\n3\n", "{pattern}");
    }
    let json = run("dedup hub --json-summary").errors;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["files_not_read"], skipped);
    // A run in place replaces only files in the folder.
    run("dedup --in-place hub").error(&["hub/a", "a link in a folder"]);
    assert_eq!(fs::read(folder.path("blobs/1")).unwrap(), b"1\n2\n");
    run("dedup --in-place hub/a").output();

    // Two circles, of which a walk that follows them has 2^40 paths.
    link(".", "blobs/x");
    link(".", "blobs/y");
    assert_eq!(run("dedup blobs/**/[12]").output(), b"1\n2\n3\n");
    fs::remove_file(folder.path("blobs/x")).unwrap();
    fs::remove_file(folder.path("blobs/y")).unwrap();

    // Twelve folders with links to each other, which have 12! paths.
    for i in 0..12 {
        fs::create_dir_all(folder.path(&format!("knot/{i}"))).unwrap();
        folder.file(&format!("knot/{i}/file"), format!("{i}\n"));
        for to in (0..12).filter(|to| *to != i) {
            link(&format!("../{to}"), &format!("knot/{i}/{to}"));
        }
    }
    let knot = run("dedup knot");
    not_read(&knot, "files not read");
    assert_eq!(knot.output().iter().filter(|&&byte| byte == b'\n').count(), 12);

    // Links to nothing, if they are meant.
    link("nothing", "blobs/none");
    assert_eq!(run("dedup blobs/**/[12]").output(), b"1\n2\n3\n");
    run("dedup blobs/**").error(&["blobs/none", NO_FILE]);
    fs::remove_file(folder.path("blobs/none")).unwrap();
    fs::create_dir(folder.path("broken")).unwrap();
    link("nothing", "broken/link");
    run("dedup broken").error(&["broken/link", NO_FILE]);
    fs::remove_file(folder.path("broken/link")).unwrap();
    link("link", "broken/link");
    run("dedup broken").error(&["broken/link"]);

    // Nothing to read.
    fs::create_dir(folder.path("none")).unwrap();
    fs::write(folder.path("filter"), run("build blobs -o -").output()).unwrap();
    let before = fs::read(folder.path("filter")).unwrap();
    for (circles, part) in ["no file to read", "; 1 file not read", "; 2 files not read"]
        .iter()
        .enumerate()
    {
        for command in [
            "dedup none",
            "dedup --in-place none",
            "dedup --exact blobs none",
            "build none -o filter",
            "query filter none",
        ] {
            run(command).error(&["the folder none has no file to read", part]);
        }
        link(".", &format!("none/{circles}"));
    }
    assert_eq!(fs::read(folder.path("filter")).unwrap(), before);
}

/// The files that it matches, by path; files in folders once, though a folder and the files match.
#[test]
fn a_pattern_stands_for_what_it_matches() {
    let folder = Folder::new();
    for (name, text) in [
        ("d/b/2.txt", "2\n"),
        ("d/a/x/1.txt", "1\n"),
        ("d/a.txt", "0\n"),
        ("d/a/1.csv", "c\n"),
        ("d/.e/5.txt", "5\n"),
    ] {
        let path = folder.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let run = |pattern: &str| Run::new(dedup([pattern]).current_dir(&folder.path), "");
    for (pattern, expected) in [
        ("d/**/*.txt", "5\n1\n0\n2\n"),
        ("**/[12].*", "c\n1\n2\n"),
        ("d/*.txt", "0\n"),
        ("d/?", "c\n1\n2\n"),
        ("d/**/*", "5\nc\n1\n0\n2\n"),
        ("d/**", "5\nc\n1\n0\n2\n"),
        ("./**/b", "2\n"),
        ("d/*/", "5\nc\n1\n2\n"),
        ("d/**/x/**", "1\n"),
        ("**/**/x/*", "1\n"),
        ("d/[!a]/*", "2\n"),
    ] {
        let found = run(pattern).output();
        assert_eq!(String::from_utf8_lossy(&found), expected, "{pattern}");
    }
    let counted = Run::new(dedup(["d/**/*", "-d"]).current_dir(&folder.path), "");
    assert_eq!(counted.output(), b"", "no file is read twice");
    run("x/*/y").error(&["no file matches x/*/y"]);
    run("d/*.gz").error(&["no file matches d/*.gz"]);
    run("d/a***").error(&["the pattern d/a***"]);

    // A file of that name is meant, and a list has names only.
    fs::write(folder.path("[a].txt"), "6\n").unwrap();
    fs::write(folder.path("a.txt"), "7\n").unwrap();
    assert_eq!(run("[a].txt").output(), b"6\n");
    Run::new(dedup(["--files-from", "-"]).current_dir(&folder.path), "?.txt\n").error(&["?.txt", NO_FILE]);
}

#[test]
fn lists_of_files() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a", "1\n2\n"), folder.file("b c", "2\n3\n"));
    let inner = folder.path("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("d"), "3\n4\n").unwrap();
    let lines = format!("{}\n\n{}\r\n{}", utf8(&b), utf8(&inner), utf8(&a));
    let list = folder.file("list", &lines);
    let zeros = lines.replace("\r\n", "\0").replace("\n\n", "\0");
    for flags in [&[][..], &["--exact"]] {
        let run = Run::new(dedup(flags).arg("--files-from").arg(&list), "");
        assert_eq!(run.output(), b"2\n3\n4\n1\n");
        let run = Run::new(dedup(flags).args(["--files0-from", "-"]).arg(&a), &zeros);
        assert_eq!(run.output(), b"1\n2\n3\n4\n");
        // An empty list is not stdin.
        let empty = folder.file("empty", "");
        assert_eq!(
            Run::new(dedup(flags).arg("--files-from").arg(&empty), "5\n").output(),
            b""
        );
        // An editor may have put a byte-order mark before the first name.
        let marked = folder.file("marked", format!("\u{feff}{lines}"));
        let run = Run::new(dedup(flags).arg("--files-from").arg(&marked), "");
        assert_eq!(run.output(), b"2\n3\n4\n1\n");
        let named = folder.file("named", "-\n");
        assert_eq!(
            Run::new(dedup(flags).arg("--files-from").arg(&named), "5\n").output(),
            b"5\n"
        );
    }
    // A newline is part of a name there. (Windows has no such names.)
    #[cfg(unix)]
    {
        let odd = folder.file("odd\nname\r", "6\n");
        let run = Run::new(&mut dedup(["--files0-from", "-"]), format!("{}\0", utf8(&odd)));
        assert_eq!(run.output(), b"6\n");
    }

    let filter = folder.path("filter");
    let run = Run::new(
        lanebloom().args(["build", "--files-from", "-", "-o"]).arg(&filter),
        &lines,
    );
    run.output();
    let run = Run::new(
        lanebloom().arg("query").arg(&filter).args(["--files-from", "-"]),
        &lines,
    );
    assert_eq!(run.output().iter().filter(|&&byte| byte == b'\n').count(), 6);

    let missing = folder.path("missing");
    Run::new(dedup(["--files-from"]).arg(&missing), "").error(&["the list of files", utf8(&missing), NO_FILE]);
    Run::new(&mut dedup(["--files-from", "-"]), format!("{}\n", utf8(&missing))).error(&[utf8(&missing), NO_FILE]);
    Run::new(&mut dedup(["--files-from", "-"]), "-\n").error(&["stdin", "list"]);
    Run::new(&mut dedup(["--files-from", "-", "-"]), "").error(&["stdin", "list"]);
    Run::new(&mut dedup(["--files-from", "a", "--files0-from", "b"]), "").error(&["--files-from", "--files0-from"]);
    Run::new(lanebloom().args(["query", "-", "--files-from", "-"]), "").error(&["stdin"]);
}

/// A killed run leaves its new file, and one that runs has one. Its lines would be the first
/// occurrences, and the file itself would lose them. Folders and patterns leave it out; a list that
/// names it is an error.
#[test]
fn unfinished_files_are_not_inputs() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("d/deep")).unwrap();
    // The first one is that of a.txt.
    let left = [
        ("d/.lanebloom-f01e5cbbc09d4fc4-e013256f298dfe78.new", "x\ny\nhal"),
        ("d/deep/.lanebloom-0123456789abcdef.part", "y\n"),
        ("d/.lanebloom-0123456789abcdef.lock", ""),
    ];
    let run = |line: &str, stdin: &str| {
        let mut command = lanebloom();
        Run::new(command.args(line.split(' ')).current_dir(&folder.path), stdin)
    };
    let ok = |line: &str| {
        for (name, text) in [("d/a.txt", "x\ny\nx\n")].iter().chain(&left) {
            folder.file(name, text);
        }
        let run = run(line, "");
        let told = "3 files not read: pipes, devices, links that lead back or again, unfinished files of other runs";
        assert!(run.errors.contains(told), "{line}: {}", run.errors);
        String::from_utf8(run.output()).unwrap()
    };
    for line in [
        "dedup --in-place d",
        "dedup --in-place d/*",
        "dedup --in-place --exact d/**",
    ] {
        assert_eq!(ok(line), "");
        assert_eq!(fs::read_to_string(folder.path("d/a.txt")).unwrap(), "x\ny\n", "{line}");
    }
    for (line, expected) in [
        ("dedup d", "x\ny\n"),
        ("dedup **/*", "x\ny\n"),
        ("dedup d -c", "2\n"),
        ("dedup d -d", "x\n"),
        ("dedup d --count-each", "      2 x\n      1 y\n"),
        ("dedup d --output-dir out", ""),
        ("build d -o filter", ""),
        ("build --bank d -o bank", ""),
        ("query filter d", "present\tx\npresent\ty\npresent\tx\n"),
        ("which bank d -c", "1\tx\n1\ty\n1\tx\n"),
    ] {
        assert_eq!(ok(line), expected, "{line}");
    }
    assert_eq!(fs::read(folder.path("out/d/a.txt")).unwrap(), b"x\ny\n");
    assert_eq!(fs::read_dir(folder.path("out/d")).unwrap().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&run("dedup d --json-summary", "").errors).unwrap();
    assert_eq!((&json["lines"], &json["files_not_read"]), (&3.into(), &3.into()));

    for (name, _) in left {
        for (line, stdin) in [
            (format!("dedup d/a.txt {name}"), String::new()),
            (format!("dedup --in-place {name}"), String::new()),
            ("dedup --files-from -".into(), format!("d/a.txt\n{name}\n")),
            ("dedup --in-place --files0-from -".into(), format!("{name}\0d/a.txt\0")),
            (format!("build {name} -o filter"), String::new()),
            (format!("query filter {name}"), String::new()),
            (format!("merge filter {name} -o filter"), String::new()),
        ] {
            assert_eq!(run(&line, &stdin).error(&[name, "an unfinished file"]), b"", "{line}");
        }
    }
    // Under the name of a link too, and no output gets such a name.
    #[cfg(unix)]
    {
        fs::create_dir(folder.path("e")).unwrap();
        std::os::unix::fs::symlink(folder.path(left[0].0), folder.path("e/link.txt")).unwrap();
        run("dedup e/link.txt", "").error(&["e/link.txt", "an unfinished file"]);
        run("dedup e", "").error(&["the folder e has no file to read; 1 file not read"]);
    }
    run("dedup d/a.txt -o d/.lanebloom-x.new", "").error(&["d/.lanebloom-x.new", "no run reads a file with this name"]);
    run("dedup no\n/*", "").error(&["no file matches no\\n/*"]);
    fs::remove_file(folder.path("d/a.txt")).unwrap();
    let error = |line: &str, part: &str| run(line, "").error(&[part, "; 3 files not read"]);
    error("dedup d", "the folder d has no file to read");
    error("dedup d/*", "no file matches d/*");
    // Only such names.
    for name in [".lanebloom-notes", ".other.new", "lanebloom-1.new"] {
        folder.file(&format!("d/{name}"), "z\n");
        assert_eq!(run("dedup d", "").output(), b"z\n", "{name}");
        fs::remove_file(folder.path(&format!("d/{name}"))).unwrap();
    }
}
