/* dubbo_condition.jsonl glob, range and parse, seen through what a rule with the pattern or the text does. */
#include "rules.h"

/* As a rule's right side, which sees the consumer's URL, or else as its left side. */
enum outcome fits_as(const cJSON *one, int dialect, const cJSON *expect)
{
    const char *pattern = text_of(one, "pattern", ""), *value = text_of(one, "value", NULL);
    const char *consumer = text_of(one, "param_url", NULL);
    struct world w, scratch;
    int holds = 0, good;
    memset(&scratch, 0, sizeof scratch);
    if (pattern[0] == '\0' || value == NULL)
        return skips("a rule cannot say an empty pattern");
    if (value[0] == '\0')
        return skips("an empty parameter is none");
    if (pattern[0] == '$' && consumer == NULL)
        return skips("a reference always has a consumer");
    if (consumer != NULL || strcmp(text_of(one, "side", ""), "then") == 0) {
        cJSON *rows = cJSON_CreateArray(), *force = cJSON_Parse("{\"force\":true}"), *left = NULL;
        cJSON_AddItemToArray(rows, cJSON_CreateString(keepf(&scratch, "dubbo://1.1.1.1:1/S?x=%s", value)));
        good = open_for(&w, dialect, consumer, ALONE "condition", rows, NULL, NULL) &&
               set_static(&w, keepf(&w, "=> x=%s", pattern), force, NULL) == BYWAY_OK;
        byway_invocation_set_method(w.call, "m", 1);
        left = good ? world_rows(&w) : NULL;
        holds = cJSON_GetArraySize(left) == 1;
        cJSON_Delete(left);
        world_close(&w);
        cJSON_Delete(rows);
        cJSON_Delete(force);
    } else {
        cJSON *call = cJSON_Parse("{\"method\":\"m\"}");
        good = when_holds(keepf(&scratch, "x=%s =>", pattern), dialect,
                          keepf(&scratch, "consumer://1.1.1.1/S?x=%s", value), call, &holds);
        cJSON_Delete(call);
    }
    while (scratch.text_count > 0)
        free(scratch.texts[--scratch.text_count]);
    return good && holds == cJSON_IsTrue(expect) ? PASS : fails(good ? "fits: %d" : "the rule is refused", holds);
}

static cJSON *checked(const char *text, int dialect)
{
    byway_text *found = NULL;
    byway_str json;
    cJSON *read;
    if (byway_rule_check(dialect, BYWAY_RULE_CONDITION, text, BYWAY_NUL, NULL, BYWAY_FORMAT_JSON, &found, NULL) != BYWAY_OK)
        abort();
    byway_text_str(found, &json);
    read = cJSON_Parse(json.data);
    byway_text_free(found);
    return read;
}

/* Whether the router of the rule with this key has one in force; -1 without such a router. */
static int in_force(struct world *w, const char *key)
{
    byway_text *text = NULL;
    byway_str json;
    cJSON *status;
    const cJSON *router;
    int found = -1;
    if (byway_chain_status(w->chain, &text, NULL) != BYWAY_OK)
        abort();
    byway_text_str(text, &json);
    status = cJSON_Parse(json.data);
    byway_text_free(text);
    cJSON_ArrayForEach(router, get(status, "routers")) if (strcmp(text_of(router, "key", ""), key) == 0)
        found = flag_of(router, "in_force");
    cJSON_Delete(status);
    return found;
}

static int says(const cJSON *expect, const char *name)
{
    const cJSON *value = get(expect, name);
    return value == NULL || cJSON_IsTrue(value);
}

/* Refused with a place; or else in force where upstream's rule is valid and enabled, and strict where it is forced: of
 * that shows what a left side that holds leaves when nobody meets the right one. */
enum outcome parse_as(const cJSON *one, int dialect, const cJSON *expect)
{
    static const char consumer[] = "consumer://1.1.1.1/S?a=b&region=beijing&version=v1&tag=tag1";
    const char *text = text_of(one, "rule", ""), *key;
    cJSON *found = checked(text, dialect), *rows = cJSON_Parse("[\"dubbo://1.1.1.1:1/S\"]"), *left;
    const cJSON *problem, *first = cJSON_GetArrayItem(get(expect, "conditions"), 0);
    struct world w;
    enum outcome outcome = PASS;
    byway_status status;
    int want = says(expect, "valid") && says(expect, "enabled") && !cJSON_IsNull(get(expect, "rule")), got;
    if (!open_for(&w, dialect, consumer, NULL, rows, NULL, NULL))
        abort();
    key = key_of(&w, dialect, BYWAY_RULE_CONDITION, NULL, consumer);
    status = byway_engine_set_rule(w.engine, key, BYWAY_NUL, text, BYWAY_NUL, NULL);
    got = in_force(&w, key);
    byway_invocation_set_method(w.call, "m", 1);
    left = world_rows(&w);
    if ((status < 0) != flag_of(found, "refused"))
        outcome = fails("%s, and the check says otherwise", byway_status_name(status));
    else if (get(expect, "error") != NULL) {
        if (status >= 0)
            outcome = fails("an error was expected");
        cJSON_ArrayForEach(problem, get(found, "problems"))
            if (number_of(problem, "line", 0) < 1 || text_of(problem, "message", "")[0] == '\0')
                outcome = fails("a problem without a place");
    } else if (status < 0)
        outcome = fails("refused: %s", byway_status_name(status));
    else if (got != want)
        outcome = fails("in force: %d", got);
    else if (got && cJSON_IsString(first) && strcmp(first->valuestring, "a=b => c=d") == 0 &&
             cJSON_GetArraySize(left) != !flag_of(expect, "force"))
        outcome = fails("%d left", cJSON_GetArraySize(left));
    cJSON_Delete(left);
    world_close(&w);
    cJSON_Delete(rows);
    cJSON_Delete(found);
    return outcome;
}
