/* Words of rules seen through what they choose: addresses and matchers of tags, keys, orders, weights, and what a chain
 * does with lists and notifications. */
#include "chains.h"
#include <pthread.h>

#define APPLICATION "of-the-case"

/* Whether a provider belongs to a tag: 1, 0, or -1 when the rule is refused. Takes `tag`. */
static int tagged(int dialect, cJSON *tag, const char *provider)
{
    struct world w;
    cJSON *rule = cJSON_CreateObject(), *rows = cJSON_CreateArray();
    char *text;
    int got = -1;
    cJSON_AddStringToObject(tag, "name", "t");
    cJSON_AddStringToObject(rule, "configVersion", "v3.0");
    cJSON_AddItemToArray(cJSON_AddArrayToObject(rule, "tags"), tag);
    cJSON_AddItemToArray(rows, cJSON_CreateString(provider));
    text = cJSON_PrintUnformatted(rule);
    if (world_open(&w, dialect, "consumer://10.0.1.1/S?router=-default,tag", rows, "application=" APPLICATION, "application=")
        && byway_engine_set_rule(w.engine, APPLICATION ".tag-router", BYWAY_NUL, text, BYWAY_NUL, NULL) == BYWAY_OK) {
        cJSON *kept;
        byway_invocation_set_method(w.call, "m", 1);
        byway_invocation_set_attachment(w.call, "dubbo.tag", BYWAY_NUL, "t", 1);
        byway_invocation_set_attachment(w.call, "dubbo.force.tag", BYWAY_NUL, "true", BYWAY_NUL);
        kept = world_rows(&w);
        got = kept == NULL ? -1 : cJSON_GetArraySize(kept);
        cJSON_Delete(kept);
    }
    world_close(&w);
    cJSON_free(text);
    cJSON_Delete(rule);
    cJSON_Delete(rows);
    return got;
}

/* --- addresses -------------------------------------------------------------------------------------------------------- */

static int at_address(int dialect, const char *pattern, const char *host, int port)
{
    char url[256];
    cJSON *tag = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_AddArrayToObject(tag, "addresses"), cJSON_CreateString(pattern));
    snprintf(url, sizeof url, strchr(host, ':') != NULL ? "dubbo://[%s]:%d/S" : "dubbo://%s:%d/S", host, port);
    return tagged(dialect, tag, url);
}

/* Dubbo's matcher throws where it does not understand; a tag then has nobody there. */
static enum outcome ip(const cJSON *one)
{
    const char *function = text_of(one, "function", ""), *pattern = text_of(one, "pattern", "");
    const char *host = text_of(one, "host", NULL);
    int port = (int)number_of(one, "port", 1), got;
    const cJSON *expect = get(one, "expect"), *sane = sane_of(one);
    if (host == NULL)
        return skips("a provider always has a host");
    if (strcmp(function, "expression2") == 0)
        return skips("upstream's address without a port is no provider's");
    if (strcmp(function, "range") == 0 && strchr(pattern, '/') != NULL)
        return skips("the range alone, in front of which a network is always looked for");
    if (strncmp(pattern, "0.0.0.0:", 8) == 0)
        return skips("in a tag 0.0.0.0 and a port mean every host");
    got = at_address(BYWAY_DIALECT_DUBBO_3, pattern, host, port);
    if (got != cJSON_IsTrue(expect) && !(got < 0 && cJSON_IsObject(expect)))
        return fails("got %d", got);
    if (sane != NULL && (got = at_address(BYWAY_DIALECT_BYWAY, pattern, host, port)) != cJSON_IsTrue(sane))
        return fails("byway: got %d", got);
    return PASS;
}

/* --- matchers of tags ------------------------------------------------------------------------------------------------- */

static int parameter_fits(int dialect, const char *key, const cJSON *matcher, const char *provider)
{
    cJSON *tag = cJSON_CreateObject(), *match = cJSON_CreateObject();
    cJSON_AddStringToObject(match, "key", key);
    cJSON_AddItemToObject(match, "value", cJSON_Duplicate(matcher, 1));
    cJSON_AddItemToArray(cJSON_AddArrayToObject(tag, "match"), match);
    return tagged(dialect, tag, provider);
}

static enum outcome param_match(const cJSON *one)
{
    const cJSON *matcher = get(one, "matcher");
    int got = parameter_fits(dialect_of(one), text_of(matcher, "key", ""), get(matcher, "value"),
                             text_of(get(one, "invokers")->child, "url", ""));
    return got == cJSON_IsTrue(get(one, "expect")) ? PASS : fails("got %d", got);
}

static enum outcome string_match(const cJSON *one)
{
    const cJSON *expect = get(one, "expect"), *matcher = get(one, "matcher");
    const char *input = text_of(one, "input", NULL);
    char url[512];
    int got, dialect = dialect_of(one), want = cJSON_IsTrue(expect);
    if (get(expect, "error") != NULL)
        /* Upstream learns at the first call what a reader says at once. */
        return parameter_fits(dialect, "k", matcher, "dubbo://10.0.0.1:1/S?k=b") < 0 ? PASS : fails("the rule is taken");
    if (dialect != BYWAY_DIALECT_DUBBO_GO) {
        /* Of attachments, which may be absent. */
        cJSON *block = cJSON_CreateObject(), *call = cJSON_CreateObject(), *value = cJSON_Duplicate(expect, 1);
        cJSON *attachments = cJSON_AddObjectToObject(call, "attachments");
        enum outcome outcome;
        cJSON_AddStringToObject(call, "method", "m");
        if (cJSON_IsObject(get(expect, "parsed"))) {
            /* A number was read as its text, so that text fits. */
            input = text_of(get(expect, "parsed"), "exact", "");
            cJSON_Delete(value);
            value = cJSON_CreateTrue();
        }
        if (input != NULL)
            cJSON_AddStringToObject(attachments, "k", input);
        cJSON_AddItemToObject(cJSON_AddObjectToObject(cJSON_AddObjectToObject(block, "attachments"), "dubboContext"), "k",
                              cJSON_Duplicate(matcher, 1));
        outcome = block_fits(dialect, block, call, value);
        cJSON_Delete(call);
        cJSON_Delete(value);
        return outcome;
    }
    snprintf(url, sizeof url, "dubbo://10.0.0.1:1/S?%s%s", input != NULL ? "k=" : "a=b", input != NULL ? input : "");
    got = parameter_fits(dialect, "k", matcher, url);
    return got == want ? PASS : fails("got %d", got);
}

/* --- what a text is read as, as far as it shows ------------------------------------------------------------------------- */

static cJSON *status_of(struct world *w, const char *router)
{
    byway_text *text = NULL;
    byway_str said = { "", 0 };
    cJSON *status, *one, *found = NULL;
    byway_chain_status(w->chain, &text, NULL);
    byway_text_str(text, &said);
    status = cJSON_Parse(said.data);
    cJSON_ArrayForEach(one, get(status, "routers")) if (strcmp(text_of(one, "name", ""), router) == 0)
    {
        cJSON_Delete(found);
        found = cJSON_Duplicate(one, 1);
    }
    cJSON_Delete(status);
    byway_text_free(text);
    return found;
}

/* A rule that counts says who is gray; one that does not leaves nobody gray. */
static int holds_for_gray(int dialect, const char *rule)
{
    struct world w;
    cJSON *rows = cJSON_Parse("[\"dubbo://192.168.0.1:20000/S?application=test-app\"]"), *left;
    int holds;
    if (!world_open(&w, dialect, "consumer://10.0.1.1/S", rows, NULL, NULL)
        || byway_engine_set_rule(w.engine, "test-app.tag-router", BYWAY_NUL, rule, BYWAY_NUL, NULL) != BYWAY_OK)
        abort();
    byway_invocation_set_method(w.call, "m", 1);
    byway_invocation_set_attachment(w.call, "dubbo.tag", BYWAY_NUL, "gray", BYWAY_NUL);
    byway_invocation_set_attachment(w.call, "dubbo.force.tag", BYWAY_NUL, "true", BYWAY_NUL);
    left = world_rows(&w);
    holds = cJSON_GetArraySize(left) == 1;
    cJSON_Delete(left);
    world_close(&w);
    cJSON_Delete(rows);
    return holds;
}

static enum outcome tag_parse(const cJSON *one)
{
    struct world w;
    const cJSON *expect = get(one, "expect"), *want;
    cJSON *none = cJSON_Parse("[\"dubbo://10.0.0.1:1/S?application=a\"]");
    const cJSON *rows = cJSON_GetArraySize(get(one, "invokers")) > 0 ? get(one, "invokers") : none;
    enum outcome outcome = PASS;
    if (!world_open(&w, dialect_of(one), "consumer://10.0.1.1/S", rows, NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else {
        cJSON *tag = status_of(&w, "tag");
        const char *key = keep(&w, text_of(tag, "key", ""));
        byway_status status
            = byway_engine_set_rule(w.engine, key, BYWAY_NUL, text_of(one, "rule", ""), BYWAY_NUL, NULL);
        cJSON_Delete(tag);
        tag = status_of(&w, "tag");
        /* Without a rule tags are the providers' own, so the router is always at work: its revision tells. */
        cJSON_ArrayForEach(want, expect)
        {
            if (strcmp(want->string, "config_key") == 0 && strcmp(want->valuestring, key) != 0)
                outcome = fails("the key is %s", key);
            if (strcmp(want->string, "valid") == 0 && status != BYWAY_OK)
                outcome = fails("refused: %s", byway_status_name(status));
            else if (strcmp(want->string, "valid") == 0
                     && holds_for_gray(dialect_of(one), text_of(one, "rule", "")) != cJSON_IsTrue(want))
                outcome = fails("it counts otherwise");
            if (strcmp(want->string, "tag_to_addresses") == 0) {
                const cJSON *group;
                cJSON_ArrayForEach(group, want)
                {
                    const char *address = group->child->valuestring, *colon = strrchr(address, ':');
                    char host[64];
                    cJSON *given = cJSON_CreateObject();
                    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
                    cJSON_AddItemToObject(given, "addresses", cJSON_Duplicate(group, 1));
                    if (tagged(dialect_of(one), given, keepf(&w, "dubbo://%s/S", address)) != 1)
                        outcome = fails("%s is not at %s", group->string, address);
                }
            }
        }
        cJSON_Delete(tag);
    }
    world_close(&w);
    cJSON_Delete(none);
    return outcome;
}

static enum outcome condition_config(const cJSON *one)
{
    struct world w;
    const cJSON *input = get(one, "input"), *expect = get(one, "expect");
    enum outcome outcome;
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, "consumer://10.9.9.9/s", get(input, "invokers"), NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else if (byway_engine_set_rule(w.engine, "s::.condition-router", BYWAY_NUL, text_of(input, "yaml", ""), BYWAY_NUL,
                                     NULL)) {
        outcome = fails("refused");
    } else {
        cJSON *service = status_of(&w, "service"), *rows;
        byway_invocation_set_method(w.call, text_of(input, "method", "m"), BYWAY_NUL);
        rows = world_rows(&w);
        outcome = same_json(rows, get(expect, "kept"), "kept");
        if (outcome == PASS && flag_of(service, "in_force") != flag_of(expect, "enabled"))
            outcome = fails("in force: %d", flag_of(service, "in_force"));
        cJSON_Delete(service);
    }
    world_close(&w);
    return outcome;
}

static const char *key_for(struct world *w, int kind, const char *application, const cJSON *input)
{
    byway_text *text = NULL;
    byway_str key = { "", 0 };
    const char *interface = application != NULL ? "" : text_of(input, "service", "");
    byway_rule_key(BYWAY_DIALECT_BYWAY, kind, application, application != NULL ? BYWAY_NUL : 0, interface, BYWAY_NUL,
                   text_of(input, "version", ""), BYWAY_NUL, text_of(input, "group", ""), BYWAY_NUL, &text, NULL);
    byway_text_str(text, &key);
    key.data = keep(w, key.data != NULL ? key.data : "");
    byway_text_free(text);
    return key.data;
}

static enum outcome rule_keys(const cJSON *one)
{
    struct world w;
    const cJSON *input = get(one, "input"), *want;
    const char *provider = text_of(input, "provider_application", ""), *consumer = text_of(input, "consumer_application", "");
    enum outcome outcome = PASS;
    memset(&w, 0, sizeof w);
    cJSON_ArrayForEach(want, get(one, "expect"))
    {
        const char *got = NULL, *name = want->string;
        if (strcmp(name, "tag") == 0)
            got = key_for(&w, BYWAY_RULE_TAG, provider, input);
        else if (strcmp(name, "script") == 0)
            got = key_for(&w, BYWAY_RULE_SCRIPT, provider, input);
        else if (strcmp(name, "condition_service") == 0)
            got = key_for(&w, BYWAY_RULE_CONDITION, NULL, input);
        else if (strcmp(name, "affinity_service") == 0)
            got = key_for(&w, BYWAY_RULE_AFFINITY, NULL, input);
        if (got != NULL && strcmp(got, want->valuestring) != 0)
            outcome = fails("%s: got %s", name, got);
        if (strcmp(name, "condition_app") == 0
            && (strcmp(key_for(&w, BYWAY_RULE_CONDITION, consumer, input), want->child->valuestring) != 0
                || strcmp(key_for(&w, BYWAY_RULE_CONDITION, provider, input), want->child->next->valuestring) != 0))
            outcome = fails("the applications' keys are others");
        else if (strcmp(name, "condition_app") != 0 && got == NULL)
            outcome = fails("unknown key %s", name);
    }
    world_close(&w);
    return outcome;
}

static enum outcome chain_order(const cJSON *one)
{
    static const char *const names[][2] = {
        { "MockInvokersSelector", "mock" },     { "StandardMeshRuleRouter", "standard-mesh-rule" },
        { "TagStateRouter", "tag" },            { "ServiceStateRouter", "service" },
        { "ProviderAppStateRouter", "provider-app" }, { "AppStateRouter", "app" },
        { "AppScriptStateRouter", "script-app" },
    };
    struct world w;
    byway_text *text = NULL;
    byway_str said = { "", 0 };
    cJSON *status, *got = cJSON_CreateArray();
    const cJSON *router;
    size_t i;
    enum outcome outcome;
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, text_of(one, "consumer_url", ""), NULL, NULL, NULL)) {
        world_close(&w);
        cJSON_Delete(got);
        return fails("%s", w.why);
    }
    byway_chain_status(w.chain, &text, NULL);
    byway_text_str(text, &said);
    status = cJSON_Parse(said.data);
    /* Affinity came after the version the cases were taken from. */
    cJSON_ArrayForEach(router, get(status, "routers")) for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][1], text_of(router, "name", "")) == 0)
            cJSON_AddItemToArray(got, cJSON_CreateString(names[i][0]));
    outcome = same_json(got, get(one, "expect"), "routers");
    cJSON_Delete(status);
    byway_text_free(text);
    world_close(&w);
    return outcome;
}

/* --- weights ---------------------------------------------------------------------------------------------------------- */

static const int64_t wall = 5000000000000;

static int64_t wall_now(void *data)
{
    (void)data;
    return wall;
}

/* Smooth weighted round robin gives each provider exactly its share, so counts tell the weight. */
static enum outcome weighs(const char *first, const char *second, int weight, int other)
{
    byway_pick_options options = BYWAY_PICK_OPTIONS_INIT;
    struct world w;
    int rounds = 20 * (weight + other), got = 0, i;
    enum outcome outcome = PASS;
    cJSON *rows = cJSON_CreateArray();
    cJSON_AddItemToArray(rows, cJSON_CreateString(first));
    cJSON_AddItemToArray(rows, cJSON_CreateString(second));
    world_wall = wall_now;
    options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, "consumer://127.0.0.1/S?router=-default", rows, NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else {
        byway_invocation_set_method(w.call, "m", 1);
        for (i = 0; i < rounds; i++) {
            byway_picked picked;
            if (byway_chain_pick(w.chain, w.call, &options, &picked, NULL))
                outcome = fails("no pick");
            else
                got += picked.tag == 1;
        }
        if (outcome == PASS && got != 20 * weight)
            outcome = fails("%d of %d picks, want %d", got, rounds, 20 * weight);
    }
    world_wall = NULL;
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

static enum outcome warmup(const cJSON *one)
{
    char url[256];
    long long uptime = (long long)number_of(one, "uptime_ms", 0);
    if (uptime == 0)
        return skips("an uptime of 0 does not come to the formula");
    snprintf(url, sizeof url, "dubbo://10.0.0.1:1/S?weight=%d&warmup=%d&timestamp=%lld", (int)number_of(one, "weight", 0),
             (int)number_of(one, "warmup_ms", 0), (long long)wall - uptime);
    return weighs(url, "dubbo://10.0.0.2:1/S?weight=50", (int)get(one, "expect")->valuedouble, 50);
}

static enum outcome weight(const cJSON *one)
{
    const cJSON *row, *expect = get(one, "expect");
    long long ago;
    char url[256];
    if (!cJSON_IsObject(expect))
        return skips("weights of whole registries are a cluster's of clusters");
    cJSON_ArrayForEach(row, get(one, "invokers"))
    {
        if (sscanf(text_of(row, "timestamp", ""), "now-%lldms", &ago) != 1)
            return fails("no timestamp");
        snprintf(url, sizeof url, "dubbo://10.0.0.1:1/S?timestamp=%lld", (long long)wall - ago);
        if (weighs(url, "dubbo://10.0.0.2:1/S?weight=50", (int)number_of(expect, "value", 0), 50) != PASS)
            return FAIL;
    }
    return PASS;
}

/* --- lists ------------------------------------------------------------------------------------------------------------ */

static const char *dropped_by_router;
static struct world *router_world;

static byway_status drops(void *user_data, const byway_router_request *request, const byway_call *call)
{
    size_t i;
    (void)user_data;
    (void)call;
    for (i = 0; i < request->count; i++) {
        const cJSON *row = cJSON_GetArrayItem(router_world->rows, (int)request->tags[i] - 1);
        request->keep[i] = strstr(row->valuestring, dropped_by_router) == NULL;
    }
    return BYWAY_OK;
}

static byway_status passes(void *user_data, const byway_router_request *request, const byway_call *call)
{
    size_t i;
    (void)user_data;
    (void)call;
    for (i = 0; i < request->count; i++)
        request->keep[i] = 1;
    return BYWAY_OK;
}

static cJSON *named(const cJSON *names, cJSON *rows)
{
    const cJSON *name;
    char url[256];
    cJSON_ArrayForEach(name, names)
    {
        snprintf(url, sizeof url, strstr(name->valuestring, "://") != NULL ? "%s" : "dubbo://%s:1/S", name->valuestring);
        cJSON_AddItemToArray(rows, cJSON_CreateString(url));
    }
    return rows;
}

static enum outcome list_ops(const cJSON *one)
{
    struct world w;
    const cJSON *input = get(one, "input"), *op, *row;
    cJSON *rows = named(get(input, "tail"), named(get(input, "base"), cJSON_CreateArray()));
    cJSON *got = cJSON_CreateArray(), *kept;
    enum outcome outcome = PASS;
    int64_t priority = 0;
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, "consumer://10.0.0.1/S", rows, NULL, NULL))
        outcome = fails("%s", w.why);
    router_world = &w;
    cJSON_ArrayForEach(op, get(input, "ops"))
    {
        byway_router_callbacks callbacks = BYWAY_ROUTER_CALLBACKS_INIT;
        byway_router *router = NULL;
        int drop = strcmp(op->child->valuestring, "drop_by_router") == 0;
        if (drop)
            dropped_by_router = keepf(&w, "//%s:", op->child->next->valuestring);
        callbacks.route = drop ? drops : passes;
        if (byway_router_new(w.engine, keepf(&w, "op%d", (int)priority), BYWAY_NUL, priority, 0, &callbacks, &router, NULL)
            || byway_chain_add_router(w.chain, router, NULL))
            outcome = fails("no router");
        byway_router_release(router);
        priority++;
    }
    byway_invocation_set_method(w.call, "m", 1);
    kept = world_rows(&w);
    cJSON_ArrayForEach(row, kept)
    {
        const char *url = cJSON_GetArrayItem(rows, row->valueint)->valuestring;
        cJSON_AddItemToArray(got, cJSON_CreateString(keepf(&w, "%.*s", (int)strcspn(url + 8, ":"), url + 8)));
    }
    if (outcome == PASS)
        outcome = same_json(got, get(get(one, "expect"), "members"), "members");
    else
        cJSON_Delete(got);
    cJSON_Delete(kept);
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

/* --- threads ---------------------------------------------------------------------------------------------------------- */

struct traffic {
    struct world *w;
    byway_invokers **lists;
    int list_count, rounds, errors, empty, mixed;
};

static void *routes(void *data)
{
    struct traffic *t = data;
    byway_invocation *call = NULL;
    uint64_t tags[16];
    size_t total, i;
    int round;
    byway_invocation_new(&call, NULL);
    byway_invocation_set_method(call, "m", 1);
    for (round = 0; round < t->rounds; round++) {
        uint64_t of = 0;
        if (byway_chain_route_tags(t->w->chain, call, tags, 16, &total, NULL, NULL))
            t->errors++;
        else if (total == 0)
            t->empty++;
        /* The hundreds of a tag say which list it is of. */
        for (i = 0; i < total && i < 16; i++) {
            if (of != 0 && of != tags[i] / 100)
                t->mixed++;
            of = tags[i] / 100;
        }
    }
    byway_invocation_free(call);
    return NULL;
}

static void *replaces(void *data)
{
    struct traffic *t = data;
    int round;
    for (round = 0; round < t->rounds; round++)
        if (byway_chain_set_invokers(t->w->chain, t->lists[round % t->list_count], NULL, NULL))
            t->errors++;
    return NULL;
}

enum outcome replaced_while_routing(const cJSON *members, int readers, int writers, int rounds)
{
    const cJSON *list, *name;
    byway_invokers *lists[16];
    struct traffic traffic[32];
    pthread_t threads[32];
    struct world w;
    int count = 0, started = 0, i, errors = 0, empty = 0, mixed = 0;
    cJSON *none = cJSON_Parse("[\"dubbo://a:1/S\"]");
    enum outcome outcome = PASS;
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, "consumer://10.0.0.1/S", none, NULL, NULL))
        outcome = fails("%s", w.why);
    cJSON_ArrayForEach(list, members) if (count < 16)
    {
        byway_str urls[16];
        uint64_t tags[16];
        size_t length = 0;
        cJSON_ArrayForEach(name, list) if (length < 16)
        {
            urls[length].data = keepf(&w, "dubbo://%s:1/S", name->valuestring);
            urls[length].len = BYWAY_NUL;
            tags[length] = (uint64_t)(count + 1) * 100 + length;
            length++;
        }
        if (byway_invokers_new(w.engine, urls, tags, length, 0, NULL, &lists[count], NULL))
            outcome = fails("a list is refused");
        else
            count++;
    }
    for (i = 0; i < readers + writers && i < 32 && outcome == PASS; i++) {
        struct traffic made = { NULL, NULL, 0, 0, 0, 0, 0 };
        made.w = &w;
        made.lists = lists;
        made.list_count = count;
        made.rounds = rounds;
        traffic[i] = made;
        if (pthread_create(&threads[i], NULL, i < readers ? routes : replaces, &traffic[i]))
            outcome = fails("no thread");
        else
            started++;
    }
    for (i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        errors += traffic[i].errors;
        empty += traffic[i].empty;
        mixed += traffic[i].mixed;
    }
    if (outcome == PASS && (errors != 0 || empty != 0 || mixed != 0))
        outcome = fails("%d errors, %d empty, %d mixed", errors, empty, mixed);
    for (i = 0; i < count; i++)
        byway_invokers_release(lists[i]);
    world_close(&w);
    cJSON_Delete(none);
    return outcome;
}

static enum outcome concurrency(const cJSON *one)
{
    const cJSON *input = get(one, "input");
    /* Rounds in place of seconds: the same number of races on every machine. */
    return replaced_while_routing(get(input, "lists"), (int)number_of(input, "threads_route", 1),
                                  (int)number_of(input, "threads_set_invokers", 1),
                                  1000 * (int)number_of(input, "seconds", 1));
}

/* --- a registry's notifications --------------------------------------------------------------------------------------- */

static int providers_now(struct world *w)
{
    cJSON *rows = world_rows(w);
    int count = rows == NULL ? -1 : cJSON_GetArraySize(rows);
    cJSON_Delete(rows);
    return count;
}

/* An entry is what its key says; among providers only URLs of providers count. */
static enum outcome category(const cJSON *one)
{
    const char *entry = text_of(get(one, "invokers")->child, "url", "");
    int want = strcmp(text_of(get(one, "expect"), "category", ""), "providers") == 0, got;
    struct world w;
    byway_source *source = NULL;
    enum outcome outcome;
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, "consumer://10.0.0.9/S", NULL, NULL, NULL)
        || byway_source_new_memory(w.engine, &source, NULL)
        || byway_source_put(source, "S/providers", BYWAY_NUL, entry, BYWAY_NUL, NULL)
        || byway_chain_bind_source(w.chain, source, NULL, NULL, 30000, NULL))
        abort();
    byway_invocation_set_method(w.call, "m", 1);
    got = providers_now(&w);
    outcome = got == want ? PASS : fails("%d providers", got);
    byway_source_release(source);
    world_close(&w);
    return outcome;
}

/* Whether an override with this match is in force for a consumer at this address: it takes the provider away. */
static enum outcome address_match(const cJSON *one)
{
    const char *address = text_of(one, "input", "");
    cJSON *override;
    struct world w;
    byway_source *source = NULL;
    enum outcome outcome;
    char *text, consumer[64];
    int left;
    if (address[strspn(address, "0123456789.")] != '\0' || strcmp(address, "0.0.0.0") == 0)
        return skips("a consumer has one address, and no text in its place");
    override = cJSON_Parse("{\"configVersion\":\"v3.0\",\"scope\":\"service\",\"key\":\"S\",\"enabled\":true,"
                           "\"configs\":[{\"side\":\"consumer\",\"parameters\":{\"disabled\":\"true\"},\"match\":{}}]}");
    cJSON_AddItemToObject((cJSON *)get(cJSON_GetArrayItem(get(override, "configs"), 0), "match"), "address",
                          cJSON_Duplicate(get(one, "matcher"), 1));
    text = cJSON_PrintUnformatted(override);
    snprintf(consumer, sizeof consumer, "consumer://%s/S", address);
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, consumer, NULL, NULL, NULL)
        || byway_source_new_memory(w.engine, &source, NULL)
        || byway_source_put(source, "S/providers", BYWAY_NUL, "dubbo://10.0.0.1:1/S", BYWAY_NUL, NULL)
        || byway_source_put(source, "S::.configurators", BYWAY_NUL, text, BYWAY_NUL, NULL)
        || byway_chain_bind_source(w.chain, source, NULL, NULL, 30000, NULL))
        abort();
    byway_invocation_set_method(w.call, "m", 1);
    left = providers_now(&w);
    outcome = (left == 0) == cJSON_IsTrue(get(one, "expect")) ? PASS : fails("%d left", left);
    byway_source_release(source);
    world_close(&w);
    cJSON_free(text);
    cJSON_Delete(override);
    return outcome;
}

static enum outcome notify(const cJSON *one)
{
    static const char rule[] = "route://0.0.0.0/S?router=condition&force=true&rule=%3D%3E%20host%3D10.0.0.1";
    static const char two[] = "dubbo://10.0.0.1:20880/S\ndubbo://10.0.0.2:20880/S";
    const cJSON *expect = get(one, "expect"), *invokers = get(expect, "invokers");
    const char *entry = text_of(get(one, "invokers")->child, "url", NULL);
    int routers = cJSON_IsArray(get(expect, "url_routers")), before, after;
    struct world w;
    byway_source *source = NULL;
    enum outcome outcome = PASS;
    if (get(expect, "category") != NULL || get(expect, "dropped") != NULL)
        return category(one);
    if (!world_open(&w, routers ? BYWAY_DIALECT_DUBBO_2_7 : BYWAY_DIALECT_DUBBO_3, "consumer://10.0.0.9/S", NULL, NULL, NULL)
        || byway_source_new_memory(w.engine, &source, NULL)
        || byway_source_put(source, "S/providers", BYWAY_NUL, two, BYWAY_NUL, NULL)
        || byway_source_put(source, "S/routers", BYWAY_NUL, routers ? rule : "", BYWAY_NUL, NULL)
        || byway_chain_bind_source(w.chain, source, NULL, NULL, 30000, NULL)) {
        outcome = fails("no bound chain: %s", w.why);
    } else {
        byway_invocation_set_method(w.call, "m", 1);
        before = providers_now(&w);
        if (entry == NULL)
            byway_source_remove(source, "S/providers", BYWAY_NUL, NULL);
        else
            byway_source_put(source, routers ? "S/routers" : "S/providers", BYWAY_NUL, entry, BYWAY_NUL, NULL);
        after = providers_now(&w);
        if (routers)
            outcome = before == 1 && after == 2 ? PASS : fails("%d, then %d", before, after);
        else if (cJSON_IsNumber(invokers))
            outcome = before == 2 && after == invokers->valueint ? PASS : fails("%d, then %d", before, after);
        else
            outcome = before == 2 && after == 2 ? PASS : fails("%d, then %d", before, after);
    }
    byway_source_release(source);
    world_close(&w);
    return outcome;
}

/* --- sequences -------------------------------------------------------------------------------------------------------- */

struct ear {
    int heard;
};

static void hears(void *user_data, const byway_event *event)
{
    if (event->status < 0)
        ((struct ear *)user_data)->heard += 100;
    ((struct ear *)user_data)->heard++;
}

#define RULE_KEY "com.foo.BarService::.condition-router"

static enum outcome sequence(const cJSON *one)
{
    const cJSON *step, *expect = get(one, "expect");
    const char *area = text_of(one, "area", "");
    struct world w;
    struct ear all = { 0 }, ears[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
    const char *names[4];
    byway_listener *listeners[4], *whole = NULL;
    byway_listener_callbacks callbacks = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_queue *queue = NULL;
    size_t polled;
    int count = 0, i;
    cJSON *none = cJSON_Parse("[\"dubbo://10.0.0.1:1/S\"]"), *got = cJSON_CreateObject();
    enum outcome outcome = PASS;
    if (strcmp(area, "chain") != 0 && strcmp(area, "condition") != 0) {
        cJSON_Delete(none);
        cJSON_Delete(got);
        return engine_sequence(one);
    }
    cJSON_ArrayForEach(step, get(get(one, "input"), "steps")) if (strcmp(step->child->valuestring, "source_down") == 0)
    {
        cJSON_Delete(none);
        cJSON_Delete(got);
        return skips("a centre that can be lost needs a server");
    }
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, "consumer://10.20.3.1/com.foo.BarService", none, NULL, NULL))
        outcome = fails("%s", w.why);
    queue = byway_engine_queue(w.engine);
    callbacks.on_event = hears;
    callbacks.mask = (uint64_t)1 << BYWAY_EVENT_RULE;
    callbacks.user_data = &all;
    byway_engine_add_listener(w.engine, &callbacks, &whole, NULL);
    cJSON_ArrayForEach(step, get(get(one, "input"), "steps"))
    {
        const char *word = step->child->valuestring;
        const cJSON *first = step->child->next, *second = first != NULL ? first->next : NULL;
        byway_status status = BYWAY_OK;
        if (strcmp(word, "push_rule") == 0) {
            byway_engine_set_rule(w.engine, RULE_KEY, BYWAY_NUL, first->valuestring, BYWAY_NUL, NULL);
        } else if (strcmp(word, "push_event") == 0) {
            char *printed = cJSON_PrintUnformatted(get(first, "value"));
            if (strcmp(text_of(first, "type", ""), "delete") == 0)
                byway_engine_remove_rule(w.engine, RULE_KEY, BYWAY_NUL, NULL);
            else
                byway_engine_set_rule(w.engine, RULE_KEY, BYWAY_NUL, printed, BYWAY_NUL, NULL);
            cJSON_free(printed);
        } else if (strcmp(word, "set_invokers") == 0 || strcmp(word, "route") == 0) {
            byway_str urls[16];
            uint64_t tags[16];
            size_t length = 0;
            const cJSON *name;
            byway_invokers *list = NULL;
            cJSON *rows;
            cJSON_ArrayForEach(name, first) if (length < 16)
            {
                urls[length].data
                    = keepf(&w, strstr(name->valuestring, "://") != NULL ? "%s" : "dubbo://%s:1/S", name->valuestring);
                urls[length].len = BYWAY_NUL;
                tags[length] = length + 1;
                length++;
            }
            if (length > 0) {
                byway_invokers_new(w.engine, urls, tags, length, 0, NULL, &list, NULL);
                status = byway_chain_set_invokers(w.chain, list, NULL, NULL);
                byway_invokers_release(list);
            }
            byway_invocation_set_method(w.call, "m", 1);
            if (strcmp(word, "route") == 0) {
                cJSON *kept = cJSON_CreateArray();
                const cJSON *row;
                size_t total;
                status = byway_chain_route_tags(w.chain, w.call, tags, 16, &total, NULL, NULL);
                if (status == BYWAY_E_SHUTDOWN)
                    cJSON_AddStringToObject(got, "error", "closed");
                rows = status == BYWAY_OK ? world_rows(&w) : NULL;
                cJSON_ArrayForEach(row, rows)
                {
                    name = cJSON_GetArrayItem(first, row->valueint);
                    cJSON_AddItemToArray(kept, strstr(name->valuestring, "://") != NULL ? cJSON_Duplicate(row, 1)
                                                                                          : cJSON_Duplicate(name, 1));
                }
                cJSON_Delete(rows);
                if (status == BYWAY_OK)
                    cJSON_AddItemToObject(got, "kept", kept);
                else
                    cJSON_Delete(kept);
            }
        } else if (strcmp(word, "destroy") == 0) {
            byway_engine_shutdown(w.engine, 30000, NULL);
        } else if (strcmp(word, "add_listener") == 0 && count < 4) {
            names[count] = second->valuestring;
            callbacks.user_data = &ears[count];
            byway_engine_add_listener(w.engine, &callbacks, &listeners[count], NULL);
            count++;
        } else if (strcmp(word, "remove_listener") == 0) {
            for (i = 0; i < count; i++)
                if (strcmp(names[i], second->valuestring) == 0)
                    byway_listener_remove(listeners[i]);
        } else if (strcmp(word, "publish") == 0) {
            byway_engine_set_rule(w.engine, RULE_KEY, BYWAY_NUL, "conditions: ['=> host=10.0.0.1']", BYWAY_NUL, NULL);
        } else if (strcmp(word, "create") != 0) {
            outcome = fails("unknown step %s", word);
        }
        /* Events are told by whoever polls. */
        if (queue != NULL)
            byway_queue_poll(queue, 0, NULL, 0, 0, &polled, NULL);
    }
    if (get(expect, "called") != NULL) {
        cJSON *called = cJSON_AddArrayToObject(got, "called");
        for (i = 0; i < count; i++)
            if (ears[i].heard > 0)
                cJSON_AddItemToArray(called, cJSON_CreateString(names[i]));
    }
    if (get(expect, "errors") != NULL)
        cJSON_AddNumberToObject(got, "errors", all.heard / 100);
    if (get(expect, "events") != NULL) {
        cJSON *events = cJSON_AddArrayToObject(got, "events");
        for (i = 0; i < all.heard / 100; i++)
            cJSON_AddItemToArray(events, cJSON_CreateString("rule_error"));
    }
    if (get(expect, "panic") != NULL)
        cJSON_AddBoolToObject(got, "panic", 0);
    if (outcome == PASS)
        outcome = same_json(got, expect, "outcome");
    else
        cJSON_Delete(got);
    for (i = 0; i < count; i++)
        byway_listener_release(listeners[i]);
    byway_listener_release(whole);
    byway_queue_release(queue);
    world_close(&w);
    cJSON_Delete(none);
    return outcome;
}

const struct kind word_kinds[] = {
    { "dubbo_chain", "ip", ip },
    { "dubbo_chain", "string_match", string_match },
    { "dubbo_chain", "param_match", param_match },
    { "dubbo_chain", "tag-parse", tag_parse },
    { "dubbo_chain", "chain-order", chain_order },
    { "dubbo_chain", "lb-warmup", warmup },
    { "dubbo_chain", "lb-weight", weight },
    { "dubbo_chain", "notify", notify },
    { "dubbo_chain", "address_match", address_match },
    { "bugs", "condition_config", condition_config },
    { "bugs", "rule_keys", rule_keys },
    { "bugs", "list_ops", list_ops },
    { "bugs", "concurrency", concurrency },
    { "bugs", "sequence", sequence },
    { NULL, NULL, NULL },
};
