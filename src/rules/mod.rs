//! Rule languages: one file each, text to program.
