/* Condition, affinity, tag and mock cases: rules set by key or by URL, seen through what a chain routes. */
#include "rules.h"
#include <math.h>

/* The consumer of a case, with a `router=` of its own when the case has none. */
static const char *consumer_with(struct world *w, const char *consumer, const char *routers)
{
    if (consumer == NULL || strstr(consumer, "://") == NULL)
        consumer = "consumer://127.0.0.1/com.demo.Service";
    if (routers == NULL || strstr(consumer, "router=") != NULL)
        return keep(w, consumer);
    return keepf(w, "%s%c%s", consumer, strchr(consumer, '?') == NULL ? '?' : '&', routers);
}

int open_for(struct world *w, int dialect, const char *consumer, const char *routers, const cJSON *rows,
                    const char *extra, const char *unless)
{
    struct world scratch;
    int good;
    memset(&scratch, 0, sizeof scratch);
    good = world_open(w, dialect, consumer_with(&scratch, consumer, routers), rows, extra, unless);
    while (scratch.text_count > 0)
        free(scratch.texts[--scratch.text_count]);
    return good;
}

static const char *encoded(struct world *w, const char *text)
{
    static char buffer[65536];
    size_t at = 0;
    for (; *text != '\0' && at + 4 < sizeof buffer; text++)
        at += (size_t)snprintf(buffer + at, 4, "%%%02X", (unsigned char)*text);
    buffer[at] = '\0';
    return keep(w, buffer);
}

byway_status set_static(struct world *w, const char *rule, const cJSON *parameters, byway_error **err)
{
    const char *url = keepf(w, "condition://0.0.0.0/S?rule=%s", encoded(w, rule));
    const cJSON *one;
    byway_str text;
    cJSON_ArrayForEach(one, parameters)
    {
        char *printed = cJSON_IsString(one) ? NULL : cJSON_PrintUnformatted(one);
        url = keepf(w, "%s&%s=%s", url, one->string, printed != NULL ? printed : one->valuestring);
        cJSON_free(printed);
    }
    text.data = url;
    text.len = BYWAY_NUL;
    return byway_chain_set_rule_urls(w->chain, &text, 1, err);
}

static int crash(const cJSON *expect)
{
    return strcmp(text_of(get(expect, "error"), "code", ""), "panic") == 0;
}

static enum outcome string_as(const cJSON *one, int dialect, const cJSON *expect)
{
    struct world w;
    byway_error *err = NULL;
    byway_status status;
    enum outcome outcome;
    const cJSON *error = get(expect, "error");
    const cJSON *first = cJSON_GetArrayItem(get(one, "invokers"), 0);
    if (cJSON_IsString(first) && first->valuestring[0] == '\0')
        return skips("a list of empty URLs is refused whole");
    if (!open_for(&w, dialect, text_of(one, "consumer_url", NULL), ALONE "condition", get(one, "invokers"), NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else {
        status = set_static(&w, text_of(one, "rule", ""), get(one, "params"), &err);
        if (error != NULL && !crash(expect)) {
            outcome = status == BYWAY_E_RULE && byway_error_line(byway_error_cause_at(err, 0)) > 0
                          ? PASS
                          : fails("%s, want a refusal with its place", byway_status_name(status));
        } else if (status) {
            outcome = fails("refused: %s", byway_status_name(status));
        } else if (!world_call(&w, get(one, "invocation")) && strstr(text_of(one, "rule", ""), "method") != NULL) {
            outcome = skips("a rule about methods, a call without one");
        } else {
            cJSON *rows = world_rows(&w);
            if (crash(expect)) {
                const cJSON *other;
                outcome = fails("an answer that nobody gives");
                cJSON_ArrayForEach(other, get(one, "expect_by_impl")) if (cJSON_Compare(rows, other, 1)) outcome = PASS;
                cJSON_Delete(rows);
            } else {
                outcome = rows == NULL ? fails("%s", w.why) : same_json(rows, expect, "rows");
            }
        }
    }
    byway_error_free(err);
    world_close(&w);
    return outcome;
}

int when_holds(const char *rule, int dialect, const char *consumer, const cJSON *call, int *holds)
{
    static const char provider[] = "[\"dubbo://1.1.1.1:1/S\"]";
    cJSON *rows = cJSON_Parse(provider), *left;
    cJSON *parameters = cJSON_Parse("{\"force\":true}");
    const char *arrow = strstr(rule, "=>");
    struct world w;
    int good = open_for(&w, dialect, consumer, ALONE "condition", rows, NULL, NULL);
    if (good) {
        const char *text = keepf(&w, "%.*s => nowhere=1", arrow == NULL ? 0 : (int)(arrow - rule), rule);
        good = set_static(&w, text, parameters, NULL) == BYWAY_OK;
        world_call(&w, call);
        left = good ? world_rows(&w) : NULL;
        good = left != NULL;
        *holds = good && cJSON_GetArraySize(left) == 0;
        cJSON_Delete(left);
    }
    world_close(&w);
    cJSON_Delete(rows);
    cJSON_Delete(parameters);
    return good;
}

static enum outcome when_as(const cJSON *one, int dialect, const cJSON *expect)
{
    int holds = 0;
    if (!cJSON_IsString(get(get(one, "invocation"), "method")) && strstr(text_of(one, "rule", ""), "method") != NULL)
        return skips("a rule about methods, a call without one");
    if (!when_holds(text_of(one, "rule", ""), dialect, text_of(one, "consumer_url", NULL), get(one, "invocation"), &holds))
        return fails("the rule is refused");
    return holds == cJSON_IsTrue(expect) ? PASS : fails("got %d", holds);
}

/* A part of a URL's query; empty when it is not there. */
static const char *parameter(struct world *w, const char *url, const char *name)
{
    const char *at = strchr(url, '?');
    size_t len = strlen(name);
    for (; at != NULL; at = strchr(at + 1, '&'))
        if (strncmp(at + 1, name, len) == 0 && at[1 + len] == '=')
            return keepf(w, "%.*s", (int)strcspn(at + 2 + len, "&"), at + 2 + len);
    return "";
}

static const char *interface_of(struct world *w, const char *url)
{
    const char *named = parameter(w, url, "interface"), *path = strstr(url, "://");
    if (*named != '\0' || path == NULL)
        return named;
    path = strchr(path + 3, '/');
    return path == NULL ? "" : keepf(w, "%.*s", (int)strcspn(path + 1, "?"), path + 1);
}

const char *key_of(struct world *w, int dialect, int kind, const char *application, const char *url)
{
    byway_text *text = NULL;
    byway_str key = { "", 0 };
    byway_status status;
    if (application != NULL)
        status = byway_rule_key(dialect, kind, application, BYWAY_NUL, NULL, 0, NULL, 0, NULL, 0, &text, NULL);
    else
        status = byway_rule_key(dialect, kind, NULL, 0, interface_of(w, url), BYWAY_NUL, parameter(w, url, "version"),
                                BYWAY_NUL, parameter(w, url, "group"), BYWAY_NUL, &text, NULL);
    if (status == BYWAY_OK)
        byway_text_str(text, &key);
    key.data = keep(w, key.data);
    byway_text_free(text);
    return key.data;
}

/* Shares of a weighted draw: within five deviations. */
static enum outcome shares(struct world *w, const cJSON *one, const cJSON *outcomes, const char *share)
{
    int repeat = (int)number_of(one, "repeat", 20000), counts[64] = { 0 }, i, at;
    const cJSON *outcome;
    for (i = 0; i < repeat; i++) {
        cJSON *rows = world_rows(w);
        at = 0;
        cJSON_ArrayForEach(outcome, outcomes)
        {
            if (cJSON_Compare(rows, get(outcome, "indices"), 1))
                break;
            at++;
        }
        cJSON_Delete(rows);
        if (outcome == NULL || at >= 64)
            return fails("rows that are none of the outcomes");
        counts[at]++;
    }
    at = 0;
    cJSON_ArrayForEach(outcome, outcomes)
    {
        double p = number_of(outcome, share, 0), slack = 5 * sqrt(repeat * p * (1 - p)) + 1e-6 * repeat;
        if (fabs(counts[at] - p * repeat) > slack)
            return fails("outcome %d: %d of %d, want a share of %g", at, counts[at], repeat, p);
        at++;
    }
    return PASS;
}

static enum outcome events_as(const cJSON *one, int dialect, int kind, const cJSON *expect)
{
    struct world w;
    enum outcome outcome;
    const cJSON *event, *outcomes = get(expect, "outcomes");
    const char *consumer = text_of(one, "consumer_url", "consumer://127.0.0.1/com.foo.BarService");
    int of_provider = strcmp(text_of(one, "router", ""), "provider-app") == 0;
    if (of_provider && dialect == BYWAY_DIALECT_DUBBO_2_7)
        return skips("2.7 has no such router");
    if (!open_for(&w, dialect, consumer, NULL, get(one, "invokers"), NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else {
        const char *key = key_of(&w, dialect, kind, of_provider ? "demo-provider" : NULL, consumer);
        byway_status status = BYWAY_OK;
        int about_methods = 0;
        cJSON_ArrayForEach(event, get(one, "events"))
        {
            about_methods |= strstr(text_of(event, "content", ""), "method") != NULL;
            if (strcmp(text_of(event, "type", ""), "DELETED") == 0)
                status = byway_engine_remove_rule(w.engine, key, BYWAY_NUL, NULL);
            else
                status = byway_engine_set_rule(w.engine, key, BYWAY_NUL, text_of(event, "content", ""), BYWAY_NUL, NULL);
        }
        if (!world_call(&w, get(one, "invocation")) && about_methods) {
            outcome = skips("a rule about methods, a call without one");
        } else if (outcomes != NULL) {
            outcome = shares(&w, one, outcomes, dialect == BYWAY_DIALECT_BYWAY ? "p_ideal" : "p_dubbo");
        } else if (crash(expect)) {
            cJSON *rows = world_rows(&w);
            outcome = status < 0 && cJSON_GetArraySize(rows) == w.count ? PASS : fails("a text upstream dies of is taken");
            cJSON_Delete(rows);
        } else {
            cJSON *rows = world_rows(&w);
            outcome = rows == NULL ? fails("%s", w.why) : same_json(rows, expect, "rows");
        }
    }
    world_close(&w);
    return outcome;
}

static enum outcome rule_key_as(const cJSON *one, int dialect, const cJSON *expect)
{
    struct world w;
    enum outcome outcome;
    const char *key;
    size_t len;
    memset(&w, 0, sizeof w);
    key = key_of(&w, dialect, BYWAY_RULE_CONDITION, NULL, text_of(one, "url", ""));
    len = strlen(key);
    outcome = len > 17 && strcmp(key + len - 17, ".condition-router") == 0 && len - 17 == strlen(expect->valuestring)
                      && strncmp(key, expect->valuestring, len - 17) == 0
                  ? PASS
                  : fails("got %s", key);
    while (w.text_count > 0)
        free(w.texts[--w.text_count]);
    return outcome;
}

/* The built-in routers of the dialect stand in the status in the order the case wants. */
static enum outcome order(const cJSON *one)
{
    static const char *const names[][2] = {
        { "AddressInvokersSelector", "address" }, { "AppRouter", "app" }, { "ServiceRouter", "service" },
        { "TagRouter", "tag" }, { "MockInvokersSelector", "mock" },
    };
    const char *implementation = text_of(one, "impl", "");
    int dialect = -1;
    struct world w;
    byway_text *text = NULL;
    byway_str json;
    cJSON *status;
    const cJSON *want, *router;
    enum outcome outcome = PASS;
    if (strncmp(implementation, "dubbo-3.2", 9) == 0 || strncmp(implementation, "dubbo-3.3", 9) == 0)
        dialect = BYWAY_DIALECT_DUBBO_3;
    else if (strncmp(implementation, "dubbo-2.7.8", 11) == 0)
        dialect = BYWAY_DIALECT_DUBBO_2_7;
    else if (strcmp(implementation, "dubbo-go") == 0)
        dialect = BYWAY_DIALECT_DUBBO_GO;
    if (dialect < 0)
        return skips("no dialect of byway");
    if (!world_open(&w, dialect, "consumer://127.0.0.1/S?application=a&router=default,address", NULL, NULL, NULL)
        || byway_chain_status(w.chain, &text, NULL) != BYWAY_OK) {
        world_close(&w);
        return fails("no chain: %s", w.why);
    }
    byway_text_str(text, &json);
    status = cJSON_Parse(json.data);
    router = get(status, "routers")->child;
    cJSON_ArrayForEach(want, get(one, "expect"))
    {
        const char *name = want->valuestring;
        size_t i;
        const cJSON *at;
        for (i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strcmp(names[i][0], name) == 0)
                name = names[i][1];
        for (at = router; at != NULL && strcmp(text_of(at, "name", ""), name) != 0; at = at->next)
            ;
        if (at != NULL) {
            router = at->next;
            continue;
        }
        /* Not among the built-in ones behind the last: then it must not be one of them at all. */
        for (at = get(status, "routers")->child; at != NULL && strcmp(text_of(at, "name", ""), name) != 0; at = at->next)
            ;
        if (at != NULL)
            outcome = fails("%s comes too early", name);
    }
    cJSON_Delete(status);
    byway_text_free(text);
    world_close(&w);
    return outcome;
}

static enum outcome form_as(const cJSON *one, const char *name, const cJSON *expect)
{
    const char *form = text_of(one, "form", "");
    int dialect = dialect_named(name);
    if (dialect < 0)
        return strstr(name, "/StateRouter") != NULL ? skips("the bare condition") : fails("no dialect for %s", name);
    if (strcmp(form, "string") == 0)
        return string_as(one, dialect, expect);
    if (strcmp(form, "when") == 0)
        return when_as(one, dialect, expect);
    if (strcmp(form, "events") == 0)
        return events_as(one, dialect, BYWAY_RULE_CONDITION, expect);
    if (strcmp(form, "affinity") == 0)
        return events_as(one, dialect, BYWAY_RULE_AFFINITY, expect);
    if (strcmp(form, "rulekey") == 0)
        return rule_key_as(one, dialect, expect);
    if (strcmp(form, "glob") == 0 || strcmp(form, "range") == 0)
        return fits_as(one, dialect, expect);
    return strcmp(form, "parse") == 0 ? parse_as(one, dialect, expect) : fails("unknown form %s", form);
}

static enum outcome condition(const cJSON *one)
{
    const cJSON *by = get(one, "expect_by_impl"), *all = get(by, "all"), *item;
    enum outcome outcome = SKIP, last = SKIP;
    if (strcmp(text_of(one, "form", ""), "chain-order") == 0)
        return order(one);
#define RUN(name, expect) \
    do { \
        outcome = form_as(one, name, expect); \
        if (outcome == FAIL) \
            return FAIL; \
        if (outcome == PASS) \
            last = PASS; \
    } while (0)
    if (cJSON_IsArray(all)) {
        cJSON_ArrayForEach(item, all) RUN(item->valuestring, get(one, "expect"));
    } else if (cJSON_IsObject(by)) {
        cJSON_ArrayForEach(item, by) RUN(item->string, item);
    } else {
        RUN("dubbo-3.3", get(one, "expect"));
    }
    if (get(one, "expect_byway") != NULL && !cJSON_IsNull(get(one, "expect_byway")))
        RUN("byway", get(one, "expect_byway"));
#undef RUN
    return last;
}

/* --- tags --------------------------------------------------------------------------------------------------------- */

#define APPLICATION "remote.application=of-the-case"

static const char *tag_key(struct world *w, const cJSON *invokers)
{
    const cJSON *first = cJSON_GetArrayItem(invokers, 0);
    const char *url = cJSON_IsString(first) ? first->valuestring : text_of(first, "url", "");
    const char *application = parameter(w, url, "remote.application");
    if (*application == '\0')
        application = parameter(w, url, "application");
    return keepf(w, "%s.tag-router", *application == '\0' ? "of-the-case" : application);
}

static enum outcome tag_as(const cJSON *one, int dialect, const cJSON *expect)
{
    struct world w;
    enum outcome outcome;
    cJSON *picked = cJSON_CreateArray(), *place = cJSON_CreateArray();
    const cJSON *row, *input = get(one, "route_input");
    int number = 0, current = cJSON_Compare(get(one, "chain_generation"), get(one, "cache_generation"), 1)
                              || (get(one, "chain_generation") == NULL && get(one, "cache_generation") == NULL);
    cJSON_ArrayForEach(row, get(one, "invokers"))
    {
        const cJSON *wanted = NULL;
        int taken = !cJSON_IsArray(input) || current;
        cJSON_ArrayForEach(wanted, input) if (!current && cJSON_Compare(wanted, get(row, "id"), 1)) taken = 1;
        if (taken) {
            cJSON_AddItemToArray(picked, cJSON_Duplicate(row, 1));
            cJSON_AddItemToArray(place, cJSON_CreateNumber(number));
        }
        number++;
    }
    if (!open_for(&w, dialect, text_of(one, "consumer_url", NULL), ALONE "tag", picked, APPLICATION, "application=")) {
        outcome = fails("%s", w.why);
    } else {
        cJSON *nothing = cJSON_Parse("{\"method\":\"m\"}"), *call = cJSON_Duplicate(get(one, "invocation"), 1);
        if (cJSON_IsString(get(one, "rule")))
            byway_engine_set_rule(w.engine, tag_key(&w, picked), BYWAY_NUL, get(one, "rule")->valuestring, BYWAY_NUL, NULL);
        if (cJSON_IsObject(call) && !cJSON_IsString(get(call, "method"))) {
            cJSON_DeleteItemFromObject(call, "method");
            cJSON_AddStringToObject(call, "method", "m");
        }
        world_call(&w, cJSON_IsObject(call) ? call : nothing);
        {
            cJSON *rows = world_rows(&w);
            if (rows == NULL) {
                outcome = fails("%s", w.why);
            } else if (cJSON_IsNumber(get(expect, "count"))) {
                outcome = cJSON_GetArraySize(rows) == (int)number_of(expect, "count", -1)
                              ? PASS
                              : fails("%d rows", cJSON_GetArraySize(rows));
                cJSON_Delete(rows);
            } else {
                cJSON *ids = ids_of(picked, rows);
                cJSON_Delete(rows);
                outcome = same_json(ids, expect, "ids");
            }
        }
        cJSON_Delete(call);
        cJSON_Delete(nothing);
    }
    world_close(&w);
    cJSON_Delete(picked);
    cJSON_Delete(place);
    return outcome;
}

static enum outcome tag(const cJSON *one)
{
    enum outcome outcome = tag_as(one, dialect_of(one), get(one, "expect"));
    if (outcome == PASS && sane_of(one) != NULL)
        outcome = tag_as(one, BYWAY_DIALECT_BYWAY, sane_of(one));
    return outcome;
}

static enum outcome tag_lifecycle(const cJSON *one)
{
    struct world w;
    enum outcome outcome = PASS;
    const cJSON *step, *invokers = get(one, "invokers");
    if (!open_for(&w, dialect_of(one), text_of(one, "consumer_url", NULL), ALONE "tag", invokers, APPLICATION,
                  "application=")) {
        world_close(&w);
        return fails("%s", w.why);
    }
    world_call(&w, get(one, "invocation"));
    cJSON_ArrayForEach(step, get(one, "expect"))
    {
        const char *event = text_of(step, "event", ""), *open = strchr(event, '\''), *close = strrchr(event, '\'');
        const char *key = tag_key(&w, invokers), *text = text_of(one, "rule", "");
        cJSON *rows;
        if (open != NULL && close > open)
            text = keepf(&w, "%.*s", (int)(close - open - 1), open + 1);
        if (strncmp(event, "DELETED", 7) == 0)
            byway_engine_remove_rule(w.engine, key, BYWAY_NUL, NULL);
        else
            byway_engine_set_rule(w.engine, key, BYWAY_NUL, text, BYWAY_NUL, NULL);
        rows = world_rows(&w);
        if (outcome == PASS)
            outcome = same_json(ids_of(invokers, rows), get(step, "route"), event);
        cJSON_Delete(rows);
    }
    world_close(&w);
    return outcome;
}

/* Level search, seen through routing: one provider per address, and the caller insisting or not. */
static enum outcome level(const cJSON *addresses, const char *selector, int force, int dialect, const cJSON *expect,
                          const cJSON *want_name)
{
    struct world w;
    enum outcome outcome = PASS;
    cJSON *providers = cJSON_CreateArray(), *names = cJSON_CreateArray(), *texts = cJSON_CreateArray();
    cJSON *found = cJSON_CreateArray(), *rule = cJSON_CreateObject(), *tags = cJSON_CreateArray();
    const cJSON *group, *address, *row;
    char *text, *name = NULL;
    cJSON_AddItemToObject(rule, "tags", tags);
    cJSON_ArrayForEach(group, addresses)
    {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "name", group->string);
        cJSON_AddItemToObject(entry, "addresses", cJSON_Duplicate(group, 1));
        cJSON_AddItemToArray(tags, entry);
        cJSON_ArrayForEach(address, group)
        {
            char url[256];
            snprintf(url, sizeof url, "dubbo://%s/s", address->valuestring);
            cJSON_AddItemToArray(providers, cJSON_CreateString(url));
            cJSON_AddItemToArray(names, cJSON_CreateString(group->string));
            cJSON_AddItemToArray(texts, cJSON_Duplicate(address, 1));
        }
    }
    text = cJSON_PrintUnformatted(rule);
    if (!open_for(&w, dialect, "consumer://10.0.1.1/s", ALONE "tag", providers, APPLICATION, "application=")) {
        outcome = fails("%s", w.why);
    } else if (byway_engine_set_rule(w.engine, "of-the-case.tag-router", BYWAY_NUL, text, BYWAY_NUL, NULL)) {
        outcome = fails("the rule is refused");
    } else {
        cJSON *rows;
        byway_invocation_set_method(w.call, "m", 1);
        byway_invocation_set_attachment(w.call, "dubbo.tag", BYWAY_NUL, selector, BYWAY_NUL);
        byway_invocation_set_attachment(w.call, "dubbo.force.tag", BYWAY_NUL, force ? "true" : "false", BYWAY_NUL);
        rows = world_rows(&w);
        cJSON_ArrayForEach(row, rows)
        {
            cJSON_AddItemToArray(found, cJSON_Duplicate(cJSON_GetArrayItem(texts, row->valueint), 1));
            if (name == NULL)
                name = cJSON_GetArrayItem(names, row->valueint)->valuestring;
        }
        cJSON_Delete(rows);
        if (cJSON_GetArraySize(found) == 0 && cJSON_IsNull(expect))
            outcome = PASS;
        else
            outcome = same_json(cJSON_Duplicate(found, 1), expect, selector);
        if (outcome == PASS && want_name != NULL
            && strcmp(cJSON_IsNull(want_name) ? "" : want_name->valuestring, name == NULL ? "" : name) != 0)
            outcome = fails("found %s", name == NULL ? "nothing" : name);
    }
    world_close(&w);
    cJSON_free(text);
    cJSON_Delete(providers);
    cJSON_Delete(names);
    cJSON_Delete(texts);
    cJSON_Delete(found);
    cJSON_Delete(rule);
    return outcome;
}

static enum outcome tag_level(const cJSON *one)
{
    const cJSON *expect = get(one, "expect");
    return level(get(one, "tag_addresses"), text_of(one, "selector", ""), flag_of(one, "force"), dialect_of(one),
                 get(expect, "addresses"), get(expect, "matched_name"));
}

static enum outcome tag_levels_reported(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *selector, *want = get(get(one, "expect"), "addresses")->child;
    cJSON_ArrayForEach(selector, get(input, "selectors"))
    {
        if (level(get(input, "tag_addresses"), selector->valuestring, flag_of(input, "force"), BYWAY_DIALECT_BYWAY, want,
                  NULL)
            != PASS)
            return FAIL;
        want = want->next;
    }
    return PASS;
}

static const char *as_text(struct world *w, const cJSON *value)
{
    char *printed;
    const char *kept;
    if (cJSON_IsString(value))
        return value->valuestring;
    printed = cJSON_PrintUnformatted(value);
    kept = keep(w, printed);
    cJSON_free(printed);
    return kept;
}

static enum outcome tag_reported_as(const cJSON *input, int dialect, const cJSON *want)
{
    struct world w;
    enum outcome outcome = PASS;
    char consumer[256] = "consumer://10.0.1.1/s";
    int calls = (int)number_of(input, "calls", 1), i;
    if (cJSON_IsString(get(input, "consumer_tag")))
        snprintf(consumer, sizeof consumer, "consumer://10.0.1.1/s?dubbo.tag=%s", text_of(input, "consumer_tag", ""));
    if (!open_for(&w, dialect, consumer, ALONE "tag", get(input, "invokers"), APPLICATION, "application=")) {
        outcome = fails("%s", w.why);
    } else {
        if (cJSON_IsString(get(input, "rule")))
            byway_engine_set_rule(w.engine, tag_key(&w, get(input, "invokers")), BYWAY_NUL, text_of(input, "rule", ""),
                                  BYWAY_NUL, NULL);
        byway_invocation_set_method(w.call, "m", 1);
        if (get(input, "tag") != NULL && !cJSON_IsNull(get(input, "tag")))
            byway_invocation_set_attachment(w.call, "dubbo.tag", BYWAY_NUL, as_text(&w, get(input, "tag")), BYWAY_NUL);
        if (get(input, "force_tag") != NULL && !cJSON_IsNull(get(input, "force_tag")))
            byway_invocation_set_attachment(w.call, "dubbo.force.tag", BYWAY_NUL, as_text(&w, get(input, "force_tag")),
                                            BYWAY_NUL);
        for (i = 0; i < calls && outcome == PASS; i++) {
            cJSON *rows = world_rows(&w);
            outcome = rows == NULL ? fails("%s", w.why) : same_json(rows, want, "rows");
        }
    }
    world_close(&w);
    return outcome;
}

static enum outcome tag_reported(const cJSON *one)
{
    const cJSON *expect = get(one, "expect"), *go = get(expect, "compat_dubbo_go");
    enum outcome outcome = tag_reported_as(get(one, "input"), BYWAY_DIALECT_BYWAY, get(expect, "kept"));
    if (outcome == PASS && go != NULL && !cJSON_IsNull(go))
        outcome = tag_reported_as(get(one, "input"), BYWAY_DIALECT_DUBBO_GO, go);
    return outcome;
}

/* --- mock selector ------------------------------------------------------------------------------------------------ */

static enum outcome routed_as(const cJSON *one, int dialect, const char *routers, const cJSON *expect)
{
    struct world w;
    enum outcome outcome;
    if (!open_for(&w, dialect, text_of(one, "consumer_url", NULL), routers, get(one, "invokers"), NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else {
        cJSON *rows;
        if (!world_call(&w, get(one, "invocation")))
            byway_invocation_set_method(w.call, "m", 1);
        rows = world_rows(&w);
        outcome = rows == NULL ? fails("%s", w.why) : same_json(ids_of(get(one, "invokers"), rows), expect, "ids");
        cJSON_Delete(rows);
    }
    world_close(&w);
    return outcome;
}

static enum outcome mock(const cJSON *one)
{
    const cJSON *expect = get(one, "expect"), *item;
    int dialect;
    if (cJSON_IsObject(expect)) {
        cJSON *nobody = cJSON_CreateArray();
        enum outcome outcome = PASS;
        cJSON_ArrayForEach(item, expect)
        {
            dialect = strcmp(item->string, "java_2_7") == 0 ? BYWAY_DIALECT_DUBBO_2_7 : BYWAY_DIALECT_DUBBO_3;
            if (outcome == PASS)
                outcome = routed_as(one, dialect, ALONE "mock", cJSON_IsNull(item) ? nobody : item);
        }
        cJSON_Delete(nobody);
        return outcome;
    }
    /* dubbo-go has no mock selector. */
    for (dialect = BYWAY_DIALECT_BYWAY; dialect <= BYWAY_DIALECT_DUBBO_2_7; dialect++)
        if (routed_as(one, dialect, ALONE "mock", expect) != PASS)
            return FAIL;
    return PASS;
}

/* --- reports ---------------------------------------------------------------------------------------------------------- */

static enum outcome condition_route(const cJSON *one)
{
    const cJSON *input = get(one, "input");
    cJSON *made = cJSON_CreateObject(), *parameters = cJSON_CreateObject();
    enum outcome outcome;
    cJSON *call = cJSON_Duplicate(cJSON_IsObject(get(input, "invocation")) ? get(input, "invocation") : input, 1);
    if (!cJSON_IsString(get(call, "method")))
        cJSON_AddStringToObject(call, "method", "m");
    cJSON_AddBoolToObject(parameters, "force", flag_of(input, "force"));
    cJSON_AddStringToObject(made, "rule", text_of(input, "rule", ""));
    cJSON_AddStringToObject(made, "consumer_url", text_of(input, "consumer", "consumer://10.9.9.9/s"));
    cJSON_AddItemToObject(made, "params", parameters);
    cJSON_AddItemToObject(made, "invocation", call);
    cJSON_AddItemToObject(made, "invokers", cJSON_Duplicate(get(input, "invokers"), 1));
    outcome = string_as(made, BYWAY_DIALECT_BYWAY, get(get(one, "expect"), "kept"));
    cJSON_Delete(made);
    return outcome;
}

static enum outcome condition_when(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *rules = get(input, "rules"), *calls = get(input, "invocations");
    const cJSON *rule = cJSON_IsArray(rules) ? rules->child : get(input, "rule"), *call;
    cJSON *matched = cJSON_CreateArray();
    for (; rule != NULL; rule = cJSON_IsArray(rules) ? rule->next : NULL) {
        call = cJSON_IsArray(calls) ? calls->child
                                    : cJSON_IsObject(get(input, "invocation")) ? get(input, "invocation") : input;
        for (; call != NULL; call = cJSON_IsArray(calls) ? call->next : NULL) {
            cJSON *copy = cJSON_Duplicate(call, 1);
            int holds = 0, good;
            if (!cJSON_IsString(get(copy, "method")))
                cJSON_AddStringToObject(copy, "method", "m");
            good = when_holds(rule->valuestring, BYWAY_DIALECT_BYWAY, text_of(input, "consumer", "consumer://10.9.9.9/s"),
                              copy, &holds);
            cJSON_Delete(copy);
            if (!good) {
                cJSON_Delete(matched);
                return fails("%s is refused", rule->valuestring);
            }
            cJSON_AddItemToArray(matched, cJSON_CreateBool(holds));
        }
    }
    return same_json(matched, get(get(one, "expect"), "matched"), "matched");
}

static enum outcome rule_texts(const cJSON *one)
{
    const cJSON *text, *want = get(get(one, "expect"), "result")->child;
    static const char key[] = "S::.condition-router", before[] = "conditions: ['=> region=a']\nforce: true";
    cJSON *providers = cJSON_Parse("[\"dubbo://1.1.1.1:1/S?region=b\"]");
    enum outcome outcome = PASS;
    cJSON_ArrayForEach(text, get(get(one, "input"), "texts"))
    {
        struct world w;
        const char *wanted = cJSON_IsString(want) ? want->valuestring : "";
        byway_error *err = NULL;
        byway_status status;
        cJSON *rows;
        int left, good;
        if (text->valuestring[0] == '\0' && strcmp(wanted, "error") == 0) {
            /* A NUL, which the JSON reader of this runner cannot show. */
            want = want->next;
            continue;
        }
        if (!world_open(&w, BYWAY_DIALECT_BYWAY, "consumer://1.1.1.1/S", providers, NULL, NULL))
            outcome = fails("%s", w.why);
        byway_engine_set_rule(w.engine, key, BYWAY_NUL, before, BYWAY_NUL, NULL);
        status = byway_engine_set_rule(w.engine, key, BYWAY_NUL, text->valuestring, BYWAY_NUL, &err);
        byway_invocation_set_method(w.call, "m", 1);
        rows = world_rows(&w);
        left = cJSON_GetArraySize(rows);
        cJSON_Delete(rows);
        if (strcmp(wanted, "delete") == 0)
            good = status == BYWAY_OK && left == 1;
        else if (strcmp(wanted, "error") == 0 || strcmp(wanted, "decide") == 0)
            good = status < 0 && byway_error_line(err) > 0 && left == 0;
        else
            good = status == BYWAY_OK;
        if (!good && outcome == PASS)
            outcome = fails("%s: %s, %d left, want %s", text->valuestring, byway_status_name(status), left, wanted);
        byway_error_free(err);
        world_close(&w);
        want = want->next;
    }
    cJSON_Delete(providers);
    return outcome;
}

static enum outcome affinity_reported(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *expect = get(one, "expect"), *go = get(expect, "compat_dubbo_go");
    int dialects[2] = { BYWAY_DIALECT_BYWAY, BYWAY_DIALECT_DUBBO_GO }, i;
    enum outcome outcome = PASS;
    for (i = 0; i < (go != NULL && !cJSON_IsNull(go) ? 2 : 1) && outcome == PASS; i++) {
        struct world w;
        const char *consumer = text_of(input, "consumer", "consumer://10.9.9.9/s");
        if (!world_open(&w, dialects[i], consumer, get(input, "invokers"), NULL, NULL)) {
            outcome = fails("%s", w.why);
        } else {
            char *ratio = cJSON_PrintUnformatted(get(input, "ratio"));
            const char *text = keepf(&w, "configVersion: v3.1\nenabled: true\naffinityAware: {key: %s, ratio: %s}\n",
                                     text_of(input, "key", ""), ratio);
            byway_status status = byway_engine_set_rule(
                w.engine, key_of(&w, dialects[i], BYWAY_RULE_AFFINITY, NULL, consumer), BYWAY_NUL, text, BYWAY_NUL, NULL);
            cJSON *rows;
            cJSON_free(ratio);
            byway_invocation_set_method(w.call, "m", 1);
            rows = world_rows(&w);
            if (i == 0 && (status < 0) != cJSON_IsArray(get(expect, "events")))
                outcome = fails("the rule: %s", byway_status_name(status));
            else
                outcome = same_json(cJSON_Duplicate(rows, 1), i == 0 ? get(expect, "kept") : go, "rows");
            cJSON_Delete(rows);
        }
        world_close(&w);
    }
    return outcome;
}

const struct kind rule_kinds[] = {
    { "dubbo_condition", "condition", condition },
    { "dubbo_chain", "tag", tag },
    { "dubbo_chain", "tag-lifecycle", tag_lifecycle },
    { "dubbo_chain", "tag-level", tag_level },
    { "dubbo_chain", "mock", mock },
    { "bugs", "tag_route", tag_reported },
    { "bugs", "tag_level", tag_levels_reported },
    { "bugs", "condition_route", condition_route },
    { "bugs", "condition_when", condition_when },
    { "bugs", "condition_when_list", condition_when },
    { "bugs", "rule_parse_list", rule_texts },
    { "bugs", "affinity", affinity_reported },
    { NULL, NULL, NULL },
};
