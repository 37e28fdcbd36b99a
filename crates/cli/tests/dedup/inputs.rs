//! Folders, and lists of files, as inputs.

use super::*;

/// All files in it and below, hidden ones too, by name; nothing behind a link.
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
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, all.join("link")).unwrap();
        std::os::unix::fs::symlink(&all, all.join("circle")).unwrap();
        // A pipe without a writer, which would be waited for.
        if has("mkfifo") {
            assert!(Command::new("mkfifo").arg(all.join("fifo")).status().unwrap().success());
        }
    }
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
        assert_eq!(Run::new(dedup(flags).arg(all.join("empty")), "7\n").output(), b"");
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
    let run = dedup([&all]).stdout(to).output().unwrap();
    let errors = String::from_utf8(run.stderr).unwrap();
    assert!(
        errors.contains(utf8(&output)) && errors.contains("also the output"),
        "{errors}"
    );
}

/// What it matches, by path; files in folders once, though a folder and the files match.
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
    ] {
        let found = run(pattern).output();
        assert_eq!(String::from_utf8_lossy(&found), expected, "{pattern}");
    }
    let counted = Run::new(dedup(["d/**/*", "-d"]).current_dir(&folder.path), "");
    assert_eq!(counted.output(), b"", "no file is read twice");
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
