//! Help, man pages and completions.

use super::*;

#[test]
fn help_has_examples() {
    let text = |args: &[&str]| String::from_utf8(Run::new(lanebloom().args(args), "").output()).unwrap();
    assert!(text(&["--help"]).contains("Exit status"));
    let help = text(&["dedup", "--help"]);
    for part in ["Examples:", "lanebloom dedup", "--exact", "--state <FILE>"] {
        assert!(help.contains(part), "{part}");
    }
    assert_eq!(
        text(&["--version"]),
        format!("lanebloom {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn man_pages() {
    let folder = Folder::new();
    let man = folder.path("share/man/man1");
    Run::new(lanebloom().arg("man").arg(&man), "").output();
    let commands = [
        "",
        "-dedup",
        "-build",
        "-query",
        "-merge",
        "-info",
        "-convert",
        "-plan",
        "-bench",
        "-plot",
        "-completions",
        "-man",
    ];
    for command in commands {
        let page = fs::read_to_string(man.join(format!("lanebloom{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{command}");
    }
    let file = folder.file("file", "");
    Run::new(lanebloom().arg("man").arg(&file), "").error(&[utf8(&file)]);
}

#[test]
fn completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = Run::new(lanebloom().args(["completions", shell]), "").output();
        let text = String::from_utf8(script.clone()).unwrap();
        for word in ["dedup", "only-duplicates", "state"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
        let file = folder.file(shell, script);
        if has(shell) {
            let output = Command::new(shell).arg("-n").arg(&file).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
