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
        "bench",
        "build",
        "completions",
        "convert",
        "dedup",
        "info",
        "man",
        "merge",
        "plan",
        "plot",
        "plot rate",
        "plot speed",
        "query",
        "which",
    ];
    let mut names: Vec<_> = commands
        .map(|command| format!("{}.1", format!("lanebloom {command}").trim().replace(' ', "-")))
        .into();
    for (command, name) in commands.iter().zip(&names) {
        let page = fs::read_to_string(man.join(name)).unwrap();
        let section = |title: &str| {
            let (_, rest) = page.split_once(&format!("\n.SH {title}\n")).unwrap();
            rest.split_once("\n.SH ").map_or(rest, |(section, _)| section)
        };
        // The text that `man` shows.
        let synopsis = ["\\fB", "\\fI", "\\fR", "\\"]
            .iter()
            .fold(section("SYNOPSIS").to_owned(), |text, mark| text.replace(mark, ""));
        let help = Run::new(lanebloom().args(command.split_whitespace()).arg("--help"), "").output();
        let help = String::from_utf8(help).unwrap();
        let mut options = 0;
        let (_, listed) = help.split_once("\nOptions:\n").unwrap();
        // Their texts are further to the right.
        let names = listed
            .lines()
            .filter(|line| line.starts_with("  -") || line.starts_with("      -"));
        for line in names.map(str::trim_start) {
            // "-o, --output <FILE>", and perhaps its text.
            let option = line.split("  ").next().unwrap();
            let form = option.replace(", ", "|").replace(['<', '>'], "");
            let form = form.strip_suffix("...").unwrap_or(&form);
            let is_there = |line: &str| line == form || line == format!("[{form}]");
            assert!(synopsis.lines().any(is_there), "{name}: {form:?} is not in {synopsis}");
            options += 1;
        }
        let is_option = |line: &&str| line.starts_with(['-', '[']) && line.contains('-');
        assert_eq!(
            synopsis.lines().filter(is_option).count(),
            options,
            "{name}: {synopsis}"
        );
        // Each example is a line of its own.
        if let Some((_, examples)) = help.split_once("\nExample").filter(|_| !command.is_empty()) {
            let title = if examples.starts_with("s:") {
                "\"EXAMPLES\""
            } else {
                "\"EXAMPLE\""
            };
            let examples: Vec<_> = examples.lines().skip(1).map(str::trim).collect();
            let shown = section(title)
                .replace("\\-", "-")
                .replace("\\(aq", "'")
                .replace("\\e", "\\");
            let shown: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix("\\&")).collect();
            assert!(!shown.is_empty() && shown == examples, "{name}: {shown:?}");
            // The terminal has 80 columns, of which 7 are the margin.
            assert!(shown.iter().all(|line| line.len() <= 73), "{name}: {shown:?}");
        }
    }
    let pages = fs::read_dir(&man).unwrap();
    let mut found: Vec<_> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    names.sort();
    assert_eq!(found, names, "15 pages, none of a subcommand help");

    let file = folder.file("file", "");
    Run::new(lanebloom().arg("man").arg(&file), "").error(&[utf8(&file)]);
}

#[test]
fn completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = Run::new(lanebloom().args(["completions", shell]), "").output();
        let text = String::from_utf8(script.clone()).unwrap();
        for word in ["dedup", "only-duplicates", "state"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
        let file = folder.file(shell, script);
        // (PowerShell has no flag that checks a script.)
        if shell != "powershell" && has(shell) {
            let output = Command::new(shell).arg("-n").arg(&file).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
