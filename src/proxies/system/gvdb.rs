//! Read-only GVDB, the file format of dconf: a hash table of names whose values are serialised GVariants.
//! Everything is bounds-checked; a damaged file gives an error or fewer entries, never more work than its size.

use std::collections::HashMap;

/// A value of a type settings use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    Number(i32),
    List(Vec<String>),
}

/// Reads every value below `prefix`, by full name. `None` when the file is no little-endian GVDB.
pub(super) fn read(file: &[u8], prefix: &str) -> Option<HashMap<String, Value>> {
    if file.get(..8)? != b"GVariant" {
        return None;
    }
    let table = range(file, word(file, 16)?, word(file, 20)?)?;
    let blooms = word(table, 0)? & 0x07ff_ffff;
    let buckets = word(table, 4)?;
    let items_at = blooms.checked_add(buckets)?.checked_mul(4)?.checked_add(8)?;
    let items = table.get(usize::try_from(items_at).ok()?..)?;
    let item = |index: usize| items.get(index.checked_mul(24)?..)?.get(..24);
    let count = items.len() / 24;
    let mut found = HashMap::new();
    for index in 0..count {
        let Some(entry) = item(index) else { break };
        if entry.get(14) != Some(&b'v') {
            continue;
        }
        let Some(name) = full_name(file, &item, index, count) else { continue };
        if !name.starts_with(prefix) {
            continue;
        }
        let bytes = word(entry, 16).zip(word(entry, 20)).and_then(|(from, to)| range(file, from, to));
        if let Some(value) = bytes.and_then(decode) {
            found.insert(name, value);
        }
    }
    Some(found)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn range(bytes: &[u8], from: u32, to: u32) -> Option<&[u8]> {
    bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

/// Names are stored as a chain of suffixes; a chain longer than any path is a damaged file.
fn full_name<'a>(
    file: &[u8],
    item: &impl Fn(usize) -> Option<&'a [u8]>,
    index: usize,
    count: usize,
) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = index;
    for _ in 0..64 {
        let entry = item(at)?;
        let start = word(entry, 8)?;
        let size = u32::from(u16::from_le_bytes(entry.get(12..14)?.try_into().ok()?));
        parts.push(range(file, start, start.checked_add(size)?)?);
        let parent = word(entry, 4)?;
        if parent == u32::MAX {
            parts.reverse();
            return String::from_utf8(parts.concat()).ok();
        }
        at = usize::try_from(parent).ok().filter(|parent| *parent < count)?;
    }
    None
}

/// A value inside a variant: its bytes, a NUL, its type.
fn decode(bytes: &[u8]) -> Option<Value> {
    let split = bytes.iter().rposition(|b| *b == 0)?;
    let (data, kind) = (bytes.get(..split)?, bytes.get(split + 1..)?);
    let text = |data: &[u8]| String::from_utf8(data.strip_suffix(b"\0")?.to_vec()).ok();
    match kind {
        b"s" => text(data).map(Value::Text),
        b"b" => data.first().map(|b| Value::Flag(*b != 0)),
        b"i" => Some(Value::Number(i32::from_le_bytes(data.get(..4)?.try_into().ok()?))),
        b"as" => {
            if data.is_empty() {
                return Some(Value::List(Vec::new()));
            }
            // Every element's end stands behind the elements, in the smallest width that can hold the size.
            let width = match data.len() {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            };
            let offset = |at: usize| {
                let mut wide = [0; 8];
                wide.get_mut(..width)?.copy_from_slice(data.get(at..at + width)?);
                usize::try_from(u64::from_le_bytes(wide)).ok()
            };
            let ends = offset(data.len().checked_sub(width)?)?;
            let mut list = Vec::new();
            let mut from = 0;
            let mut at = ends;
            while at + width <= data.len() {
                let to = offset(at)?;
                list.push(text(data.get(from..to)?)?);
                from = to;
                at += width;
            }
            Some(Value::List(list))
        }
        _ => None,
    }
}
