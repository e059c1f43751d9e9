//! Second half: which provider serves this call? Vocabulary and algorithm; no I/O, no rule text.
