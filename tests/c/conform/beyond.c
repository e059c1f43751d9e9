/* Kinds about what is not, or not so, on this side of the boundary, each with its reason. */
#include "chains.h"

static enum outcome listeners_of_rules(const cJSON *one)
{
    (void)one;
    return skips("%s: how upstream hands rules to its listeners", text_of(one, "kind", ""));
}

static enum outcome no_such_router(const cJSON *one)
{
    (void)one;
    return skips("polaris: byway has no such router");
}

static enum outcome own_key(const cJSON *one)
{
    (void)one;
    return skips("tag-static-config: a rule has the key it is set under");
}

const struct kind beyond_kinds[] = {
    { "dubbo_chain", "mesh-manager", listeners_of_rules },
    { "dubbo_chain", "mesh-dispatch", listeners_of_rules },
    { "dubbo_chain", "polaris", no_such_router },
    { "dubbo_chain", "tag-static-config", own_key },
    { NULL, NULL, NULL },
};
