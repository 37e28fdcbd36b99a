//! Signals, for tests that end a program by one. Programs inherit the signals that these tests
//! ignore: after `nohup`, or in the background of a shell.

use std::process::{Child, Command};
use std::sync::LazyLock;

/// The option of `env` that undoes it; `None` where `env` lacks it (BusyBox, macOS).
static DEFAULT: LazyLock<Option<&str>> = LazyLock::new(|| {
    let option = "--default-signal=HUP,INT,QUIT,TERM";
    let run = Command::new("env").args([option, "true"]).output();
    run.is_ok_and(|run| run.status.success()).then_some(option)
});

/// The same command, which ignores no signal if it can be helped.
pub(crate) fn by_default(command: &Command) -> Command {
    let mut words = Vec::from_iter(DEFAULT.iter().flat_map(|option| ["env".as_ref(), option.as_ref()]));
    words.push(command.get_program());
    words.extend(command.get_args());
    let mut same = Command::new(words[0]);
    same.args(&words[1..]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => same.env(name, value),
            None => same.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        same.current_dir(folder);
    }
    same
}

/// Whether a signal of this number ends a program of [`by_default`].
#[cfg(target_os = "linux")]
pub(crate) fn ends(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    DEFAULT.is_some() || ignored >> (number - 1) & 1 == 0
}

/// Sends a signal to a program, which may have ended already. (Its number is not given away before
/// it is waited for.)
pub(crate) fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -$1 $0 2>/dev/null", &child.id().to_string(), name]);
    kill.status().unwrap();
}
