//! Where lines go: `--output`, `--in-place`, `--output-dir`.

use super::*;

const BOTH: [&[&str]; 2] = [&[], &["--exact"]];

/// What the files of a folder hold, by their paths in it.
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
        let output = command.current_dir(&folder.path).stdin(stdin).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("it is also an input; --in-place"), "{errors}");
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

        // One file; and what has no duplicate is not touched.
        folder.file("a", "x\nx\n");
        Run::new(&mut command(&["a"]), "").output();
        assert_eq!(fs::read(folder.path("a")).unwrap(), b"x\n");
        let before = fs::metadata(folder.path("a")).unwrap().modified().unwrap();
        Run::new(&mut command(&["a"]), "").output();
        assert_eq!(fs::metadata(folder.path("a")).unwrap().modified().unwrap(), before);

        // More files than stay open; each has its header.
        let names: Vec<_> = (0..40).map(|number| format!("{number:02}.csv")).collect();
        for name in &names {
            folder.file(name, format!("k,v\nsame,1\n{name},2\n"));
        }
        Run::new(
            dedup(flags)
                .args(["--in-place", "--csv=k"])
                .args(&names)
                .current_dir(&folder.path),
            "",
        )
        .output();
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
