//! Help, the man page and completions.

use super::*;

#[test]
fn help_and_the_man_page_name_every_option() {
    let shell = Shell::new();
    let help = String::from_utf8(shell.ok("--help")).unwrap();
    shell.ok("--man share/man1");
    assert_eq!(shell.names("share/man1"), ["lanebloom-corpus.1"]);
    let page = String::from_utf8(shell.read("share/man1/lanebloom-corpus.1")).unwrap();
    let page = page.replace("\\-", "-");
    let mut options = 0;
    // Their texts are further to the right.
    let names = help
        .lines()
        .filter(|line| line.starts_with("  -") || line.starts_with("      -"));
    for line in names {
        let option = line.split([' ', ',']).find(|word| word.starts_with("--")).unwrap();
        assert!(page.contains(option), "{option}");
        options += 1;
    }
    assert!(options > 25, "{help}");
    for part in [
        "Examples:",
        "Exit status:",
        "lanebloom-corpus crawl/ --output-dir clean/ --unit line",
    ] {
        assert!(help.contains(part), "{part}");
        assert!(
            page.contains(&part.to_uppercase().replace(':', "")) || page.contains(part),
            "{part}"
        );
    }
    // They are asked for alone, and read no input.
    shell.write("a.jsonl", super::lines(&["a"]));
    shell.error("a.jsonl --man m", &["--man"]);
    assert!(!shell.path("m").exists());
    shell.write("file", "");
    shell.error("--man file", &["cannot make the folder file"]);
    let version = String::from_utf8(shell.ok("--version")).unwrap();
    assert_eq!(version, format!("lanebloom-corpus {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_have_the_options() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish", "powershell"] {
        let script = shell.ok(&format!("--completions {name}"));
        let text = String::from_utf8(script).unwrap();
        for word in ["lanebloom-corpus", "near", "output-dir"] {
            assert!(text.contains(word), "{name}: {word}");
        }
    }
    shell.error("--completions tcsh", &["tcsh", "possible values"]);
}
