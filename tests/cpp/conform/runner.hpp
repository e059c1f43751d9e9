// Runs the cases of tests/vectors through byway.hpp. One file a subject; each registers the kinds it runs.
#pragma once

#include "byway.hpp"

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>

namespace conform {

// Keys stay in the order of the file.
using json = nlohmann::ordered_json;

// Ends the case under way: it failed, or byway has no such thing at this boundary.
struct failure {
    std::string why;
};
struct skipped {
    std::string why;
};
[[noreturn]] void fail(std::string why);
[[noreturn]] void skip(std::string why);

inline void need(bool good, const std::string &why)
{
    if (!good)
        fail(why);
}

// The same JSON, whatever the order of keys.
bool equal(const json &a, const json &b);
void same(const json &got, const json &want, const std::string &what);

struct kind {
    const char *file, *kind;
    void (*run)(const json &one);
};

// What a file runs; made once at namespace scope.
struct kinds {
    kinds(std::initializer_list<kind> row);
};

// A member, null when there is none.
const json &get(const json &object, std::string_view name);
// A member that is there and not null.
bool has(const json &object, std::string_view name);
std::string text(const json &object, std::string_view name, std::string_view otherwise = "");
double number(const json &object, std::string_view name, double otherwise = 0);
bool flag(const json &object, std::string_view name, bool otherwise = false);

inline std::string status(const byway::error &why) { return std::string(byway::status_name(why.code())); }

inline bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

} // namespace conform
