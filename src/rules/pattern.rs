//! The right-hand sides of conditions: what a value is compared with.

use super::dialect::{Dialect, RangeStyle, StarStyle};
use super::ip::IpPattern;

/// Which side of a condition a pattern stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Tests the call; `$name` is plain text.
    When,
    /// Tests a provider; `$name` is the consumer's value.
    Then,
}

/// One value pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `*`: every value, the empty one too.
    Any,
    /// This very text.
    Exact(String),
    /// `head*tail`; both may overlap in the value (`ab*ba` matches `aba`).
    HeadTail(String, String),
    /// Pieces between stars, none overlapping, the first and last anchored; at least two stars.
    Pieces(Vec<String>),
    /// `a~b`.
    Range(Range),
    /// A network or an address range, in `host` and `address`.
    Ip(IpPattern),
    /// `$name`: a value of the consumer URL, itself used as a pattern, but not as a range or reference.
    Reference(String),
}

/// A range of whole numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Values that are no number are outside.
    Strict(i64, i64),
    /// Values that are not all digits count as 0; beyond 32 bits the answer is the default.
    Java {
        /// Lower end.
        low: i32,
        /// Upper end.
        high: i32,
        /// Answer where Dubbo's parser throws.
        default: bool,
    },
    /// Values that are no 64-bit number give the default.
    Go {
        /// Lower end.
        low: i64,
        /// Upper end.
        high: i64,
        /// Answer where Go's parser fails.
        default: bool,
    },
    /// A range that the dialect cannot read: always its default.
    Broken(bool),
}

impl Pattern {
    /// Reads the pattern that a rule has for `key`. The error says what is wrong, without the place.
    pub fn parse(text: &str, key: &str, side: Side, dialect: Dialect) -> Result<Pattern, String> {
        let table = dialect.table();
        let of_address = table.ip_patterns && matches!(key, "host" | "address");
        if of_address && (text.contains('~') || text.contains('/')) && !text.starts_with('$') {
            return IpPattern::parse(text).map(Pattern::Ip);
        }
        if text.contains('~') && table.range != RangeStyle::Literal {
            return Range::parse(text, side, table.range).map(Pattern::Range);
        }
        if side == Side::Then
            && let Some(name) = text.strip_prefix('$')
        {
            return Ok(Pattern::Reference(name.to_owned()));
        }
        Ok(Pattern::glob(text, table.star))
    }

    /// Reads text in which only `*` is special: what a `$name` stands for.
    pub fn glob(text: &str, star: StarStyle) -> Pattern {
        if text == "*" {
            return Pattern::Any;
        }
        let Some((head, tail)) = text.rsplit_once('*') else { return Pattern::Exact(text.to_owned()) };
        if star == StarStyle::Every && head.contains('*') {
            let mut pieces: Vec<String> = text.split('*').map(str::to_owned).collect();
            // Inner empty pieces come from `**`, which is one star.
            let last = pieces.len() - 1;
            let mut index = 0;
            pieces.retain(|piece| {
                let keep = index == 0 || index == last || !piece.is_empty();
                index += 1;
                keep
            });
            return match pieces.as_slice() {
                [head, tail] if head.is_empty() && tail.is_empty() => Pattern::Any,
                [head, tail] => Pattern::HeadTail(head.clone(), tail.clone()),
                _ => Pattern::Pieces(pieces),
            };
        }
        Pattern::HeadTail(head.to_owned(), tail.to_owned())
    }

    /// Whether a value fits. A [`Pattern::Reference`] must be resolved first and fits nothing.
    pub fn matches(&self, value: &str) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Exact(text) => value == text,
            Pattern::HeadTail(head, tail) => {
                value.starts_with(head.as_str()) && value.ends_with(tail.as_str())
            }
            Pattern::Pieces(pieces) => pieces_match(pieces, value),
            Pattern::Range(range) => range.contains(value),
            Pattern::Ip(ip) => ip.matches_address(value),
            Pattern::Reference(_) => false,
        }
    }
}

/// Leftmost placement of every inner piece: right for globs without backtracking, linear in the value per piece.
fn pieces_match(pieces: &[String], value: &str) -> bool {
    let [head, inner @ .., tail] = pieces else { return false };
    let Some(mut rest) = value.strip_prefix(head.as_str()) else { return false };
    for piece in inner {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = rest.get(at + piece.len()..).unwrap_or_default();
    }
    rest.ends_with(tail.as_str())
}

impl Range {
    fn parse(text: &str, side: Side, style: RangeStyle) -> Result<Range, String> {
        let default = side == Side::Then;
        if style == RangeStyle::Strict {
            return Range::parse_strict(text);
        }
        let mut pieces = text.split('~');
        let (low, high) = (pieces.next().unwrap_or_default(), pieces.next().unwrap_or_default());
        if style == RangeStyle::Java {
            // Java's split drops empty pieces at the end, so `5~` has one piece and is no range.
            if text.trim_end_matches('~').split('~').count() < 2 {
                return Ok(Range::Broken(default));
            }
            return Ok(match (java_number(low), java_number(high)) {
                (Some(low_end), Some(high_end)) => Range::Java {
                    low: if low.is_empty() { i32::MIN } else { low_end },
                    high: if high.is_empty() { i32::MAX } else { high_end },
                    default,
                },
                _ => Range::Broken(default),
            });
        }
        if low.is_empty() && high.is_empty() {
            return Ok(Range::Broken(default));
        }
        let low_end = if low.is_empty() { Some(i64::MIN) } else { low.parse().ok() };
        let high_end = if high.is_empty() { Some(i64::MAX) } else { high.parse().ok() };
        Ok(match (low_end, high_end) {
            (Some(low), Some(high)) => Range::Go { low, high, default },
            _ => Range::Broken(default),
        })
    }

    fn parse_strict(text: &str) -> Result<Range, String> {
        let mut pieces = text.split('~');
        let (Some(low), Some(high), None) = (pieces.next(), pieces.next(), pieces.next()) else {
            return Err(format!("'{text}' has more than one ~; a range is a~b, a~ or ~b"));
        };
        if low.is_empty() && high.is_empty() {
            return Err("a range needs at least one end: a~b, a~ or ~b".to_owned());
        }
        let end = |text: &str, open: i64| {
            if text.is_empty() {
                return Ok(open);
            }
            text.parse::<i64>().map_err(|_| format!("'{text}' is not a whole number, as a range a~b needs"))
        };
        let (low, high) = (end(low, i64::MIN)?, end(high, i64::MAX)?);
        if low > high {
            return Err(format!("the range {low}~{high} is empty: its first number is above its last"));
        }
        Ok(Range::Strict(low, high))
    }

    /// Whether a value is inside.
    pub fn contains(&self, value: &str) -> bool {
        match *self {
            Range::Strict(low, high) => match strict_number(value) {
                Some(value) => {
                    (i128::from(low)..=i128::from(high)).contains(&value)
                        || (high == i64::MAX && value > i128::from(high))
                        || (low == i64::MIN && value < i128::from(low))
                }
                None => false,
            },
            Range::Java { low, high, default } => match java_number(value) {
                Some(value) => (low..=high).contains(&value),
                None => default,
            },
            Range::Go { low, high, default } => match value.parse::<i64>() {
                Ok(value) => (low..=high).contains(&value),
                Err(_) => default,
            },
            Range::Broken(answer) => answer,
        }
    }
}

/// A whole number of any length; what does not fit 128 bits counts as the nearest one that does.
fn strict_number(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let far = if digits.len() == text.len() { i128::MAX } else { i128::MIN };
    Some(text.parse().unwrap_or(far))
}

/// Digits are their value, anything else is 0; `None` beyond 32 bits, where Java throws.
fn java_number(text: &str) -> Option<i32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(0);
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(dialect: Dialect, key: &str, pattern: &str, value: &str) -> bool {
        Pattern::parse(pattern, key, Side::When, dialect).unwrap().matches(value)
    }

    #[test]
    fn every_star_is_a_star_by_default() {
        for (pattern, value, want) in [
            ("10.*.3.*", "10.20.3.3", true),
            ("*20*", "10.20.3.3", true),
            ("a**b", "ab", true),
            ("**", "", true),
            ("a*a*a", "aa", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("*b*b", "ab", false),
        ] {
            assert_eq!(matches(Dialect::Byway, "x", pattern, value), want, "{pattern} {value}");
        }
        assert!(!matches(Dialect::Dubbo3, "x", "10.*.3.*", "10.20.3.3"));
    }

    #[test]
    fn ranges_are_whole_numbers() {
        for (pattern, value, want) in [
            ("5~", "5", true),
            ("5~", "99999999999999999999999999999999999999999999", true),
            ("5~", "abc", false),
            ("~-5", "-7", true),
            ("1~100", "050", true),
            ("1~100", "1.5", false),
            ("1~100", "", false),
        ] {
            assert_eq!(matches(Dialect::Byway, "x", pattern, value), want, "{pattern} {value}");
        }
        for (key, pattern, words) in [
            ("x", "~", "at least one end"),
            ("x", "a~b", "whole number"),
            ("x", "1~2~3", "more than one"),
            ("x", "9~1", "empty"),
            ("host", "10.0.0.0/40", "prefix length"),
            ("host", "1~5", "not an IP address"),
        ] {
            let error = Pattern::parse(pattern, key, Side::Then, Dialect::Byway).expect_err(pattern);
            assert!(error.contains(words), "{pattern}: {error}");
        }
    }
}
