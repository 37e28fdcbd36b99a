//! The jars of the tests and benches beside a JVM, where this machine has them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folder of the files that `ci/fetch` fetches.
pub fn fetched() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    cache.unwrap_or_default().join("lanebloom")
}

/// The class paths with Guava: Debian's (`libguava-java`), then the newer one that
/// `ci/fetch/spark.sh` fetched; only the one in `LANEBLOOM_GUAVA` if it is set. Or why there is
/// none.
pub fn guava() -> Result<Vec<String>, String> {
    let debian = PathBuf::from("/usr/share/java/guava.jar");
    let is_guava = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("guava-") && name.ends_with(".jar")
    };
    let fetched = fs::read_dir(fetched()).into_iter().flatten();
    let mut fetched: Vec<PathBuf> = fetched.flatten().map(|entry| entry.path()).filter(is_guava).collect();
    fetched.sort();
    class_paths("LANEBLOOM_GUAVA", [vec![debian], fetched].concat())
}

/// The class path with Spark's filter: the jar that `ci/fetch/spark.sh` fetched, or the one in
/// `LANEBLOOM_SPARK`. Or why there is none.
pub fn spark() -> Result<Vec<String>, String> {
    let jars = vec![fetched().join("spark-sketch.jar")];
    class_paths("LANEBLOOM_SPARK", jars).map_err(|why| why + ": run ci/fetch/spark.sh")
}

/// The jars that exist, of these or of the one that the variable names, which may be a class path
/// of several.
fn class_paths(variable: &str, jars: Vec<PathBuf>) -> Result<Vec<String>, String> {
    let class_path = |jar: &PathBuf| jar.to_str().expect("a path in UTF-8").to_owned();
    let known: Vec<String> = match env::var(variable) {
        Ok(class_path) => vec![class_path],
        Err(_) => jars.iter().map(class_path).collect(),
    };
    let exists = |path: &String| path.contains(':') || Path::new(path).exists();
    let found: Vec<String> = known.iter().filter(|path| exists(path)).cloned().collect();
    if found.is_empty() {
        return Err(format!("there is no {}", known.join(" and no ")));
    }
    Ok(found)
}
