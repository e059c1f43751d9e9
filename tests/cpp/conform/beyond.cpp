// Kinds about what is not, or not so, on this side of the boundary, each with its reason.
#include "runner.hpp"

namespace conform {
namespace {

void listeners_of_rules(const json &) { skip("how upstream hands rules to its listeners"); }
void of_the_boundary(const json &) { skip("tests/c/misuse.c, tests/c/conform/boundary.c and the bindings' own tests"); }
void android(const json &) { skip("Android is no platform of byway's"); }
void no_such_router(const json &) { skip("byway has no such router"); }
void own_key(const json &) { skip("a rule has the key it is set under"); }

const kinds here = {
    {"dubbo_chain", "mesh-manager", listeners_of_rules},
    {"dubbo_chain", "mesh-dispatch", listeners_of_rules},
    {"dubbo_chain", "polaris", no_such_router},
    {"bugs", "ffi_null", of_the_boundary},
    {"bugs", "ffi_sequence", of_the_boundary},
    {"bugs", "load", of_the_boundary},
    {"bugs", "artifact", android},
    {"dubbo_chain", "tag-static-config", own_key},
};

} // namespace
} // namespace conform
