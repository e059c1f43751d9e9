// What the cases about chains stand on: a case's engine, providers, consumer and call.
#pragma once

#include "runner.hpp"

#include <deque>

namespace conform {

// Monotonic time of every world, in nanoseconds. Stands still until it is moved.
extern std::uint64_t world_now_ns;

// What some cases want of their world.
struct extra {
    // A piece of query for every provider that does not have `unless`.
    std::string query = {}, unless = {};
    // Draws; none: by a seed.
    std::uint64_t (*random)(void *) = nullptr;
    // Wall clock; none: the system's.
    std::int64_t (*wall_ms)(void *) = nullptr;
};

// One case's world. Tags are rows + 1. Throws when the boundary refuses something.
class world {
public:
    world(int dialect, const std::string &consumer, const json &rows, const extra &more = {});
    world(const world &) = delete;

    // Sets the call; false when the case names no method.
    bool set_call(const json &invocation);
    void set_method(std::string_view name);
    void set_attachment(const std::string &key, const std::string &value);
    // The rows that may serve the call.
    json rows() const;
    // The same as the ids of the case's invokers.
    json ids() const;
    // A copy that lives as long as the world: calls borrow their texts.
    const std::string &keep(std::string text);

    json providers;
    byway::engine engine;
    byway::invokers list;
    byway::chain chain;
    byway::invocation call;

private:
    std::deque<std::string> kept_;
};

// The consumer of a case, with a `router=` of its own when the case has none.
std::string consumer_with(const std::string &consumer, const std::string &routers);
// No router but those named behind it.
inline const char ALONE[] = "router=-default,";

// The dialect of an implementation's name; -1 when byway has none.
int dialect_named(const std::string &name);
// The dialect a case of dubbo_chain.jsonl comes from.
int dialect_of(const json &one);
// The answer the default dialect gives where a case says that upstream is wrong; null when it does not say.
const json &sane_of(const json &one);

// How a router of a chain stands, from the chain's status; null when it has none of the name.
json status_of(const byway::chain &chain, const std::string &router);

// Whether a call fits a block of a mesh rule's `match` is what is expected.
void block_fits(int dialect, const json &block, const json &invocation, const json &expect);

// Every answer is of one list while others replace the list; `members` holds lists of hosts.
void replaced_while_routing(const json &members, int readers, int writers, int rounds);

// bugs.jsonl sequence: the first half.
void engine_sequence(const json &one);

// Percent-encoded.
std::string encoded(const std::string &text);

// A part of a URL's query; empty when it is not there.
std::string parameter(const std::string &url, const std::string &name);
// The URL of an invoker: a text, or a member.
std::string url_of(const json &invoker);

} // namespace conform
