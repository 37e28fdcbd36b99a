//! Writes lines of 20 to 100 bytes to stdout, of which a share repeats earlier ones: `lines COUNT
//! PERCENT`. The number of different lines goes to stderr.

#[path = "../../../tests/common/number.rs"]
mod number;

use number::number;
use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<u64> = env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let &[count, percent] = args.as_slice() else {
        return Err("two numbers: lines, and how many percent repeat an earlier one".into());
    };
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut different = 0;
    for i in 0..count {
        let random = number(2 * i);
        let line = if different > 0 && random % 100 < percent {
            number(2 * i + 1) % different
        } else {
            different += 1;
            different - 1
        };
        write_line(&mut out, line)?;
    }
    out.flush()?;
    eprintln!("{different}");
    Ok(())
}

/// Letters and digits that only this number has, and a length that depends on it.
fn write_line(out: &mut impl Write, line: u64) -> io::Result<()> {
    const DIGITS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let mut random = number(line ^ 0x6c69_6e65);
    let len = 20 + (random % 81) as usize;
    let mut bytes = [b'\n'; 101];
    for (at, byte) in bytes[..len].iter_mut().enumerate() {
        if at % 10 == 0 && at > 0 {
            random = number(random);
        }
        *byte = DIGITS[(random >> (6 * (at % 10)) & 63) as usize];
    }
    out.write_all(&bytes[..=len])
}
