//! `*` and `?` patterns over host names: no recursion, no compilation.

/// True if all of `text` matches: `*` stands for any run of bytes, `?` for one. ASCII case is ignored. The
/// worst case is the product of the lengths, without recursion.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to resume when a mismatch follows a star: the star's place, and the text behind what it took.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t += 1;
            }
            Some(other) if other.eq_ignore_ascii_case(&byte) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text, want) in [
            ("*.example.com", "www.EXAMPLE.com", true),
            ("*.example.com", "example.com", false),
            ("*example.com", "notexample.com", true),
            ("x.*.y.com", "x.a.b.y.com", true),
            ("10.*.*.*", "10.12.34.56", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("*", "", true),
            ("*a*b", "ab ab a", false),
            ("*a*b", "ab ab ab", true),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }
}
