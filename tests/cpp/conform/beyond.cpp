// Kinds about what is not, or not so, on this side of the boundary, each with its reason.
#include "runner.hpp"

namespace conform {
namespace {

void lists_of_rows(const json &) { skip("lists of rows are inside a chain"); }
void address_matchers(const json &) { skip("upstream's matcher; overrides read addresses as conditions do"); }
void listeners_of_rules(const json &) { skip("how upstream hands rules to its listeners"); }
void read_objects(const json &) { skip("what a text is read as, where it does not show in routing"); }
void caches(const json &) { skip("which objects upstream shares and keeps"); }
void health(const json &) { skip("lists of what cannot be reached; a host gives availability to a pick"); }
void no_such_router(const json &) { skip("byway has no such router"); }
void own_key(const json &) { skip("a rule has the key it is set under"); }

const kinds here = {
    {"dubbo_chain", "bitlist", lists_of_rows},
    {"dubbo_chain", "address_match", address_matchers},
    {"dubbo_chain", "mesh-manager", listeners_of_rules},
    {"dubbo_chain", "mesh-dispatch", listeners_of_rules},
    {"dubbo_chain", "mesh-parse", read_objects},
    {"dubbo_chain", "chain-cache", caches},
    {"dubbo_chain", "chain-sharing", caches},
    {"dubbo_chain", "chain-snapshot", caches},
    {"dubbo_chain", "snapshot-switch", caches},
    {"dubbo_chain", "directory", health},
    {"dubbo_chain", "polaris", no_such_router},
    {"dubbo_chain", "tag-static-config", own_key},
};

} // namespace
} // namespace conform
