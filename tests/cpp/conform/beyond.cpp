// Kinds about what is not, or not so, on this side of the boundary, each with its reason.
#include "runner.hpp"

namespace conform {
namespace {

void listeners_of_rules(const json &) { skip("how upstream hands rules to its listeners"); }
void no_such_router(const json &) { skip("byway has no such router"); }
void own_key(const json &) { skip("a rule has the key it is set under"); }

const kinds here = {
    {"dubbo_chain", "mesh-manager", listeners_of_rules},
    {"dubbo_chain", "mesh-dispatch", listeners_of_rules},
    {"dubbo_chain", "polaris", no_such_router},
    {"dubbo_chain", "tag-static-config", own_key},
};

} // namespace
} // namespace conform
