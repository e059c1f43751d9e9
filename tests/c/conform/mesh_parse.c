/* dubbo_chain.jsonl mesh-parse: what a text is read as, seen in where its labels lead. */
#include "chains.h"

static const char *const SUBSETS[][2] = {
    {"isolation", "env-sign=xxx&tag1=hello&at=isolation"},
    {"testing-trunk", "env-sign=yyy&at=testing-trunk"},
    {"testing", "env-sign=zzz&at=testing"},
};

enum { COUNT = 3 };

/* The other half of a text that has no subsets. */
static const char *with_subsets(struct world *w, const char *text)
{
    const char *head = "kind: DestinationRule\nmetadata: {name: demo-route}\nspec:\n  host: demo\n  subsets:\n";
    int i;
    for (i = 0; i < COUNT; i++)
        head = keepf(w, "%s  - {name: %s, labels: {at: %s}}\n", head, SUBSETS[i][0], SUBSETS[i][0]);
    return keepf(w, "%s---\n%s", head, text);
}

/* To which subset a consumer with this label is led. */
static enum outcome leads(const char *text, const char *label, const char *subset)
{
    struct world w;
    cJSON *rows = cJSON_CreateArray(), *left;
    char consumer[256];
    enum outcome outcome;
    const char *got;
    int i;
    for (i = 0; i < COUNT; i++) {
        char url[256];
        snprintf(url, sizeof url, "dubbo://10.0.0.%d/ccc?remote.application=demo&%s", i + 1, SUBSETS[i][1]);
        cJSON_AddItemToArray(rows, cJSON_CreateString(url));
    }
    snprintf(consumer, sizeof consumer, "consumer://10.0.0.1/ccc?application=c&trafficLabel=%s", label);
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, consumer, rows, NULL, NULL) ||
        byway_engine_set_rule(w.engine, "demo.MESHAPPRULE", BYWAY_NUL, text, BYWAY_NUL, NULL) != BYWAY_OK)
        abort();
    byway_invocation_set_method(w.call, "m", 1);
    left = world_rows(&w);
    got = cJSON_GetArraySize(left) == 1 ? SUBSETS[left->child->valueint][0] : "none or several";
    outcome = strcmp(got, subset) == 0 ? PASS : fails("%s leads to %s, want %s", label, got, subset);
    cJSON_Delete(left);
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

static enum outcome mesh_parse(const cJSON *one)
{
    const char *text = text_of(one, "rule", ""), *at = text;
    const cJSON *expect = get(one, "expect"), *route, *kind;
    byway_text *found = NULL;
    byway_str json;
    struct world scratch;
    enum outcome outcome = PASS;
    memset(&scratch, 0, sizeof scratch);
    if (byway_rule_check(BYWAY_DIALECT_DUBBO_3, BYWAY_RULE_MESH, text, BYWAY_NUL, NULL, BYWAY_FORMAT_JSON, &found, NULL))
        abort();
    byway_text_str(found, &json);
    if (strstr(json.data, "\"refused\":true") != NULL || strstr(json.data, "\"refused\": true") != NULL)
        outcome = fails("%s", json.data);
    byway_text_free(found);
    cJSON_ArrayForEach(kind, get(expect, "documents"))
    {
        /* In this order. */
        at = strstr(at, keepf(&scratch, "kind: %s", kind->valuestring));
        if (at == NULL)
            return fails("no %s", kind->valuestring);
    }
    if (get(expect, "documents") != NULL) {
        /* The rule of most cases here, whose labels have one way each. */
        if (outcome == PASS)
            outcome = leads(text, "xxx", "isolation");
        if (outcome == PASS)
            outcome = leads(text, "testing-trunk", "testing-trunk");
        if (outcome == PASS)
            outcome = leads(text, "of-nobody", "testing");
    }
    cJSON_ArrayForEach(route, get(expect, "routedetail"))
    {
        const cJSON *match = cJSON_GetArrayItem(get(route, "match"), 0);
        const cJSON *destination = get(cJSON_GetArrayItem(get(route, "route"), 0), "destination");
        if (outcome == PASS)
            outcome = leads(with_subsets(&scratch, text), text_of(get(match, "sourceLabels"), "trafficLabel", "of-nobody"),
                            text_of(destination, "subset", ""));
    }
    while (scratch.text_count > 0)
        free(scratch.texts[--scratch.text_count]);
    return outcome;
}

const struct kind mesh_parse_kinds[] = {{"dubbo_chain", "mesh-parse", mesh_parse}, {NULL, NULL, NULL}};
