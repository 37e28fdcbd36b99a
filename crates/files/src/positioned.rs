//! Reads and writes at a place of a file, on Unix and on Windows. The cursor of the file is not
//! used; on Windows such a call moves it.

#[cfg(unix)]
pub use std::os::unix::fs::FileExt;

#[cfg(windows)]
pub trait FileExt {
    fn read_at(&self, bytes: &mut [u8], at: u64) -> std::io::Result<usize>;
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()>;
    fn write_all_at(&self, bytes: &[u8], at: u64) -> std::io::Result<()>;
}

#[cfg(windows)]
impl FileExt for std::fs::File {
    fn read_at(&self, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, bytes, at)
    }

    fn read_exact_at(&self, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let read = self.read_at(bytes, at)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            bytes = &mut bytes[read..];
            at += read as u64;
        }
        Ok(())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let written = std::os::windows::fs::FileExt::seek_write(self, bytes, at)?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
            at += written as u64;
        }
        Ok(())
    }
}
