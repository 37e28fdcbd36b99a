//! Extended attributes, which a file keeps when `--in-place` replaces it. Access control lists of
//! Linux are among them. `output.rs` calls it.

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) use unix::keep;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod unix {
    use crate::note;
    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr, getxattr, listxattr};
    use rustix::io::Errno;
    use std::fmt::Display;
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::{MetadataExt, fchown};
    use std::path::Path;

    /// Permissions for users and groups by name, and for the file's group.
    const ACCESS: &[u8] = b"system.posix_acl_access";

    /// Attributes that the kernel keeps itself: hashes of the file's bytes.
    const OF_BYTES: [&[u8]; 2] = [b"security.ima", b"security.evm"];

    /// Gives a new file the attributes of the old one. Says which ones it cannot have.
    pub(crate) fn keep(old: &Path, new: &File) {
        let loses = |what: &str, error: &dyn Display| {
            note(&format!(
                "lanebloom: {} loses its extended {what}: {error}",
                old.display()
            ));
        };
        let names = match sized(|buffer| listxattr(old, buffer)) {
            Ok(names) => names,
            // A file system, or a kernel, without attributes.
            Err(Errno::NOTSUP | Errno::NOSYS) => return,
            Err(error) => return loses("attributes", &error),
        };
        let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        if !names.clone().any(|name| name == ACCESS) {
            // The folder may give one to new files. Without one, this fails.
            let _ = fremovexattr(new, ACCESS);
        }
        for name in names.filter(|name| !OF_BYTES.contains(name)) {
            if let Err(error) = keep_one(old, new, name) {
                loses(&format!("attribute {}", name.escape_ascii()), &error);
            }
        }
    }

    fn keep_one(old: &Path, new: &File, name: &[u8]) -> io::Result<()> {
        let value = sized(|buffer| getxattr(old, name, buffer))?;
        if sized(|buffer| fgetxattr(new, name, buffer)).is_ok_and(|own| own == value) {
            return Ok(());
        }
        if name == ACCESS {
            // Otherwise another group would have the permissions.
            let group = old.metadata()?.gid();
            if new.metadata()?.gid() != group {
                fchown(new, None, Some(group))?;
            }
        }
        Ok(fsetxattr(new, name, &value, XattrFlags::empty())?)
    }

    /// The bytes that a call writes to a buffer that is large enough.
    fn sized(mut call: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
        let mut buffer = vec![0; 1 << 10];
        loop {
            match call(&mut buffer) {
                Err(Errno::RANGE) => buffer.resize(2 * buffer.len(), 0),
                other => {
                    buffer.truncate(other?);
                    return Ok(buffer);
                }
            }
        }
    }
}

/// The system has none, or Rust has no call for them.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn keep(_: &std::path::Path, _: &std::fs::File) {}
