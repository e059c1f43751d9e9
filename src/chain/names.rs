//! Method names that hosts gave a number, so that a call need not carry the text across the boundary.
//!
//! One table for the process: a number means the same for every chain and for ever. It only grows and is bounded;
//! hosts intern the methods of their interfaces, not what arrives from the network.

use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::collections::HashMap;

use crate::error::{Error, Result, Status};

/// Names one process may intern.
pub const MOST: usize = 65_536;
/// Longest name.
pub const LONGEST: usize = 1024;

const CHUNK: usize = 256;

type Chunk = Box<[OnceCell<&'static [u8]>]>;

struct Names {
    numbers: Mutex<HashMap<&'static [u8], u32>>,
    chunks: [OnceCell<Chunk>; MOST / CHUNK],
}

fn names() -> &'static Names {
    static NAMES: OnceCell<Names> = OnceCell::new();
    NAMES.get_or_init(|| Names {
        numbers: Mutex::default(),
        chunks: [const { OnceCell::new() }; MOST / CHUNK],
    })
}

/// The number of a name; the same name has the same number. Never 0.
///
/// # Errors
/// `E_ARGUMENT` for an empty or over-long name, `E_LIMIT` when the table is full.
pub fn intern(name: &[u8]) -> Result<u32> {
    if name.is_empty() || name.len() > LONGEST {
        let message = format!("a method name has 1 to {LONGEST} bytes, this one {}", name.len());
        return Err(Error::new(Status::E_ARGUMENT, message));
    }
    let names = names();
    let mut numbers = names.numbers.lock();
    if let Some(number) = numbers.get(name) {
        return Ok(*number);
    }
    let index = numbers.len();
    let Some(chunk) = names.chunks.get(index / CHUNK) else {
        return Err(Error::new(Status::E_LIMIT, format!("{MOST} method names are interned already")));
    };
    // Kept for ever, that is what the number promises; the bound above is on all of them.
    let name: &'static [u8] = Box::leak(Box::from(name));
    let chunk = chunk.get_or_init(|| (0..CHUNK).map(|_| OnceCell::new()).collect());
    if let Some(place) = chunk.get(index % CHUNK) {
        let _ = place.set(name);
    }
    let number = index as u32 + 1;
    numbers.insert(name, number);
    Ok(number)
}

/// The name of a number. No lock.
#[inline]
pub fn name(number: u32) -> Option<&'static [u8]> {
    let index = (number as usize).checked_sub(1)?;
    let chunk = names().chunks.get(index / CHUNK)?.get()?;
    chunk.get(index % CHUNK)?.get().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_junk_has_none() {
        let (one, two) = (intern(b"sayHello").unwrap(), intern("gr\u{fc}\u{df}e".as_bytes()).unwrap());
        assert_ne!(one, two);
        assert_eq!(intern(b"sayHello").unwrap(), one);
        assert_eq!((name(one), name(two)), (Some(&b"sayHello"[..]), Some("gr\u{fc}\u{df}e".as_bytes())));
        assert_eq!((name(0), name(u32::MAX), name(60_000)), (None, None, None));
        assert_eq!(intern(b"").unwrap_err().status(), Status::E_ARGUMENT);
        assert_eq!(intern(&[b'x'; LONGEST + 1]).unwrap_err().status(), Status::E_ARGUMENT);
    }
}
