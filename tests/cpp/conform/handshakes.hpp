// Proxy dialogues: what the cases about them share.
#pragma once

#include "runner.hpp"

#include <functional>

namespace conform {

std::string unhex(std::string_view hex);
std::string hex(std::string_view bytes);
// JSON text as latin-1: only the first 256 characters may occur.
std::string latin1(const std::string &utf8);

// The fault an error stands for, `NAME` or `NAME:number`.
std::string fault_of(const byway::error &error);

// Calls with every way to cut `len` bytes in two, whole, and byte by byte (long ones at a sample of places): the length
// of the first piece and of each further one.
void each_cut(std::size_t len, const std::function<void(std::size_t first, std::size_t rest)> &each);
// How long the next piece is.
std::size_t piece(std::size_t done, std::size_t len, std::size_t first, std::size_t rest);

// What is to be written counts as written.
void write_all(byway::handshake &dialogue);

} // namespace conform
