//! [`HostsTable`]: names to addresses from hosts-file text (`ip name [name …]`, `#` comments).

use super::hash::Seed;
use super::host::Host;
use super::ip::Ip;
use crate::error::{Error, Position, Result, Source, Status};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Addresses one name may have. Far above any real file; it keeps a hostile one from costing the square of its length.
const MAX_ADDRESSES: usize = 4096;

/// A static resolver. Answers keep the order of the text. A lookup is on the path of every selection, so it hashes as the
/// route database does, not as the standard library.
#[derive(Clone)]
pub struct HostsTable {
    seed: Seed,
    names: HashTable<(Box<str>, Vec<Ip>)>,
}

impl Default for HostsTable {
    fn default() -> HostsTable {
        HostsTable { seed: Seed::random(), names: HashTable::new() }
    }
}

impl HostsTable {
    /// Parses the whole text; names are canonicalised as hosts are.
    ///
    /// # Errors
    /// `E_SYNTAX` with line and column of the first word that is no address or no name, `E_LIMIT` with that of a name
    /// that has more than 4096 addresses.
    pub fn parse(text: &str) -> Result<HostsTable> {
        let mut table = HostsTable::default();
        for line in text.lines() {
            let content = line.split('#').next().unwrap_or_default();
            let fail_as = |status: Status, word: &str, what: String| {
                // The word is a slice of `text`, so its place is a difference of addresses.
                let at = word.as_ptr().addr().saturating_sub(text.as_ptr().addr());
                Error::new(status, what).at(Position::in_text(text, at)).source(Source::Parser)
            };
            let fail = |word: &str, what: String| fail_as(Status::E_SYNTAX, word, what);
            let mut words = content.split_ascii_whitespace();
            if let Some(first) = words.next() {
                let ip =
                    Ip::parse(first).map_err(|error| fail(first, error.message().to_owned()))?.unmapped();
                let mut any = false;
                for word in words {
                    let host = Host::parse(word, &|_| None)
                        .map_err(|error| fail(word, format!("expected a host name: {}", error.message())))?;
                    let ips = table.addresses(host.text());
                    if !ips.contains(&ip) {
                        if ips.len() == MAX_ADDRESSES {
                            let what = format!("{word} has more than {MAX_ADDRESSES} addresses");
                            return Err(fail_as(Status::E_LIMIT, word, what));
                        }
                        ips.push(ip);
                    }
                    any = true;
                }
                if !any {
                    return Err(fail(first, format!("no name follows the address {first}")));
                }
            }
        }
        Ok(table)
    }

    /// Where the addresses of a name are gathered.
    fn addresses(&mut self, name: &str) -> &mut Vec<Ip> {
        let HostsTable { seed, names } = self;
        let hash = |name: &str| seed.hash_bytes(name.as_bytes());
        let entry = match names.entry(hash(name), |(known, _)| &**known == name, |(known, _)| hash(known)) {
            Entry::Occupied(known) => known,
            Entry::Vacant(place) => place.insert((name.into(), Vec::new())),
        };
        &mut entry.into_mut().1
    }

    fn find(&self, name: &str) -> Option<&[Ip]> {
        let hash = self.seed.hash_bytes(name.as_bytes());
        self.names.find(hash, |(known, _)| &**known == name).map(|(_, ips)| &**ips)
    }

    /// The addresses of a canonical name, empty when it is not listed. A final dot does not matter.
    pub fn lookup(&self, name: &str) -> &[Ip] {
        self.find(name).or_else(|| self.find(name.strip_suffix('.')?)).unwrap_or_default()
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True when nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_more_addresses_than_can_be_tried_is_refused() {
        let lines = |n: usize| -> String {
            (0..n)
                .map(|i| format!("10.0.{}.{} a b{i}\n10.0.{}.{} a\n", i >> 8, i & 255, i >> 8, i & 255))
                .collect()
        };
        assert_eq!(HostsTable::parse(&lines(MAX_ADDRESSES)).unwrap().lookup("a").len(), MAX_ADDRESSES);
        let error = HostsTable::parse(&lines(MAX_ADDRESSES + 1)).err().unwrap();
        let line = error.position().map(|at| at.line);
        assert_eq!((error.status(), line), (Status::E_LIMIT, Some(2 * MAX_ADDRESSES as u32 + 1)));
    }

    #[test]
    fn names_answer_in_the_order_of_the_text() {
        let table =
            HostsTable::parse("# comment\n192.0.2.1 A.example a # x\n\n2001:db8::1\ta.example\r\n").unwrap();
        let texts: Vec<String> = table.lookup("a.example").iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(table.lookup("a.").len(), 1);
        assert!(table.lookup("b").is_empty());
    }

    #[test]
    fn faults_name_their_place() {
        for (text, line, column) in
            [("1.2.3.4 ok\n  1.2.3 b", 2, 3), ("1.2.3.4", 1, 1), ("1.2.3.4 a b/c", 1, 11)]
        {
            let at = HostsTable::parse(text).err().unwrap().position().unwrap();
            assert_eq!((at.line, at.column), (line, column), "{text:?}");
        }
    }
}
