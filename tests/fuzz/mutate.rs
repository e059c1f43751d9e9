//! The mutator: a seed, changed a few times.

/// Draws and changes; the same numbers for the same seed.
pub(crate) struct Mutator(u64);

/// Bytes and pieces that parsers often trip over, in any language.
const AWKWARD: &[&str] = &[
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "%",
    "%00",
    "%zz",
    "%C3%A9",
    "é",
    "\u{202e}",
    "\u{feff}",
    "👾",
    "\u{fffd}",
    ":",
    "::",
    "[",
    "]",
    "[]",
    "{",
    "}",
    "{}",
    "(",
    ")",
    "*",
    "**",
    "?",
    "&",
    "&&",
    "=",
    "==",
    "!=",
    "=>",
    "#",
    ",",
    ",,",
    ";",
    "-",
    "--",
    "---\n",
    "...",
    "~",
    "|",
    ">",
    "'",
    "\"",
    "\\",
    "/",
    "//",
    "@",
    "$",
    "0",
    "-1",
    "1e9",
    "65535",
    "65536",
    "2147483648",
    "9223372036854775808",
    "18446744073709551616",
    "1.5",
    ".5",
    "NaN",
    "true",
    "null",
    "127.0.0.1",
    "::1",
    "fe80::1%eth0",
    "999.1.1.1",
    "10.0.0.0/8",
    "10.0.0.0/33",
    "::/129",
    "localhost",
    "xn--e1afmkfd",
];

impl Mutator {
    pub(crate) fn new(seed: u64) -> Mutator {
        Mutator(seed)
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, 0 when that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { usize::try_from(self.next() % bound as u64).unwrap_or(0) }
    }

    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len + 1);
        // Mostly short pieces.
        let most = if self.below(4) == 0 { len - start } else { (len - start).min(12) };
        start..start + self.below(most + 1)
    }

    /// One of the seeds, changed up to eight times; now and then unchanged.
    pub(crate) fn input(&mut self, seeds: &[Vec<u8>], words: &[&str], longest: usize) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..self.below(9) {
            self.change(&mut input, seeds, words);
            input.truncate(longest);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
        match self.below(10) {
            0 => {
                let range = self.range(input.len());
                input.drain(range);
            }
            1 => {
                // A piece again, a few times or many.
                let range = self.range(input.len());
                let piece = input[range.clone()].to_vec();
                let times = if self.below(8) == 0 { 1 + self.below(200) } else { 1 + self.below(3) };
                let many = piece.repeat(times);
                input.splice(range.end..range.end, many);
            }
            2 => {
                let at = self.below(input.len() + 1);
                let byte = self.next() as u8;
                input.insert(at, byte);
            }
            3 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            4 => {
                // Of another seed.
                let other = &seeds[self.below(seeds.len())];
                let piece = other[self.range(other.len())].to_vec();
                let range = self.range(input.len());
                input.splice(range, piece);
            }
            5 => {
                let (a, b) = (self.range(input.len()), self.range(input.len()));
                let piece = input[a].to_vec();
                input.splice(b, piece);
            }
            6 => {
                let at = self.below(input.len() + 1);
                input.truncate(at);
            }
            7 if !words.is_empty() => {
                let word = words[self.below(words.len())];
                let range = self.range(input.len());
                input.splice(range, word.bytes());
            }
            _ => {
                let word = AWKWARD[self.below(AWKWARD.len())];
                let at = self.below(input.len() + 1);
                input.splice(at..at, word.bytes());
            }
        }
    }

    /// A cut of bytes into pieces.
    pub(crate) fn cut<'b>(&mut self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (head, tail) = bytes.split_at(1 + self.below(bytes.len().min(9)));
            pieces.push(head);
            bytes = tail;
        }
        pieces
    }
}

/// The input as text: what is no UTF-8 is replaced.
pub(crate) fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}
