//! Picks against the most literal reading of upstream's algorithms: maps, lists, no cleverness.

use std::collections::{BTreeMap, HashMap};

use md5::{Digest, Md5};

use super::tests::{List, World};
use super::*;
use crate::chain::bits::Rows;
use crate::runtime::random::Stream;

/// A random list: 1 to 12 providers with fresh or old tags and small weights.
fn random_list(draw: &mut Stream, equal: bool) -> (List, Vec<(u64, u32)>) {
    let count = 1 + draw.index(12);
    let mut tags: Vec<u64> = (1..=20).collect();
    for place in 0..count {
        let other = place + draw.index(tags.len() - place);
        tags.swap(place, other);
    }
    tags.truncate(count);
    let common = 1 + draw.below(9) as u32;
    let rows: Vec<(u64, u32)> =
        tags.iter().map(|tag| (*tag, if equal { common } else { draw.below(10) as u32 })).collect();
    let texts: Vec<String> = rows.iter().map(|(_, weight)| format!("weight={weight}")).collect();
    (List::new(&texts.iter().map(String::as_str).collect::<Vec<_>>()).tagged(&tags), rows)
}

/// A random subset of at least one row, ascending.
fn random_rows(draw: &mut Stream, count: usize) -> Vec<u32> {
    let rows: Vec<u32> = (0..count as u32).filter(|_| draw.below(3) > 0).collect();
    if rows.is_empty() { vec![draw.index(count) as u32] } else { rows }
}

#[test]
fn round_robin_equals_upstreams_over_changing_lists_and_subsets() {
    let mut draw = Stream::seeded(77);
    for _ in 0..200 {
        let (list, mut weights) = random_list(&mut draw, false);
        let mut world = World::over(list);
        let mut credit: HashMap<u64, (u32, i64)> = HashMap::new();
        for _ in 0..40 {
            if draw.below(10) == 0 {
                let (list, changed) = random_list(&mut draw, false);
                world.replace(list);
                weights = changed;
            }
            let rows = random_rows(&mut draw, weights.len());
            let all_equal = weights.iter().all(|(_, weight)| *weight == weights[0].1);
            if rows.len() == 1 || all_equal {
                // Neither has credits: one candidate is taken as it is, equal weights take turns.
                continue;
            }
            let mut best: Option<(u64, i64)> = None;
            let mut total = 0;
            for row in &rows {
                let (tag, weight) = weights[*row as usize];
                let own = credit.entry(tag).or_insert((weight, 0));
                if own.0 != weight {
                    *own = (weight, 0);
                }
                own.1 += i64::from(weight);
                total += i64::from(weight);
                if best.is_none_or(|(_, most)| own.1 > most) {
                    best = Some((tag, own.1));
                }
            }
            let (want, _) = best.unwrap();
            credit.get_mut(&want).unwrap().1 -= total;
            let request = Request { balance: Some(Balance::RoundRobin), ..Request::new(b"m") };
            let got = world.try_pick(&Rows::List(&rows), &request).unwrap();
            assert_eq!(got.tag, want, "{weights:?} {rows:?}");
        }
    }
}

#[test]
fn consistent_hash_equals_a_tree_map_over_any_subset() {
    let md5 = |text: &str| <[u8; 16]>::from(Md5::digest(text.as_bytes()));
    let number = |digest: [u8; 16], at: usize| {
        (0..4).rev().fold(0_u32, |value, byte| value << 8 | u32::from(digest[at * 4 + byte]))
    };
    let mut draw = Stream::seeded(78);
    for _ in 0..20 {
        let (list, weights) = random_list(&mut draw, true);
        let mut world = World::over(list);
        let rows = random_rows(&mut draw, weights.len());
        let mut ring: BTreeMap<u32, u64> = BTreeMap::new();
        for row in &rows {
            let tag = weights[*row as usize].0;
            for replica in 0..40 {
                let digest = md5(&format!("10.0.0.{tag}:20880{replica}"));
                (0..4).for_each(|at| {
                    ring.insert(number(digest, at), tag);
                });
            }
        }
        for _ in 0..200 {
            let key = draw.next_u64().to_string();
            let point = number(md5(&key), 0);
            let want = *ring.range(point..).chain(&ring).next().unwrap().1;
            let get = |index: usize| (index == 0).then_some(key.as_bytes());
            let request =
                Request { balance: Some(Balance::ConsistentHash), arguments: &get, ..Request::new(b"m") };
            assert_eq!(world.try_pick(&Rows::List(&rows), &request).unwrap().tag, want);
        }
    }
}

#[test]
fn every_algorithm_chooses_within_upstreams_allowed_set() {
    let mut draw = Stream::seeded(79);
    for _ in 0..2000 {
        let equal = draw.below(2) == 0;
        let (list, weights) = random_list(&mut draw, equal);
        let mut world = World::over(list);
        let rows = random_rows(&mut draw, weights.len());
        let available = [draw.next_u64()];
        let exclude: Vec<u64> = (0..draw.below(6)).map(|_| 1 + draw.below(20)).collect();
        let check_available = draw.below(4) > 0;
        let up = |row: &u32| available[0] >> row & 1 == 1;
        let fresh = |row: &u32| !exclude.contains(&weights[*row as usize].0);
        let untried: Vec<u32> =
            rows.iter().copied().filter(|row| fresh(row) && (!check_available || up(row))).collect();
        let tried: Vec<u32> = rows.iter().copied().filter(up).collect();
        let allowed = [untried, tried, rows.clone()].into_iter().find(|set| !set.is_empty()).unwrap();
        for balance in Balance::ALL {
            let request = Request {
                balance: Some(balance),
                available: Some(&available),
                exclude: &exclude,
                check_available,
                ..Request::new(b"m")
            };
            let picked = world.try_pick(&Rows::List(&rows), &request).unwrap();
            assert!(
                rows.len() == 1 || allowed.contains(&picked.row),
                "{balance:?} {picked:?} of {rows:?}, allowed {allowed:?}"
            );
            assert_eq!(picked.available, up(&picked.row));
        }
    }
}
