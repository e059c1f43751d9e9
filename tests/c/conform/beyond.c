/* Kinds about what is not, or not so, on this side of the boundary, each with its reason. */
#include "chains.h"

static enum outcome lists_of_rows(const cJSON *one)
{
    (void)one;
    return skips("bitlist: lists of rows are inside a chain");
}

static enum outcome address_matchers(const cJSON *one)
{
    (void)one;
    return skips("address_match: upstream's matcher; overrides read addresses as conditions do");
}

static enum outcome listeners_of_rules(const cJSON *one)
{
    (void)one;
    return skips("%s: how upstream hands rules to its listeners", text_of(one, "kind", ""));
}

static enum outcome read_objects(const cJSON *one)
{
    (void)one;
    return skips("mesh-parse: what a text is read as, where it does not show in routing");
}

static enum outcome caches(const cJSON *one)
{
    (void)one;
    return skips("%s: which objects upstream shares and keeps", text_of(one, "kind", ""));
}

static enum outcome health(const cJSON *one)
{
    (void)one;
    return skips("directory: lists of what cannot be reached; a host gives availability to a pick");
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
    { "dubbo_chain", "bitlist", lists_of_rows },
    { "dubbo_chain", "address_match", address_matchers },
    { "dubbo_chain", "mesh-manager", listeners_of_rules },
    { "dubbo_chain", "mesh-dispatch", listeners_of_rules },
    { "dubbo_chain", "mesh-parse", read_objects },
    { "dubbo_chain", "chain-cache", caches },
    { "dubbo_chain", "chain-sharing", caches },
    { "dubbo_chain", "chain-snapshot", caches },
    { "dubbo_chain", "snapshot-switch", caches },
    { "dubbo_chain", "directory", health },
    { "dubbo_chain", "polaris", no_such_router },
    { "dubbo_chain", "tag-static-config", own_key },
    { NULL, NULL, NULL },
};
