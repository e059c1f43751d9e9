/* Mesh rules and their matchers. A matcher is shown by a rule that uses it: the call gets the first of two providers if
 * it fits, both if it does not. */
#include "chains.h"

#define KEY "app1.MESHAPPRULE"

static uint64_t zero(void *data)
{
    (void)data;
    return 0;
}

/* Two documents: subsets, and the routes to them. Takes both. */
static const char *rule_of(struct world *w, cJSON *subsets, cJSON *detail)
{
    cJSON *destination = cJSON_Parse("{\"kind\": \"DestinationRule\", \"metadata\": {\"name\": \"x\"}, \"spec\": {}}");
    cJSON *service = cJSON_Parse("{\"kind\": \"VirtualService\", \"metadata\": {\"name\": \"x\"}, \"spec\": {\"dubbo\": "
                                 "[{\"routedetail\": []}]}}");
    char *first, *second;
    const char *text;
    cJSON *dubbo = cJSON_GetObjectItem(cJSON_GetObjectItem(service, "spec"), "dubbo");
    cJSON_AddItemToObject(cJSON_GetObjectItem(destination, "spec"), "subsets", subsets);
    cJSON_AddItemToArray(cJSON_GetObjectItem(dubbo->child, "routedetail"), detail);
    first = cJSON_PrintUnformatted(destination);
    second = cJSON_PrintUnformatted(service);
    text = keepf(w, "%s\n---\n%s\n", first, second);
    cJSON_free(first);
    cJSON_free(second);
    cJSON_Delete(destination);
    cJSON_Delete(service);
    return text;
}

static cJSON *route_to(const char *subset, cJSON *blocks)
{
    cJSON *detail = cJSON_CreateObject(), *routes = cJSON_AddArrayToObject(detail, "route"), *route = cJSON_CreateObject();
    cJSON_AddStringToObject(cJSON_AddObjectToObject(route, "destination"), "subset", subset);
    cJSON_AddItemToArray(routes, route);
    if (blocks != NULL)
        cJSON_AddItemToObject(detail, "match", blocks);
    return detail;
}

static cJSON *one_block(cJSON *block)
{
    cJSON *blocks = cJSON_CreateArray();
    cJSON_AddItemToArray(blocks, block);
    return blocks;
}

/* Opens a world of two providers and sets a rule that sends calls that fit one of the blocks to the first. */
static int matching(struct world *w, int dialect, const char *consumer, cJSON *blocks, byway_error **err)
{
    cJSON *rows = cJSON_Parse("[\"dubbo://10.0.0.1:1/S?v=1&remote.application=app1\","
                              "\"dubbo://10.0.0.2:1/S?v=2&remote.application=app1\"]");
    cJSON *subsets = cJSON_Parse("[{\"name\": \"one\", \"labels\": {\"v\": \"1\"}}]");
    int good = world_open(w, dialect, consumer, rows, NULL, NULL);
    cJSON_Delete(rows);
    if (!good) {
        cJSON_Delete(subsets);
        cJSON_Delete(blocks);
        return 0;
    }
    w->rows = NULL;
    byway_invocation_set_method(w->call, "m", 1);
    return byway_engine_set_rule(w->engine, KEY, BYWAY_NUL, rule_of(w, subsets, route_to("one", blocks)), BYWAY_NUL, err)
           == BYWAY_OK;
}

/* Whether the call was sent to the first provider; -1 with w->why when routing failed. */
static int fitted(struct world *w)
{
    cJSON *rows = world_rows(w);
    int count = rows == NULL ? -1 : cJSON_GetArraySize(rows);
    cJSON_Delete(rows);
    return count < 0 ? -1 : count == 1;
}

static enum outcome compare(struct world *w, const cJSON *expect)
{
    int got = fitted(w);
    const char *error = text_of(expect, "error", NULL);
    if (error != NULL)
        return got < 0 && strstr(w->why, error) != NULL ? PASS : fails("want %s, got %d %s", error, got, w->why);
    if (got < 0)
        return fails("%s", w->why);
    return got == cJSON_IsTrue(expect) ? PASS : fails("fits: %d", got);
}

static enum outcome matched(int dialect, const char *consumer, cJSON *block, const cJSON *invocation,
                            const cJSON *types, const cJSON *expect)
{
    struct world w;
    byway_error *err = NULL;
    enum outcome outcome;
    if (!matching(&w, dialect, consumer, one_block(block), &err)) {
        byway_str message = { "", 0 };
        byway_error_message(err, &message);
        outcome = fails("refused: %s %s", w.why, message.data);
    } else {
        if (!world_call(&w, invocation))
            byway_invocation_set_method(w.call, "m", 1);
        if (types != NULL) {
            const cJSON *type;
            byway_str names[16];
            size_t count = 0;
            cJSON_ArrayForEach(type, types) if (count < 16)
            {
                names[count].data = type->valuestring;
                names[count++].len = BYWAY_NUL;
            }
            byway_invocation_set_types(w.call, names, count);
        }
        outcome = compare(&w, expect);
    }
    byway_error_free(err);
    world_close(&w);
    return outcome;
}

enum outcome block_fits(int dialect, cJSON *block, const cJSON *invocation, const cJSON *expect)
{
    return matched(dialect, "consumer://10.1.1.1/S", block, invocation, NULL, expect);
}

/* dubbo-go has the matchers but no mesh router; byway's own reading of them is the same. */
static int matcher_dialect(const cJSON *one)
{
    int dialect = dialect_of(one);
    return dialect == BYWAY_DIALECT_DUBBO_GO ? BYWAY_DIALECT_BYWAY : dialect;
}

/* The first argument against a matcher. */
static enum outcome argument_match(const cJSON *one, const char *field, const char *type, cJSON *matcher)
{
    cJSON *block = cJSON_CreateObject(), *call = cJSON_CreateObject(), *types = cJSON_CreateArray();
    cJSON *test = cJSON_CreateObject(), *arguments = cJSON_AddArrayToObject(call, "arguments");
    cJSON *method = cJSON_AddObjectToObject(block, "method");
    enum outcome outcome;
    cJSON_AddStringToObject(call, "method", "m");
    cJSON_AddItemToArray(arguments, get(one, "input") != NULL ? cJSON_Duplicate(get(one, "input"), 1) : cJSON_CreateNull());
    cJSON_AddItemToArray(types, cJSON_CreateString(type));
    cJSON_AddNumberToObject(test, "index", 0);
    cJSON_AddItemToObject(test, field, matcher);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(method, "args"), test);
    outcome = matched(matcher_dialect(one), "consumer://10.1.1.1/S", block, call, types, get(one, "expect"));
    cJSON_Delete(call);
    cJSON_Delete(types);
    return outcome;
}

static cJSON *one_of(const cJSON *matcher)
{
    cJSON *list = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_AddArrayToObject(list, "oneof"), cJSON_Duplicate(matcher, 1));
    return list;
}

/* Numbers written `10.0` in a case are so to Java; a JSON printer would write `10`. */
static void with_points(cJSON *value)
{
    cJSON *item;
    char text[64];
    if (cJSON_IsNumber(value)) {
        snprintf(text, sizeof text, "%.17g", value->valuedouble);
        if (strpbrk(text, ".e") == NULL)
            strcat(text, ".0");
        value->type = cJSON_Raw;
        value->valuestring = malloc(strlen(text) + 1);
        if (value->valuestring == NULL)
            abort();
        strcpy(value->valuestring, text);
    }
    for (item = value->child; item != NULL; item = item->next)
        with_points(item);
}

/* What a text's reader says of a matcher that is written wrongly. */
static enum outcome warned(const cJSON *one, const char *field, const char *words)
{
    struct world w;
    byway_text *text = NULL;
    byway_str said = { "", 0 };
    enum outcome outcome;
    memset(&w, 0, sizeof w);
    byway_rule_check(BYWAY_DIALECT_DUBBO_3, BYWAY_RULE_MESH,
                     keepf(&w,
                           "kind: VirtualService\nmetadata: {name: x}\nspec: {dubbo: [{routedetail: [{match: [{method: {args: "
                           "[{index: 0, %s}]}}], route: []}]}]}\n",
                           keepf(&w, field, text_of(one, "rule", ""))),
                     BYWAY_NUL, NULL, BYWAY_FORMAT_TEXT, &text, NULL);
    byway_text_str(text, &said);
    outcome = strstr(said.data, words) != NULL ? PASS : fails("said %s", said.data);
    byway_text_free(text);
    world_close(&w);
    return outcome;
}

static enum outcome double_match(const cJSON *one)
{
    cJSON *matcher;
    if (cJSON_IsString(get(one, "rule")))
        return warned(one, "num_value: {oneof: [%s]}", "'exact: 10' is dropped; write 10.0");
    matcher = one_of(get(one, "matcher"));
    with_points(matcher);
    return argument_match(one, "num_value", "java.lang.Double", matcher);
}

static enum outcome list_double_match(const cJSON *one)
{
    cJSON *matcher = cJSON_Duplicate(get(one, "matcher"), 1);
    with_points(matcher);
    return argument_match(one, "num_value", "java.lang.Double", matcher);
}

static enum outcome bool_match(const cJSON *one)
{
    if (cJSON_IsString(get(one, "rule")))
        return warned(one, "bool_value: %s", "'exact' must be true or false");
    return argument_match(one, "bool_value", "boolean", cJSON_Duplicate(get(one, "matcher"), 1));
}

static enum outcome list_bool_match(const cJSON *one)
{
    return argument_match(one, "bool_value", "boolean", cJSON_Duplicate(get(get(one, "matcher"), "oneof")->child, 1));
}

static enum outcome list_string_match(const cJSON *one)
{
    return argument_match(one, "str_value", "java.lang.String", cJSON_Duplicate(get(one, "matcher"), 1));
}

static enum outcome method_match(const cJSON *one)
{
    cJSON *block = cJSON_CreateObject();
    cJSON_AddItemToObject(block, "method", cJSON_Duplicate(get(one, "matcher"), 1));
    /* Whole numbers of `argc` and `index` stay what they are; those of matchers are Java's doubles. */
    const cJSON *test;
    cJSON_ArrayForEach(test, get(get(block, "method"), "args"))
    {
        cJSON *number = cJSON_GetObjectItem(test, "num_value");
        if (number != NULL)
            with_points(number);
    }
    return matched(BYWAY_DIALECT_DUBBO_3, "consumer://10.1.1.1/S", block, get(one, "invocation"),
                   get(get(one, "invocation"), "parameter_types"), get(one, "expect"));
}

static int asks_for_traces(const cJSON *one)
{
    return cJSON_GetArraySize(get(one, "tracing_context")) > 0;
}

static enum outcome attachment_match(const cJSON *one)
{
    cJSON *block;
    if (asks_for_traces(one))
        return skips("tracing contexts come from inside the host, of which rules through C see attachments");
    block = cJSON_CreateObject();
    cJSON_AddItemToObject(block, "attachments", cJSON_Duplicate(get(one, "matcher"), 1));
    return matched(BYWAY_DIALECT_DUBBO_3, "consumer://10.1.1.1/S", block, get(one, "invocation"), NULL, get(one, "expect"));
}

static enum outcome match_request(const cJSON *one)
{
    char consumer[512] = "consumer://10.1.1.1/S?a=b";
    const cJSON *label;
    if (asks_for_traces(one))
        return skips("tracing contexts come from inside the host, of which rules through C see attachments");
    cJSON_ArrayForEach(label, get(one, "source_labels"))
        snprintf(consumer + strlen(consumer), sizeof consumer - strlen(consumer), "&%s=%s", label->string, label->valuestring);
    return matched(BYWAY_DIALECT_DUBBO_3, consumer, cJSON_Duplicate(get(one, "matcher"), 1), get(one, "invocation"), NULL,
                   get(one, "expect"));
}

/* --- whole rules ------------------------------------------------------------------------------------------------------ */

/* A world for a case's consumer, service, providers and rule. Draws give 0 unless they are counted. */
static int mesh_open(struct world *w, const cJSON *one, int dialect, int counted)
{
    const char *consumer = text_of(one, "consumer_url", "consumer://h/S");
    const char *service = text_of(get(one, "invocation"), "service", NULL), *key = text_of(one, "app", "app1");
    const cJSON *row, *came = get(one, "route_input"), *id;
    cJSON *rows = cJSON_CreateArray();
    char text[1024];
    int good;
    snprintf(text, sizeof text, "%s", consumer);
    if (service != NULL) {
        const char *query = strchr(consumer, '?'), *path = strchr(strstr(consumer, "://") + 3, '/');
        int head = (int)((path != NULL ? path : query != NULL ? query : consumer + strlen(consumer)) - consumer);
        snprintf(text, sizeof text, "%.*s/%s%s", head, consumer, service, query != NULL ? query : "");
    }
    /* What an earlier router kept is a list without the others. */
    cJSON_ArrayForEach(row, get(one, "invokers"))
    {
        int in = !cJSON_IsArray(came);
        cJSON_ArrayForEach(id, came) in |= strcmp(id->valuestring, text_of(row, "id", "")) == 0;
        if (in)
            cJSON_AddItemToArray(rows, cJSON_Duplicate(row, 1));
    }
    world_draws = counted ? NULL : zero;
    good = world_open(w, dialect, text, rows, NULL, NULL);
    world_draws = NULL;
    w->rows = rows;
    if (!good)
        return 0;
    if (!world_call(w, get(one, "invocation")))
        byway_invocation_set_method(w->call, "m", 1);
    if (cJSON_IsString(get(one, "rule")))
        byway_engine_set_rule(w->engine, keepf(w, "%s.MESHAPPRULE", key), BYWAY_NUL, text_of(one, "rule", ""), BYWAY_NUL,
                              NULL);
    return 1;
}

static void mesh_close(struct world *w)
{
    cJSON *rows = (cJSON *)(uintptr_t)w->rows;
    world_close(w);
    cJSON_Delete(rows);
}

static enum outcome mesh_once(const cJSON *one, int dialect, const cJSON *expect, const char *error)
{
    struct world w;
    enum outcome outcome = PASS;
    if (!mesh_open(&w, one, dialect, 0)) {
        outcome = fails("%s", w.why);
    } else {
        cJSON *rows = world_rows(&w);
        if (error != NULL)
            outcome = rows == NULL && strstr(w.why, error) != NULL ? PASS : fails("want %s, got %s", error, w.why);
        else if (rows == NULL)
            outcome = fails("%s", w.why);
        else if (expect != NULL)
            outcome = same_json(ids_of(w.rows, rows), expect, "ids");
        cJSON_Delete(rows);
    }
    mesh_close(&w);
    return outcome;
}

/* Upstream's words for people, and ours for the same. */
static enum outcome mesh_told(const cJSON *one)
{
    struct world w;
    const char *message = text_of(one, "message", "");
    enum outcome outcome = PASS;
    byway_text *text = NULL;
    byway_str said = { "", 0 };
    if (!mesh_open(&w, one, BYWAY_DIALECT_DUBBO_3, 0)) {
        outcome = fails("%s", w.why);
    } else {
        byway_chain_explain(w.chain, w.call, BYWAY_FORMAT_TEXT, &text, NULL);
        byway_text_str(text, &said);
        if (strncmp(message, "Match App: ", 11) == 0) {
            while (outcome == PASS && (message = strstr(message, "Match App: ")) != NULL) {
                char application[64], subset[64];
                if (sscanf(message, "Match App: %63s Subset: %63s", application, subset) != 2
                    || strstr(said.data, keepf(&w, "application %s: VirtualService", application)) == NULL
                    || strstr(said.data, keepf(&w, ", subset %s", subset)) == NULL)
                    outcome = fails("said %s", said.data);
                message += 11;
            }
        } else if (strncmp(message, "Empty protection", 16) == 0) {
            if (strstr(said.data, "so all stay") == NULL)
                outcome = fails("said %s", said.data);
        } else if (strstr(said.data, "standard-mesh-rule") != NULL) {
            outcome = fails("there is a mesh router: %s", said.data);
        }
    }
    byway_text_free(text);
    mesh_close(&w);
    return outcome;
}

#define RUNS 10000

/* Shares of each provider over many calls. */
static enum outcome mesh_shares(const cJSON *one, int dialect, const cJSON *shares, const cJSON *always)
{
    struct world w;
    enum outcome outcome = PASS;
    int counts[64] = { 0 }, i, number = 0;
    const cJSON *row;
    if (!mesh_open(&w, one, dialect, 1)) {
        outcome = fails("%s", w.why);
    } else {
        for (i = 0; i < RUNS && outcome == PASS; i++) {
            cJSON *rows = world_rows(&w);
            if (rows == NULL)
                outcome = fails("%s", w.why);
            cJSON_ArrayForEach(row, rows) counts[row->valueint % 64]++;
            cJSON_Delete(rows);
        }
        cJSON_ArrayForEach(row, w.rows)
        {
            const char *id = text_of(row, "id", "");
            double got = counts[number++ % 64] / (double)RUNS, want = number_of(shares, id, 0);
            const cJSON *known;
            if (always != NULL) {
                want = 0;
                cJSON_ArrayForEach(known, always) if (strcmp(known->valuestring, id) == 0) want = got > 0 ? got : 2;
            }
            if (outcome == PASS && (got - want > 0.015 || want - got > 0.015))
                outcome = fails("dialect %d: %s gets %g, want %g", dialect, id, got, want);
        }
    }
    mesh_close(&w);
    return outcome;
}

static enum outcome mesh(const cJSON *one)
{
    const cJSON *expect = get(one, "expect"), *sane;
    const char *error = text_of(expect, "error", NULL);
    enum outcome outcome;
    if (error != NULL) {
        char head[64];
        snprintf(head, sizeof head, "%.*s", (int)strcspn(error, ": "), error);
        outcome = mesh_once(one, BYWAY_DIALECT_DUBBO_3, NULL, head);
        return outcome == PASS ? mesh_once(one, BYWAY_DIALECT_BYWAY, NULL, NULL) : outcome;
    }
    if (cJSON_IsObject(expect)) {
        const cJSON *observed = get(one, "observed_share");
        const cJSON *always = get(expect, "always");
        if (cJSON_IsArray(always)) {
            outcome = mesh_shares(one, BYWAY_DIALECT_DUBBO_3, NULL, always);
            return outcome == PASS ? mesh_shares(one, BYWAY_DIALECT_BYWAY, NULL, always) : outcome;
        }
        if (!cJSON_IsObject(observed))
            observed = get(expect, "observed_share");
        outcome = mesh_shares(one, BYWAY_DIALECT_DUBBO_3, observed, NULL);
        sane = get(one, "sane_share");
        if (outcome == PASS && cJSON_IsObject(sane))
            outcome = mesh_shares(one, BYWAY_DIALECT_BYWAY, sane, NULL);
        return outcome;
    }
    outcome = mesh_once(one, BYWAY_DIALECT_DUBBO_3, expect, NULL);
    if (outcome == PASS && cJSON_IsString(get(one, "message")))
        outcome = mesh_told(one);
    sane = sane_of(one);
    if (outcome == PASS && cJSON_IsArray(sane))
        outcome = mesh_once(one, BYWAY_DIALECT_BYWAY, sane, NULL);
    return outcome;
}

static enum outcome mesh_labels(const cJSON *one)
{
    struct world w;
    enum outcome outcome;
    const cJSON *parameter;
    cJSON *rows = cJSON_CreateArray(), *subset = cJSON_CreateObject(), *subsets = cJSON_CreateArray();
    char url[512] = "dubbo://10.0.0.1:1/S?remote.application=app1";
    cJSON_ArrayForEach(parameter, get(get(one, "invokers")->child, "params"))
        snprintf(url + strlen(url), sizeof url - strlen(url), "&%s=%s", parameter->string, parameter->valuestring);
    cJSON_AddItemToArray(rows, cJSON_CreateString(url));
    cJSON_AddItemToArray(rows, cJSON_CreateString("dubbo://10.0.0.2:1/S?remote.application=app1"));
    cJSON_AddStringToObject(subset, "name", "s");
    cJSON_AddItemToObject(subset, "labels", cJSON_Duplicate(get(one, "labels"), 1));
    cJSON_AddItemToArray(subsets, subset);
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, "consumer://10.1.1.1/S", rows, NULL, NULL))
        outcome = fails("%s", w.why);
    else if (byway_engine_set_rule(w.engine, KEY, BYWAY_NUL, rule_of(&w, subsets, route_to("s", NULL)), BYWAY_NUL, NULL))
        outcome = fails("the rule is refused");
    else {
        byway_invocation_set_method(w.call, "m", 1);
        outcome = compare(&w, get(one, "expect"));
    }
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

/* Members of a subset, by a rule that sends everybody there; all providers means that nobody is in it. */
static enum outcome mesh_cache(const cJSON *one)
{
    const cJSON *want, *application;
    enum outcome outcome = PASS;
    cJSON_ArrayForEach(want, get(get(one, "expect"), "subset"))
    {
        struct world w;
        const char *subset = strchr(want->string, '/') + 1;
        if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, "consumer://10.1.1.1/S", get(one, "invokers"), NULL, NULL)) {
            outcome = fails("%s", w.why);
        } else {
            const char *rule = rule_of(&w, cJSON_Duplicate(get(one, "subsets"), 1), route_to(subset, NULL));
            char name[64];
            int members = 0, all = cJSON_GetArraySize(get(one, "invokers"));
            cJSON *rows;
            const cJSON *row;
            cJSON_ArrayForEach(application, get(one, "rules_for")) byway_engine_set_rule(
                w.engine, keepf(&w, "%s.MESHAPPRULE", application->valuestring), BYWAY_NUL, rule, BYWAY_NUL, NULL);
            byway_invocation_set_method(w.call, "m", 1);
            rows = world_rows(&w);
            snprintf(name, sizeof name, "remote.application=%.*s", (int)(subset - want->string - 1), want->string);
            if (cJSON_GetArraySize(rows) < all) {
                cJSON_ArrayForEach(row, rows)
                {
                    const cJSON *found = cJSON_GetArrayItem(get(one, "invokers"), row->valueint);
                    members += strstr(text_of(found, "url", ""), name) != NULL;
                }
                if (all - cJSON_GetArraySize(rows) != (int)number_of(get(one, "expect"), "unmatched", -1))
                    outcome = fails("%d in no subset", all - cJSON_GetArraySize(rows));
            } else if ((int)number_of(get(one, "expect"), "unmatched", -1) != all) {
                outcome = fails("nobody is in a subset");
            }
            if (outcome == PASS && members != want->valueint)
                outcome = fails("%s has %d", want->string, members);
            cJSON_Delete(rows);
        }
        world_close(&w);
    }
    return outcome;
}

/* In force or not, by the status of a chain that has providers of both applications. */
static int in_force(struct world *w, const char *key)
{
    byway_text *text = NULL;
    byway_str said = { "", 0 };
    const cJSON *router;
    cJSON *status;
    int found = 0;
    byway_chain_status(w->chain, &text, NULL);
    byway_text_str(text, &said);
    status = cJSON_Parse(said.data);
    cJSON_ArrayForEach(router, get(status, "routers")) if (strcmp(text_of(router, "key", ""), key) == 0) found
        = flag_of(router, "in_force");
    cJSON_Delete(status);
    byway_text_free(text);
    return found;
}

static int two_applications(struct world *w)
{
    cJSON *rows = cJSON_Parse("[\"dubbo://10.0.0.1:1/S?remote.application=app1\","
                              "\"dubbo://10.0.0.2:1/S?remote.application=app2\"]");
    int good = world_open(w, BYWAY_DIALECT_DUBBO_3, "consumer://10.1.1.1/S", rows, NULL, NULL);
    cJSON_Delete(rows);
    w->rows = NULL;
    return good;
}

static enum outcome mesh_lifecycle(const cJSON *one)
{
    struct world w;
    enum outcome outcome = PASS;
    const cJSON *step;
    const char *text = text_of(one, "rule", ""), *end = strstr(text, "\n---");
    static const char *const names[] = { "app1", "app2" };
    int i;
    if (!two_applications(&w)) {
        world_close(&w);
        return fails("%s", w.why);
    }
    cJSON_ArrayForEach(step, get(one, "expect"))
    {
        cJSON *with = cJSON_CreateArray();
        for (i = 0; i < 2; i++) {
            const char *key = keepf(&w, "%s.MESHAPPRULE", names[i]);
            const char *receives = text_of(step, keepf(&w, "%s receives", names[i]), NULL);
            if (receives != NULL && strcmp(receives, "DestinationRule only") == 0)
                byway_engine_set_rule(w.engine, key, BYWAY_NUL, text, (size_t)(end - text), NULL);
            else if (receives != NULL)
                byway_engine_set_rule(w.engine, key, BYWAY_NUL, text, BYWAY_NUL, NULL);
            if (strcmp(text_of(step, "clear", ""), names[i]) == 0)
                byway_engine_remove_rule(w.engine, key, BYWAY_NUL, NULL);
            if (in_force(&w, key))
                cJSON_AddItemToArray(with, cJSON_CreateString(names[i]));
        }
        if (outcome == PASS)
            outcome = same_json(with, get(step, "apps_with_rules"), "applications with rules");
        else
            cJSON_Delete(with);
    }
    world_close(&w);
    return outcome;
}

static int mentions(const char *text, const char *words)
{
    int count = 0;
    for (; (text = strstr(text, words)) != NULL; text++)
        count++;
    return count;
}

/* How many documents of a text belong to an extension, by what is said about them; the others are the standard ones,
 * unless they are left out. */
static int documents_of(const char *text, const char *group)
{
    byway_text *said = NULL;
    byway_str lines = { "", 0 };
    char words[96] = "belongs to the extension ";
    int count;
    byway_rule_check(BYWAY_DIALECT_DUBBO_3, BYWAY_RULE_MESH, text, BYWAY_NUL, NULL, BYWAY_FORMAT_TEXT, &said, NULL);
    byway_text_str(said, &lines);
    if (strcmp(group, "standard") == 0) {
        count = text[0] == '\0' ? 0 : 1 + mentions(text, "\n---");
        count -= mentions(lines.data, words) + mentions(lines.data, "is left out");
    } else {
        snprintf(words, sizeof words, "belongs to the extension '%s'", group);
        count = mentions(lines.data, words);
    }
    byway_text_free(said);
    return count;
}

static enum outcome mesh_listener(const cJSON *one)
{
    const cJSON *expect = get(one, "expect"), *step = cJSON_IsArray(expect) ? expect->child : expect, *item;
    enum outcome outcome = PASS;
    int known = 0;
    for (; step != NULL; step = cJSON_IsArray(expect) ? step->next : NULL) {
        const char *text = cJSON_IsString(get(step, "receive")) && text_of(step, "receive", "")[0] == '\0'
                               ? ""
                               : text_of(one, "rule", "");
        cJSON_ArrayForEach(item, step)
        {
            const char *dot = strchr(item->string, '.');
            char group[64];
            int got;
            if (dot == NULL)
                continue;
            snprintf(group, sizeof group, "%.*s", (int)(dot - item->string), item->string);
            got = documents_of(text, group);
            if (strcmp(dot, ".onRuleChange") == 0 && cJSON_IsObject(item)) {
                known = 1;
                if (got != (int)number_of(item, "docs", -1))
                    outcome = fails("%s: %d documents", item->string, got);
            } else if (strcmp(dot, ".clearRule") == 0) {
                known = 1;
                if (got != 0)
                    outcome = fails("%s: %d documents", item->string, got);
            }
        }
    }
    return known ? outcome : skips("counts upstream's listeners");
}

/* --- reports ---------------------------------------------------------------------------------------------------------- */

static enum outcome match_reported(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *labels, *label;
    cJSON *got = cJSON_CreateArray();
    cJSON_ArrayForEach(labels, get(input, "consumer_labels"))
    {
        struct world w;
        char consumer[256] = "consumer://10.1.1.1/S?a=b";
        cJSON_ArrayForEach(label, labels)
            snprintf(consumer + strlen(consumer), sizeof consumer - strlen(consumer), "&%s=%s", label->string,
                     label->valuestring);
        if (!matching(&w, BYWAY_DIALECT_BYWAY, consumer, cJSON_Duplicate(get(input, "match"), 1), NULL)) {
            world_close(&w);
            cJSON_Delete(got);
            return fails("refused: %s", w.why);
        }
        cJSON_AddItemToArray(got, cJSON_CreateBool(fitted(&w) == 1));
        world_close(&w);
    }
    return same_json(got, get(get(one, "expect"), "matched"), "matched");
}

static enum outcome subset_reported(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *endpoint, *label;
    struct world w;
    enum outcome outcome;
    cJSON *rows = cJSON_CreateArray(), *subset = cJSON_CreateObject(), *subsets = cJSON_CreateArray();
    int number = 0;
    cJSON_ArrayForEach(endpoint, get(input, "endpoints"))
    {
        char url[256];
        snprintf(url, sizeof url, "dubbo://10.0.0.%d:1/S?remote.application=app1", ++number);
        cJSON_ArrayForEach(label, endpoint)
            snprintf(url + strlen(url), sizeof url - strlen(url), "&%s=%s", label->string, label->valuestring);
        cJSON_AddItemToArray(rows, cJSON_CreateString(url));
    }
    cJSON_AddStringToObject(subset, "name", "wanted");
    cJSON_AddItemToObject(subset, "labels", cJSON_Duplicate(get(input, "request"), 1));
    cJSON_AddItemToArray(subsets, subset);
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, "consumer://10.1.1.1/S", rows, NULL, NULL))
        outcome = fails("%s", w.why);
    else if (byway_engine_set_rule(w.engine, KEY, BYWAY_NUL, rule_of(&w, subsets, route_to("wanted", NULL)), BYWAY_NUL, NULL))
        outcome = fails("the rule is refused");
    else {
        cJSON *kept;
        byway_invocation_set_method(w.call, "m", 1);
        kept = world_rows(&w);
        outcome = kept == NULL ? fails("%s", w.why) : same_json(kept, get(get(one, "expect"), "kept"), "kept");
    }
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

static enum outcome lint_reported(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *name, *problem;
    struct world w;
    cJSON *subsets = cJSON_CreateArray(), *detail = cJSON_CreateObject(), *routes = cJSON_AddArrayToObject(detail, "route");
    cJSON *said, *got = cJSON_CreateArray();
    byway_text *text = NULL;
    byway_str lines = { "", 0 };
    enum outcome outcome;
    memset(&w, 0, sizeof w);
    cJSON_ArrayForEach(name, get(input, "defined_subsets"))
    {
        cJSON *subset = cJSON_CreateObject();
        cJSON_AddStringToObject(subset, "name", name->valuestring);
        cJSON_AddItemToArray(subsets, subset);
    }
    cJSON_ArrayForEach(name, get(input, "route_subsets"))
    {
        cJSON *route = cJSON_CreateObject();
        cJSON_AddStringToObject(cJSON_AddObjectToObject(route, "destination"), "subset", name->valuestring);
        cJSON_AddItemToArray(routes, route);
    }
    byway_rule_check(BYWAY_DIALECT_BYWAY, BYWAY_RULE_MESH, rule_of(&w, subsets, detail), BYWAY_NUL, NULL, BYWAY_FORMAT_JSON,
                     &text, NULL);
    byway_text_str(text, &lines);
    said = cJSON_Parse(lines.data);
    cJSON_ArrayForEach(problem, get(said, "problems"))
    {
        char subset[128];
        if (sscanf(text_of(problem, "message", ""), "unknown subset '%100[^']'", subset) == 1)
            cJSON_AddItemToArray(got, cJSON_CreateString(keepf(&w, "unknown_subset:%s", subset)));
    }
    outcome = same_json(got, get(get(one, "expect"), "warnings"), "warnings");
    cJSON_Delete(said);
    byway_text_free(text);
    world_close(&w);
    return outcome;
}

const struct kind mesh_kinds[] = {
    { "dubbo_chain", "double_match", double_match },
    { "dubbo_chain", "bool_match", bool_match },
    { "dubbo_chain", "list_bool_match", list_bool_match },
    { "dubbo_chain", "list_double_match", list_double_match },
    { "dubbo_chain", "list_string_match", list_string_match },
    { "dubbo_chain", "method_match", method_match },
    { "dubbo_chain", "attachment_match", attachment_match },
    { "dubbo_chain", "match_request", match_request },
    { "dubbo_chain", "mesh", mesh },
    { "dubbo_chain", "mesh-labels", mesh_labels },
    { "dubbo_chain", "mesh-cache", mesh_cache },
    { "dubbo_chain", "mesh-lifecycle", mesh_lifecycle },
    { "dubbo_chain", "mesh-listener", mesh_listener },
    { "bugs", "mesh_match", match_reported },
    { "bugs", "subset", subset_reported },
    { "bugs", "mesh_lint", lint_reported },
    { NULL, NULL, NULL },
};
