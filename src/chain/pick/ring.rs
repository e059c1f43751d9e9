//! Consistent hashing: Dubbo's ring, so that a byway consumer sends an argument where a Java consumer sends it.
//!
//! One ring serves a whole list and every routing result on it: the ring of a subset is the ring of the list without
//! the points of the others, so a pick walks on to the next point of a candidate.

use md5::{Digest, Md5};

use super::invalid;
use crate::error::{Error, Result, Status};

/// Points of all rings of one list together; a list of 100 000 providers with 160 points each stays below.
const MAX_POINTS: u64 = 1 << 25;

/// Points per provider when `hash.nodes` names none.
pub(super) const DEFAULT_NODES: u32 = 160;

/// `hash.nodes`: points per provider. Four come from one digest; fewer than four would be an empty ring.
pub(super) fn parse_nodes(text: &str) -> Result<u32> {
    let nodes = text.trim().parse().ok().filter(|nodes| *nodes >= 4);
    nodes.ok_or_else(|| invalid("hash.nodes", text, "a number of at least 4"))
}

/// `hash.arguments`: the arguments that make the key.
pub(super) fn parse_arguments(text: &str) -> Result<Box<[u32]>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let indexes: Option<Box<[u32]>> = parts.map(|part| part.parse().ok()).collect();
    indexes.ok_or_else(|| invalid("hash.arguments", text, "a list of argument numbers"))
}

/// The point of a call: MD5 over its key arguments without a separator.
pub(super) fn point<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut digest = Md5::new();
    for argument in arguments {
        digest.update(argument);
    }
    let [a, b, c, d, ..] = <[u8; 16]>::from(digest.finalize());
    u32::from_le_bytes([a, b, c, d])
}

/// The points of all providers of a list, sorted.
#[derive(Debug)]
pub struct Ring {
    /// Point in the upper half, inverted row in the lower: of providers that share a point the last in the list
    /// comes first, as in a tree map that overwrites.
    points: Box<[u64]>,
}

impl Ring {
    /// A ring over the addresses of rows 0, 1, 2, ...
    pub(super) fn build(rows: u32, nodes: u32, mut address: impl FnMut(u32, &mut String)) -> Result<Ring> {
        let total = u64::from(rows) * u64::from(nodes / 4 * 4);
        if total > MAX_POINTS {
            return Err(Error::new(
                Status::E_LIMIT,
                format!("{rows} providers with {nodes} points each are more than {MAX_POINTS} points"),
            )
            .subject("hash.nodes"));
        }
        let mut points = Vec::with_capacity(total as usize);
        let mut text = String::new();
        for row in 0..rows {
            text.clear();
            address(row, &mut text);
            let stem = Md5::new_with_prefix(text.as_bytes());
            for replica in 0..nodes / 4 {
                let mut digits = [0; 10];
                let digest = stem.clone().chain_update(decimal(replica, &mut digits)).finalize();
                for quarter in <[u8; 16]>::from(digest).chunks_exact(4) {
                    let point = quarter.iter().rev().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
                    points.push(u64::from(point) << 32 | u64::from(!row));
                }
            }
        }
        points.sort_unstable();
        Ok(Ring { points: points.into_boxed_slice() })
    }

    /// The first row at or after a point, around the ring, that may be chosen.
    pub(super) fn at(&self, point: u32, may: impl Fn(u32) -> bool) -> Option<u32> {
        let start = self.points.partition_point(|entry| (entry >> 32) < u64::from(point));
        let (before, after) = self.points.split_at(start.min(self.points.len()));
        after.iter().chain(before).map(|entry| !(*entry as u32)).find(|row| may(*row))
    }
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (number % 10) as u8;
        }
        number /= 10;
        if number == 0 || at == 0 {
            return digits.get(at..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(addresses: &[&str]) -> Ring {
        Ring::build(addresses.len() as u32, 160, |row, text| text.push_str(addresses[row as usize])).unwrap()
    }

    #[test]
    fn a_subset_is_served_as_if_it_had_a_ring_of_its_own() {
        let all = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"];
        let whole = ring(&all);
        let odd = ring(&[all[1], all[3]]);
        let mut hits = [0; 4];
        for key in 0..1000 {
            let point = point([format!("key{key}").as_bytes()].into_iter());
            let row = whole.at(point, |row| row % 2 == 1).unwrap();
            assert_eq!(row, odd.at(point, |_| true).unwrap() * 2 + 1);
            hits[whole.at(point, |_| true).unwrap() as usize] += 1;
        }
        assert!(hits.iter().all(|n| *n > 100), "{hits:?}");
        assert_eq!(whole.at(7, |_| false), None);
    }

    #[test]
    fn of_equal_addresses_the_last_in_the_list_is_chosen() {
        let ring = ring(&["10.0.0.1:1", "10.0.0.1:1"]);
        assert_eq!(ring.at(0, |_| true), Some(1));
    }

    #[test]
    fn hash_parameters_are_checked() {
        assert_eq!(parse_arguments(" 0 , 2,").unwrap()[..], [0, 2]);
        assert_eq!(parse_nodes("320"), Ok(320));
        let errors = ["3", "many", "-160", ""].map(|text| parse_nodes(text).unwrap_err());
        assert!(
            errors.iter().all(|error| error.status() == Status::E_INVOKERS && error.about() == "hash.nodes")
        );
        assert_eq!(parse_arguments("0,x").unwrap_err().about(), "hash.arguments");
        let error = Ring::build(1_000_000, 4_000_000_000, |_, _| {}).unwrap_err();
        assert_eq!(error.status(), Status::E_LIMIT);
    }

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        for number in [0, 9, 10, 4_294_967_295] {
            assert_eq!(decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }
}
