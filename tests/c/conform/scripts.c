/* Scripts from URLs, from files and by rule. A script that fails leaves the list, and the status of the chain tells the
 * error: that is what byway has in place of upstream's exceptions. */
#include "chains.h"
#include <sys/stat.h>
#include <unistd.h>

static const char *encoded(struct world *w, const char *text)
{
    char *buffer = malloc(strlen(text) * 3 + 1);
    const char *kept;
    size_t at = 0;
    if (buffer == NULL)
        abort();
    for (; *text != '\0'; text++)
        at += (size_t)sprintf(buffer + at, "%%%02X", (unsigned char)*text);
    buffer[at] = '\0';
    kept = keep(w, buffer);
    free(buffer);
    return kept;
}

/* A case's providers, as URLs; cases without get one each. */
static cJSON *providers(const cJSON *one)
{
    cJSON *rows = cJSON_CreateArray();
    const cJSON *row;
    char url[128];
    int number = 0;
    cJSON_ArrayForEach(row, get(one, "invokers"))
    {
        cJSON *made = cJSON_CreateObject();
        snprintf(url, sizeof url, "dubbo://10.0.0.%d:20880/com.foo.BarService", number++);
        cJSON_AddStringToObject(made, "id", cJSON_IsString(row) ? row->valuestring : text_of(row, "id", ""));
        cJSON_AddStringToObject(made, "url", text_of(row, "url", url));
        cJSON_AddItemToArray(rows, made);
    }
    return rows;
}

static int script_open(struct world *w, const cJSON *one, int dialect, cJSON *rows)
{
    const char *consumer = text_of(one, "consumer_url", "");
    const cJSON *call = get(one, "invocation"), *item;
    if (strncmp(consumer, "consumer://", 11) != 0)
        /* Who is available is the script's to say, not the pick's. */
        consumer = "consumer://10.1.1.1/com.foo.BarService?cluster.availablecheck=false";
    if (!world_open(w, dialect, consumer, rows, "application=demo-provider", "application="))
        return 0;
    if (!world_call(w, call))
        byway_invocation_set_method(w->call, "m", 1);
    /* Values that are no text, as their JSON. */
    cJSON_ArrayForEach(item, get(call, "attachments")) if (!cJSON_IsString(item))
    {
        char *printed = cJSON_PrintUnformatted(item);
        byway_invocation_set_attachment(w->call, item->string, BYWAY_NUL, printed, BYWAY_NUL);
        cJSON_free(printed);
    }
    return 1;
}

/* The error that a script failed with while routing, from the chain's status; empty when it did not. */
static const char *failure(struct world *w, char *status_name, size_t len)
{
    byway_text *text = NULL;
    byway_str json = { "", 0 };
    cJSON *status;
    const cJSON *rule;
    const char *message = "";
    byway_chain_status(w->chain, &text, NULL);
    byway_text_str(text, &json);
    status = cJSON_Parse(json.data);
    cJSON_ArrayForEach(rule, get(status, "static")) if (get(rule, "failed") != NULL)
    {
        message = keep(w, text_of(get(rule, "failed"), "message", ""));
        snprintf(status_name, len, "%s", text_of(get(rule, "failed"), "status", ""));
    }
    cJSON_Delete(status);
    byway_text_free(text);
    return message;
}

/* Scripts that a case only describes. */
static const char *described(const char *rule)
{
    if (strcmp(rule, "<Invoker[] holding invokers.get(2)>") == 0)
        return "[invokers.get(2)]";
    if (strcmp(rule, "<script that calls invokers[i].Invoke(context, invocation)>") == 0)
        return "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].Invoke(context, invocation); return "
               "invokers; })()";
    if (strcmp(rule, "<script that calls GetURL(' Err Here ')>") == 0)
        return "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].GetURL(' Err Here '); return invokers; "
               "})()";
    if (strcmp(rule, "<calls every exposed accessor of invoker url and invocation>") == 0)
        return "(function () { var u = invokers[0].GetURL(); u.GetParam('a', 'b'); u.GetParamBool('a', true); "
               "u.GetParamInt('a', 1); u.GetMethodParam('m', 'a', 'b'); u.GetNonDefaultParam('a'); u.Service(); "
               "u.ServiceKey(); u.Group(); u.Version(); u.Address(); u.Key(); u.String(); invokers[0].IsAvailable(); "
               "invocation.MethodName(); invocation.ActualMethodName(); invocation.Arguments(); "
               "invocation.ParameterValues(); invocation.ParameterTypeNames(); invocation.Attachments(); "
               "invocation.GetAttachment('a'); invocation.GetAttachmentWithDefaultValue('a', 'b'); "
               "var v = invokers[0].getUrl(); v.getParameters().size(); v.getServiceKey(); "
               "v.getMethodParameter('m', 'a', 'b'); invocation.getAttachments().size(); context.getAttachment('a'); "
               "context.getUrl().getHost(); return invokers; })()";
    return rule;
}

static int everybody(const struct world *w, const cJSON *rows)
{
    return cJSON_GetArraySize(rows) == w->count;
}

/* The rows that may serve the call. Who is available the caller says at a pick: there, the rows that picks give. */
static cJSON *left(struct world *w, const cJSON *one)
{
    uint64_t able = 0, picked = 0;
    byway_pick_options options = BYWAY_PICK_OPTIONS_INIT;
    const cJSON *row;
    cJSON *rows;
    int i, count = cJSON_GetArraySize(get(one, "invokers"));
    i = 0;
    cJSON_ArrayForEach(row, get(one, "invokers")) able |= (uint64_t)!cJSON_IsFalse(get(row, "available")) << i++;
    if (able == ((uint64_t)1 << count) - 1)
        return world_rows(w);
    options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    options.available = &able;
    options.available_words = 1;
    options.available_list = byway_invokers_generation(w->list);
    for (i = 0; i < 2 * count; i++) {
        byway_picked one_of_them;
        byway_status status = byway_chain_pick(w->chain, w->call, &options, &one_of_them, NULL);
        if (status == BYWAY_E_NO_INVOKER)
            break;
        if (status != BYWAY_OK)
            return NULL;
        picked |= (uint64_t)1 << one_of_them.row;
    }
    rows = cJSON_CreateArray();
    for (i = 0; i < count; i++)
        if (picked >> i & 1)
            cJSON_AddItemToArray(rows, cJSON_CreateNumber(i));
    return rows;
}

/* Compares what a static script did with what upstream did. `refused`: why the URL was not taken. */
static enum outcome compare(struct world *w, const cJSON *one, byway_status refused, byway_error *err)
{
    const cJSON *expect = get(one, "expect"), *error = get(expect, "error");
    cJSON *rows = left(w, one), *ids;
    char status[64] = "";
    byway_str message = { "", 0 };
    const char *told;
    enum outcome outcome;
    if (rows == NULL)
        return fails("%s", w->why);
    byway_error_message(err, &message);
    told = refused ? message.data : failure(w, status, sizeof status);
    if (cJSON_IsString(error)) {
        /* The part in front of the colon is Java's class of the error. */
        const char *want = error->valuestring, *colon = strstr(want, ": ");
        int fits;
        if (strncmp(want, "ClassCastException", 18) == 0)
            fits = strstr(told, "expected a list") != NULL;
        else if (strncmp(want, "interrupted", 11) == 0)
            fits = strcmp(status, "BYWAY_E_TIMEOUT") == 0;
        else
            fits = colon != NULL && strstr(told, colon + 2) != NULL;
        outcome = fits && everybody(w, rows) ? PASS : fails("told %s %s, want %s", status, told, want);
        cJSON_Delete(rows);
        return outcome;
    }
    if (cJSON_IsBool(error)) {
        int failed = refused || *told != '\0';
        outcome = failed == cJSON_IsTrue(error) && everybody(w, rows) ? PASS : fails("told %s", told);
        cJSON_Delete(rows);
        return outcome;
    }
    ids = ids_of(w->rows, rows);
    cJSON_Delete(rows);
    return same_json(ids, expect, *told != '\0' ? told : "ids");
}

/* What is in force now, with `BYWAY_E_TIMEOUT` of the script where upstream's took too long with nobody to route. */
static enum outcome with_url(const cJSON *one, const char *url, cJSON *rows)
{
    struct world w;
    byway_error *err = NULL;
    enum outcome outcome;
    if (!script_open(&w, one, BYWAY_DIALECT_BYWAY, rows)) {
        outcome = fails("%s", w.why);
    } else {
        byway_str text;
        byway_status status;
        text.data = url;
        text.len = BYWAY_NUL;
        status = byway_chain_set_rule_urls(w.chain, &text, 1, &err);
        outcome = compare(&w, one, status, err);
    }
    byway_error_free(err);
    world_close(&w);
    return outcome;
}

static enum outcome script(const cJSON *one)
{
    struct world scratch;
    cJSON *rows;
    const char *type = text_of(one, "script_type", NULL), *rule = described(text_of(one, "rule", "")), *url;
    enum outcome outcome;
    memset(&scratch, 0, sizeof scratch);
    rows = providers(one);
    /* Nobody in the list, nothing to route: a chain would not ask the script. */
    if (cJSON_GetArraySize(rows) == 0)
        cJSON_AddItemToArray(rows, cJSON_Parse("{\"id\": \"i1\", \"url\": \"dubbo://10.0.0.1:1/S\"}"));
    url = keepf(&scratch, "script://0.0.0.0/S?%s%s&rule=%s", type != NULL ? "type=" : "a=b", type != NULL ? type : "",
                encoded(&scratch, rule));
    outcome = with_url(one, url, rows);
    cJSON_Delete(rows);
    world_close(&scratch);
    return outcome;
}

static int write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return 0;
    fputs(text, file);
    return fclose(file) == 0;
}

static enum outcome file(const cJSON *one)
{
    struct world scratch;
    const char *written = text_of(one, "consumer_url", ""), *query = strchr(written, '?');
    const char *rule = text_of(one, "rule", NULL), *url = written;
    const cJSON *expect = get(one, "expect");
    char folder[] = "/tmp/byway-conform-XXXXXX", path[256] = "";
    cJSON *rows = providers(one);
    enum outcome outcome;
    memset(&scratch, 0, sizeof scratch);
    if (rule != NULL) {
        size_t len = query != NULL ? (size_t)(query - written) : strlen(written);
        const char *name = written + len;
        while (name > written && name[-1] != '/')
            name--;
        if (mkdtemp(folder) == NULL)
            abort();
        snprintf(path, sizeof path, "%s/%.*s", folder, (int)(written + len - name), name);
        if (!write_file(path, strcmp(rule, "<script text>") == 0 ? "[invokers.get(0)]" : rule))
            abort();
        url = keepf(&scratch, "file://%s%s", path, query != NULL ? query : "");
    }
    if (cJSON_GetArraySize(rows) == 0) {
        cJSON_AddItemToArray(rows, cJSON_Parse("{\"id\": \"i1\", \"url\": \"dubbo://10.0.0.1:1/S\"}"));
        cJSON_AddItemToArray(rows, cJSON_Parse("{\"id\": \"i2\", \"url\": \"dubbo://10.0.0.2:1/S\"}"));
    }
    if (cJSON_IsArray(expect)) {
        outcome = with_url(one, url, rows);
    } else {
        /* What a file is read as shows in what it does. */
        struct world w;
        byway_error *err = NULL;
        byway_str text, message = { "", 0 };
        byway_status status;
        cJSON *kept;
        if (!script_open(&w, one, BYWAY_DIALECT_BYWAY, rows))
            abort();
        text.data = url;
        text.len = BYWAY_NUL;
        status = byway_chain_set_rule_urls(w.chain, &text, 1, &err);
        byway_error_message(err, &message);
        kept = world_rows(&w);
        if (cJSON_IsString(get(expect, "error")))
            outcome = status < 0 && strstr(message.data, "No such file") != NULL ? PASS : fails("told %s", message.data);
        else if (status)
            outcome = fails("refused: %s", message.data);
        else
            outcome = cJSON_GetArraySize(kept) == (strcmp(rule, "<script text>") == 0 ? 1 : w.count)
                          ? PASS
                          : fails("%d stay", cJSON_GetArraySize(kept));
        cJSON_Delete(kept);
        byway_error_free(err);
        world_close(&w);
    }
    if (path[0] != '\0') {
        remove(path);
        rmdir(folder);
    }
    cJSON_Delete(rows);
    world_close(&scratch);
    return outcome;
}

/* --- by rule ---------------------------------------------------------------------------------------------------------- */

static const char good[] = "configVersion: v3.0\nkey: demo-provider\ntype: javascript\nenabled: true\n"
                           "script: \"(function () { return [invokers.get(1)]; })()\"\n";
#define KEY "demo-provider.script-router"

static enum outcome script_app(const cJSON *one)
{
    struct world w;
    cJSON *rows = providers(one);
    const cJSON *expect = get(one, "expect"), *first = get(rows->child, "url");
    enum outcome outcome;
    const char *at, *key = KEY;
    int dialect = dialect_of(one);
    /* dubbo-go's own dialect has no such router; its rules are read by the default one. */
    if (dialect == BYWAY_DIALECT_DUBBO_GO)
        dialect = BYWAY_DIALECT_BYWAY;
    if (!script_open(&w, one, dialect, rows)) {
        outcome = fails("%s", w.why);
    } else {
        cJSON *kept;
        at = strstr(first->valuestring, "application=");
        if (at != NULL)
            key = keepf(&w, "%.*s.script-router", (int)strcspn(at + 12, "&"), at + 12);
        byway_engine_set_rule(w.engine, key, BYWAY_NUL, text_of(one, "rule", ""), BYWAY_NUL, NULL);
        kept = world_rows(&w);
        if (kept == NULL)
            outcome = fails("%s", w.why);
        else if (cJSON_IsNumber(get(expect, "count")))
            outcome = cJSON_GetArraySize(kept) == get(expect, "count")->valueint ? PASS : fails("another count");
        else
            outcome = same_json(ids_of(w.rows, kept), expect, "ids");
        cJSON_Delete(kept);
    }
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

static const char *replaced(struct world *w, const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    return keepf(w, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

static enum outcome lifecycle(const cJSON *one)
{
    struct world w;
    const cJSON *steps = get(one, "expect"), *step;
    cJSON *rows = providers(one);
    enum outcome outcome = PASS;
    if (!cJSON_IsArray(steps)) {
        cJSON_Delete(rows);
        rows = cJSON_Parse("[{\"id\": \"i1\", \"url\": \"dubbo://10.0.0.1:1/S\"}, {\"id\": \"i2\", \"url\": "
                           "\"dubbo://10.0.0.2:1/S\"}]");
    }
    if (!script_open(&w, one, BYWAY_DIALECT_DUBBO_3, rows)) {
        outcome = fails("%s", w.why);
    } else if (!cJSON_IsArray(steps)) {
        /* A removal has no content. */
        byway_engine_set_rule(w.engine, KEY, BYWAY_NUL, good, BYWAY_NUL, NULL);
        if (byway_engine_remove_rule(w.engine, KEY, BYWAY_NUL, NULL) != BYWAY_OK)
            outcome = fails("not removed");
        cJSON *kept = world_rows(&w);
        if (!everybody(&w, kept))
            outcome = fails("still filtered");
        cJSON_Delete(kept);
    } else {
        cJSON_ArrayForEach(step, steps)
        {
            const char *event = text_of(step, "event", ""), *next = NULL;
            const cJSON *want = get(step, cJSON_IsArray(get(step, "sane_route")) ? "sane_route" : "route");
            cJSON *kept;
            if (strcmp(event, "ADDED") == 0 || strcmp(event, "MODIFIED good") == 0)
                next = good;
            else if (strcmp(event, "MODIFIED enabled: false") == 0)
                next = replaced(&w, good, "enabled: true", "enabled: false");
            else if (strcmp(event, "MODIFIED type: nosuch, enabled: true") == 0) {
                /* Upstream keeps its compiled script for this step. */
                byway_engine_set_rule(w.engine, KEY, BYWAY_NUL, good, BYWAY_NUL, NULL);
                next = replaced(&w, good, "type: javascript", "type: nosuch");
            } else if (strcmp(event, "MODIFIED without script") == 0)
                next = "configVersion: v3.0\nkey: demo-provider\ntype: javascript\n";
            else if (strcmp(event, "MODIFIED bad yaml") == 0)
                next = "script: [";
            else if (strcmp(event, "DELETED") == 0)
                byway_engine_remove_rule(w.engine, KEY, BYWAY_NUL, NULL);
            else if (strcmp(event, "no rule") != 0)
                outcome = fails("unknown event %s", event);
            if (next != NULL)
                byway_engine_set_rule(w.engine, KEY, BYWAY_NUL, next, BYWAY_NUL, NULL);
            kept = world_rows(&w);
            if (outcome == PASS)
                outcome = same_json(ids_of(w.rows, kept), want, event);
            cJSON_Delete(kept);
        }
    }
    world_close(&w);
    cJSON_Delete(rows);
    return outcome;
}

/* --- reports ---------------------------------------------------------------------------------------------------------- */

static cJSON *kept_by(const cJSON *input, const char *text)
{
    struct world w;
    cJSON *rows = providers(input), *kept = NULL, *ids = NULL;
    if (script_open(&w, input, BYWAY_DIALECT_BYWAY, rows)) {
        byway_str url;
        url.data = keepf(&w, "script://0.0.0.0/S?rule=%s", encoded(&w, text));
        url.len = BYWAY_NUL;
        byway_chain_set_rule_urls(w.chain, &url, 1, NULL);
        kept = world_rows(&w);
        ids = ids_of(w.rows, kept);
    }
    cJSON_Delete(kept);
    world_close(&w);
    cJSON_Delete(rows);
    return ids;
}

static enum outcome reported(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *text;
    cJSON *got;
    if (cJSON_IsString(get(input, "script"))) {
        got = kept_by(input, text_of(input, "script", ""));
    } else {
        got = cJSON_CreateArray();
        cJSON_ArrayForEach(text, get(input, "scripts")) cJSON_AddItemToArray(got, kept_by(input, text->valuestring));
    }
    return same_json(got, get(get(one, "expect"), "kept"), "kept");
}

const struct kind script_kinds[] = {
    { "dubbo_chain", "script", script },
    { "dubbo_chain", "file", file },
    { "dubbo_chain", "script-app", script_app },
    { "dubbo_chain", "script-app-lifecycle", lifecycle },
    { "bugs", "script_route", reported },
    { "bugs", "script_route_list", reported },
    { NULL, NULL, NULL },
};
