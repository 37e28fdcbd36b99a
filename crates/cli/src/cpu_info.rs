//! This machine, by Linux's files; elsewhere only the architecture and the instruction set.

use std::{env, fs, thread};

/// A machine whose speed was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuInfo {
    pub(crate) cpu: String,
    /// The kernels that lanebloom chose.
    pub(crate) instruction_set: String,
    pub(crate) threads: usize,
    /// Bytes of the first, second and third level of caches for data, if known.
    pub(crate) caches: [Option<u64>; 3],
}

impl CpuInfo {
    /// The names of the caches.
    pub(crate) const CACHES: [&str; 3] = ["L1d", "L2", "L3"];

    /// The machine that this process runs on.
    pub(crate) fn this() -> Self {
        Self {
            cpu: cpu(),
            instruction_set: lanebloom::instruction_set().to_owned(),
            threads: thread::available_parallelism().map_or(1, usize::from),
            caches: caches(),
        }
    }
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    match (field("model name"), field("cpu family"), field("model")) {
        // A virtual machine's CPU often has a name that says little.
        (Some(name), Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        (Some(name), ..) => name.into(),
        // Arm has no name there; boards of it have one here.
        _ => fs::read_to_string("/sys/firmware/devicetree/base/model")
            .map(|name| name.trim_end_matches('\0').to_owned())
            .unwrap_or_else(|_| env::consts::ARCH.into()),
    }
}

fn caches() -> [Option<u64>; 3] {
    let mut caches = [None; 3];
    for index in 0..8 {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            fs::read_to_string(path).map(|text| text.trim().to_owned())
        };
        let (Ok(level), Ok(kind), Ok(size)) = (read("level"), read("type"), read("size")) else {
            continue;
        };
        let level = level.parse().unwrap_or(0_usize);
        let kib = size.strip_suffix('K').and_then(|size| size.parse::<u64>().ok());
        if kind != "Instruction" && (1..=3).contains(&level) {
            caches[level - 1] = kib.filter(|&kib| kib > 0).map(|kib| kib << 10);
        }
    }
    caches
}

/// Bytes of memory that this process may still take, if known: what the machine has, and what a
/// container may.
pub(crate) fn free_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // The memory that a container uses already includes its page cache, so its limit counts.
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok());
    Some((kib << 10).min(limit.unwrap_or(u64::MAX)))
}
