#include "chains.h"

uint64_t world_now_ns = 3600000000000u;

uint64_t (*world_draws)(void *data);
int64_t (*world_wall)(void *data);

static uint64_t now(void *data)
{
    (void)data;
    return world_now_ns;
}

const char *keep(struct world *w, const char *text)
{
    size_t len = strlen(text) + 1;
    char *copy = malloc(len);
    if (copy == NULL || w->text_count == (int)(sizeof w->texts / sizeof w->texts[0]))
        abort();
    memcpy(copy, text, len);
    w->texts[w->text_count++] = copy;
    return copy;
}

const char *keepf(struct world *w, const char *format, ...)
{
    static char buffer[65536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return keep(w, buffer);
}

static int refused(struct world *w, const char *what, byway_status status, byway_error *err)
{
    byway_str message;
    byway_error_message(err, &message);
    snprintf(w->why, sizeof w->why, "%s: %s: %s", what, byway_status_name(status), message.data);
    byway_error_free(err);
    return 0;
}

int world_open(struct world *w, int dialect, const char *consumer, const cJSON *rows, const char *extra,
               const char *unless)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_error *err = NULL;
    byway_str urls[1024];
    uint64_t tags[1024];
    byway_status status;
    const cJSON *row;
    int count = 0;
    memset(w, 0, sizeof *w);
    options.seed = 7;
    options.dialect = dialect;
    options.monotonic_ns = now;
    options.random = world_draws;
    options.wall_ms = world_wall;
    status = byway_engine_new(&options, &w->engine, &err);
    if (status)
        return refused(w, "engine", status, err);
    status = byway_chain_new(w->engine, consumer, BYWAY_NUL, NULL, &w->chain, &err);
    if (status)
        return refused(w, "chain", status, err);
    cJSON_ArrayForEach(row, rows)
    {
        const char *url = cJSON_IsString(row) ? row->valuestring : text_of(row, "url", "");
        if (count == 1024)
            abort();
        if (extra != NULL && strstr(url, unless) == NULL)
            url = keepf(w, "%s%c%s", url, strchr(url, '?') == NULL ? '?' : '&', extra);
        urls[count].data = url;
        urls[count].len = BYWAY_NUL;
        tags[count] = (uint64_t)count + 1;
        count++;
    }
    status = byway_invokers_new(w->engine, urls, tags, (size_t)count, 0, NULL, &w->list, &err);
    if (status)
        return refused(w, "providers", status, err);
    status = byway_chain_set_invokers(w->chain, w->list, NULL, &err);
    if (status)
        return refused(w, "set_invokers", status, err);
    w->rows = rows;
    w->count = count;
    return byway_invocation_new(&w->call, NULL) == BYWAY_OK;
}

void world_close(struct world *w)
{
    byway_invocation_free(w->call);
    byway_chain_release(w->chain);
    byway_invokers_release(w->list);
    byway_engine_release(w->engine);
    while (w->text_count > 0)
        free(w->texts[--w->text_count]);
}

static byway_str argument(struct world *w, const cJSON *value)
{
    byway_str text = { NULL, BYWAY_NUL };
    if (cJSON_IsString(value)) {
        text.data = value->valuestring;
    } else if (!cJSON_IsNull(value)) {
        char *printed = cJSON_PrintUnformatted(value);
        text.data = keep(w, printed);
        cJSON_free(printed);
    }
    return text;
}

int world_call(struct world *w, const cJSON *invocation)
{
    const cJSON *method = get(invocation, "method"), *item;
    byway_str texts[64], types[64];
    size_t count = 0, i;
    byway_invocation_reset(w->call);
    if (cJSON_IsString(method))
        byway_invocation_set_method(w->call, method->valuestring, BYWAY_NUL);
    cJSON_ArrayForEach(item, get(invocation, "arguments")) if (count < 64) texts[count++] = argument(w, item);
    byway_invocation_set_arguments(w->call, texts, count);
    /* A first argument that is no text names no method of a generic call. */
    item = cJSON_GetArrayItem(get(invocation, "arguments"), 0);
    if (item != NULL && !cJSON_IsString(item)) {
        for (i = 0; i < count; i++) {
            types[i].data = "java.lang.Object";
            types[i].len = BYWAY_NUL;
        }
        byway_invocation_set_types(w->call, types, count);
    }
    cJSON_ArrayForEach(item, get(invocation, "attachments")) if (cJSON_IsString(item))
        byway_invocation_set_attachment(w->call, item->string, BYWAY_NUL, item->valuestring, BYWAY_NUL);
    return cJSON_IsString(method);
}

cJSON *world_rows(struct world *w)
{
    uint64_t tags[1024];
    size_t total = 0, i;
    byway_error *err = NULL;
    cJSON *rows;
    byway_status status = byway_chain_route_tags(w->chain, w->call, tags, 1024, &total, NULL, &err);
    if (status) {
        refused(w, "route", status, err);
        return NULL;
    }
    rows = cJSON_CreateArray();
    for (i = 0; i < total; i++)
        cJSON_AddItemToArray(rows, cJSON_CreateNumber((double)tags[i] - 1));
    return rows;
}

cJSON *ids_of(const cJSON *invokers, const cJSON *rows)
{
    cJSON *ids = cJSON_CreateArray();
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *one = cJSON_GetArrayItem(invokers, row->valueint);
        cJSON_AddItemToArray(ids, cJSON_Duplicate(get(one, "id"), 1));
    }
    return ids;
}

int dialect_named(const char *name)
{
    if (strcmp(name, "byway") == 0)
        return BYWAY_DIALECT_BYWAY;
    if (strncmp(name, "dubbo-3", 7) == 0)
        return BYWAY_DIALECT_DUBBO_3;
    if (strcmp(name, "dubbo-2.7") == 0)
        return BYWAY_DIALECT_DUBBO_2_7;
    return strcmp(name, "dubbo-go") == 0 ? BYWAY_DIALECT_DUBBO_GO : -1;
}

int dialect_of(const cJSON *one)
{
    const char *source = text_of(one, "source", "");
    if (strncmp(source, "dubbo-go", 8) == 0)
        return BYWAY_DIALECT_DUBBO_GO;
    return strstr(source, "2.7") != NULL ? BYWAY_DIALECT_DUBBO_2_7 : BYWAY_DIALECT_DUBBO_3;
}

const cJSON *sane_of(const cJSON *one)
{
    static const char *const names[] = { "expect_byway", "sane_expect", "fixed_expect" };
    size_t i;
    for (i = 0; i < 3; i++) {
        const cJSON *value = get(one, names[i]);
        if (value != NULL && !cJSON_IsNull(value))
            return cJSON_IsString(value) ? NULL : value;
    }
    return NULL;
}
