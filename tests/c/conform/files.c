/* Rules in files that change: each way to change a file is seen once, whole, and nothing else is. */
#include "chains.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "a.tag-router"
#define MARKER "S::.condition-router"

static const char old_text[] = "# the old rule\nkey: a\ntags: [{name: old, addresses: ['10.0.0.1:20880']}]\n";
static const char new_text[] = "# the new rule\nkey: a\ntags: [{name: gray, addresses: ['10.0.0.1:20880']}]\n";

struct watched {
    struct world w;
    char folder[64];
    byway_queue *queue;
    byway_listener *listener;
    byway_source *source;
    int rule, marker, errors;
};

static void hears(void *user_data, const byway_event *event)
{
    struct watched *t = user_data;
    t->errors += event->status < 0;
    t->rule += strcmp(event->subject.data, KEY) == 0;
    t->marker += strcmp(event->subject.data, MARKER) == 0;
}

/* Polls until a count has passed a number; 0 when it does not. */
static int until(struct watched *t, const int *count, int passed)
{
    size_t n;
    int rounds;
    for (rounds = 0; rounds < 600 && *count <= passed; rounds++)
        byway_queue_poll(t->queue, 100, NULL, 0, 0, &n, NULL);
    return *count > passed;
}

static const char *in_folder(struct watched *t, const char *name)
{
    return keepf(&t->w, "%s/%s", t->folder, name);
}

static int write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* At once, as editors do. */
static int put(struct watched *t, const char *name, const char *text)
{
    const char *new = in_folder(t, ".new");
    return write_to(new, text) && rename(new, in_folder(t, name)) == 0;
}

static int directory(struct watched *t, const char *name, const char *text)
{
    return mkdir(in_folder(t, name), 0755) == 0 && write_to(keepf(&t->w, "%s/%s/" KEY, t->folder, name), text);
}

static int link_to(struct watched *t, const char *target)
{
    return symlink(target, in_folder(t, "..tmp")) == 0 && rename(in_folder(t, "..tmp"), in_folder(t, "..data")) == 0;
}

static int revision(struct watched *t)
{
    byway_text *text = NULL;
    byway_str said = { "", 0 };
    cJSON *status;
    const cJSON *router;
    int found = -1;
    byway_chain_status(t->w.chain, &text, NULL);
    byway_text_str(text, &said);
    status = cJSON_Parse(said.data);
    cJSON_ArrayForEach(router, get(status, "routers")) if (strcmp(text_of(router, "key", ""), KEY) == 0) found
        = (int)number_of(router, "revision", -1);
    cJSON_Delete(status);
    byway_text_free(text);
    return found;
}

/* Whether calls with the new rule's tag get its provider. */
static int is_new(struct watched *t)
{
    cJSON *rows;
    int only_first;
    byway_invocation_set_method(t->w.call, "m", 1);
    byway_invocation_set_attachment(t->w.call, "dubbo.tag", BYWAY_NUL, "gray", BYWAY_NUL);
    rows = world_rows(&t->w);
    only_first = cJSON_GetArraySize(rows) == 1 && rows->child->valueint == 0;
    cJSON_Delete(rows);
    return only_first;
}

static const char marker_text[] = "conditions: ['method=x => host=10.0.0.1']";

/* 1: the change was seen, once and whole; 0: it was not; -1 with w.why. */
static int one_variant(struct watched *t, const char *variant)
{
    const char *file = in_folder(t, KEY);
    int before, made, rounds, symbolic = strcmp(variant, "symlink_dir_swap") == 0;
    struct timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_NOW } };
    byway_bind_options options = BYWAY_BIND_OPTIONS_INIT;
    size_t polled;
    options.flags = BYWAY_BIND_RULES_ONLY;
    made = symbolic ? directory(t, "..1", old_text) && link_to(t, "..1") && symlink("..data/" KEY, file) == 0
                    : write_to(file, old_text);
    if (!made || byway_source_new_file(t->w.engine, t->folder, BYWAY_NUL, NULL, 0, &t->source, NULL)
        || byway_chain_bind_source(t->w.chain, t->source, &options, NULL, 60000, NULL) || !until(t, &t->rule, 0)) {
        snprintf(t->w.why, sizeof t->w.why, "the old text is not seen");
        return -1;
    }
    before = t->rule;
    if (strcmp(variant, "write_in_place") == 0) {
        made = write_to(file, new_text);
    } else if (strcmp(variant, "rename_over") == 0) {
        made = put(t, KEY, new_text);
    } else if (symbolic) {
        made = directory(t, "..2", new_text) && link_to(t, "..2");
    } else if (strcmp(variant, "delete_create") == 0) {
        made = remove(file) == 0 && write_to(file, new_text);
    } else if (strcmp(variant, "touch_only") == 0) {
        made = utimensat(AT_FDCWD, file, times, 0) == 0 && put(t, MARKER, marker_text) && until(t, &t->marker, 0);
        return made && t->rule == before && revision(t) == 1 ? 0 : 1;
    } else if (strcmp(variant, "truncate_then_write") == 0) {
        int open_file = open(file, O_WRONLY | O_TRUNC);
        made = open_file >= 0 && write(open_file, new_text, 20) == 20
               /* A look happens in between: another file has been seen by then. */
               && put(t, MARKER, marker_text) && until(t, &t->marker, 0) && t->rule == before
               && write(open_file, new_text + 20, sizeof new_text - 21) == (ssize_t)(sizeof new_text - 21);
        close(open_file);
    } else {
        made = 0;
    }
    if (!made) {
        snprintf(t->w.why, sizeof t->w.why, "%s cannot be done", variant);
        return -1;
    }
    for (rounds = 0; rounds < 600 && !is_new(t); rounds++)
        byway_queue_poll(t->queue, 100, NULL, 0, 0, &polled, NULL);
    if (!is_new(t))
        return 0;
    /* A file that is away for longer than a moment is deleted, and its return a first text. */
    if ((revision(t) != 2 && strcmp(variant, "delete_create") != 0) || t->errors != 0) {
        snprintf(t->w.why, sizeof t->w.why, "%d texts, %d errors", revision(t), t->errors);
        return -1;
    }
    return 1;
}

static void clear(struct watched *t)
{
    static const char *const names[] = { KEY, MARKER, ".new", "..data", "..tmp", "..1/" KEY, "..2/" KEY };
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        remove(in_folder(t, names[i]));
    rmdir(in_folder(t, "..1"));
    rmdir(in_folder(t, "..2"));
    rmdir(t->folder);
}

static enum outcome file_watch(const cJSON *one)
{
    const cJSON *variant, *expect = get(one, "expect");
    cJSON *reloaded = cJSON_CreateArray();
    enum outcome outcome = PASS;
    cJSON *rows = cJSON_Parse("[\"dubbo://10.0.0.1:20880/S?application=a\", \"dubbo://10.0.0.2:20880/S?application=a\"]");
    cJSON_ArrayForEach(variant, get(get(one, "input"), "variants"))
    {
        struct watched t;
        byway_listener_callbacks callbacks = BYWAY_LISTENER_CALLBACKS_INIT;
        int seen = -1;
        memset(&t, 0, sizeof t);
        snprintf(t.folder, sizeof t.folder, "/tmp/byway-watch-XXXXXX");
        callbacks.on_event = hears;
        callbacks.user_data = &t;
        callbacks.mask = (uint64_t)1 << BYWAY_EVENT_RULE;
        if (mkdtemp(t.folder) != NULL && world_open(&t.w, BYWAY_DIALECT_BYWAY, "consumer://10.1.1.1/S", rows, NULL, NULL)
            && byway_engine_add_listener(t.w.engine, &callbacks, &t.listener, NULL) == BYWAY_OK) {
            t.queue = byway_engine_queue(t.w.engine);
            seen = one_variant(&t, variant->valuestring);
        }
        if (seen < 0)
            outcome = fails("%s: %s", variant->valuestring, t.w.why);
        cJSON_AddItemToArray(reloaded, cJSON_CreateBool(seen > 0));
        byway_source_release(t.source);
        byway_listener_release(t.listener);
        byway_queue_release(t.queue);
        clear(&t);
        world_close(&t.w);
    }
    cJSON_Delete(rows);
    if (outcome != PASS) {
        cJSON_Delete(reloaded);
        return outcome;
    }
    return same_json(reloaded, get(expect, "reloaded"), "reloaded");
}

const struct kind file_kinds[] = {
    { "bugs", "file_watch", file_watch },
    { NULL, NULL, NULL },
};
