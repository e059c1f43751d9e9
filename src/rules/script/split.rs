//! Turns a script whose last expression is its answer into a function body that returns it, so that it is compiled
//! once instead of at every call.

/// The statements in front, and the expression that is the answer. `None` when the last statement is not plainly
/// an expression; such scripts are evaluated as they are.
pub(super) fn answer(script: &str) -> Option<(&str, &str)> {
    let (mut ends, end) = boundaries(script)?;
    let text = script.get(..end)?;
    ends.retain(|at| *at < end);
    let start = ends.last().copied().unwrap_or(0);
    let (head, tail) = text.split_at_checked(start)?;
    let tail = tail.trim();
    let word = tail.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').next()?;
    let statement = matches!(
        word,
        "" | "var"
            | "let"
            | "const"
            | "if"
            | "for"
            | "while"
            | "do"
            | "switch"
            | "try"
            | "throw"
            | "return"
            | "else"
            | "catch"
            | "finally"
            | "function"
            | "class"
            | "with"
            | "break"
            | "continue"
            | "import"
            | "export"
            | "debugger"
    );
    let opens = tail.starts_with(['(', '[']) || !word.is_empty();
    (opens && (!statement || word.is_empty()) && !tail.starts_with('{')).then_some((head, tail))
}

/// Places behind top-level statements, and the end of the text without trailing separators. A `}` ends a statement
/// only if the statement began with a word that says so. `None` when the text does not look well-formed.
fn boundaries(script: &str) -> Option<(Vec<usize>, usize)> {
    let bytes = script.as_bytes();
    let mut ends = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    // The last significant byte: a slash behind a value divides, elsewhere it begins a pattern.
    let mut last = b';';
    let mut last_end = 0;
    let mut statement = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'/' if next == b'/' => {
                at += script.get(at..)?.find('\n').unwrap_or(script.len() - at);
                continue;
            }
            b'/' if next == b'*' => {
                at += script.get(at + 2..)?.find("*/")? + 4;
                continue;
            }
            b'"' | b'\'' | b'`' => {
                at = quoted(bytes, at, byte)?;
                last = byte;
                last_end = at;
                continue;
            }
            b'/' if !(last.is_ascii_alphanumeric()
                || matches!(last, b')' | b']' | b'_' | b'$' | b'"' | b'\'' | b'`')) =>
            {
                at = quoted(bytes, at, b'/')?;
                last = b')';
                last_end = at;
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && byte == b'}' {
                    let begun = script.get(statement..at)?.trim_start();
                    let block =
                        ["function ", "if", "for", "while", "try", "switch", "{", "else", "catch", "finally"];
                    if block.iter().any(|word| begun.starts_with(word)) {
                        statement = at + 1;
                        ends.push(statement);
                        last = b';';
                        at += 1;
                        last_end = at;
                        continue;
                    }
                }
            }
            b';' if depth == 0 => {
                statement = at + 1;
                ends.push(statement);
                last = b';';
                at += 1;
                continue;
            }
            _ => {}
        }
        last = byte;
        at += 1;
        last_end = at;
    }
    (depth == 0).then_some((ends, last_end))
}

/// Behind the closing quote.
fn quoted(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from + 1;
    let mut class = false;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'\n' if quote != b'`' => return None,
            b'[' if quote == b'/' => class = true,
            b']' if quote == b'/' => class = false,
            byte if byte == quote && !class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn the_last_expression_is_the_answer() {
        for (script, tail) in [
            ("function route(a){return a} route(invokers)", Some("route(invokers)")),
            ("function route(a){return a} (invokers)", Some("(invokers)")),
            (
                "(function route(a){ return a; }(invokers));",
                Some("(function route(a){ return a; }(invokers))"),
            ),
            ("var l = []; for (var i = 0; i < 3; i++) if (i) l.push(i); l", Some("l")),
            ("invokers", Some("invokers")),
            ("[invokers.get(0)] // the first\n", Some("[invokers.get(0)]")),
            ("var a = '};'; a /* x; y */", Some("a")),
            ("var r = /[;/}]/; r.test('x') ? invokers : []", Some("r.test('x') ? invokers : []")),
            ("throw 'x'", None),
            ("if (1) { invokers } else { [] }", None),
            ("var f = function () {} (invokers)", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(answer(script).map(|(_, tail)| tail), tail, "{script}");
        }
    }
}
