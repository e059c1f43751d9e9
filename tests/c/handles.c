/* Life cycles: references, dead handles, wrong types, any order of release, the error object. */
#include "tap.h"

static void references(void)
{
    byway_queue *queue = NULL, *dead;
    byway_engine *engine = NULL;
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    int32_t fd;
    NEED(byway_queue_new(NULL, &queue, NULL));
    OK(byway_queue_retain(queue) == queue, "retain returns its argument");
    byway_queue_release(queue);
    STATUS(byway_queue_wakeup(queue), BYWAY_OK, "one of two references is left");
    options.queue = queue;
    NEED(byway_engine_new(&options, &engine, NULL));
    dead = queue;
    byway_queue_release(queue);
    STATUS(byway_queue_wakeup(dead), BYWAY_E_BAD_HANDLE, "the handle is dead though an engine uses the queue");
    OK(byway_queue_retain(dead) == NULL, "a dead handle cannot be retained");
    byway_queue_release(dead);
    byway_queue_release(NULL);
    STATUS(byway_queue_fd(dead, &fd), BYWAY_E_BAD_HANDLE, "releasing it again changes nothing");
    queue = byway_engine_queue(engine);
    OK(queue != NULL, "the engine hands its queue out");
    byway_engine_release(engine);
    STATUS(byway_queue_wakeup(queue), BYWAY_OK, "the queue outlives the engine");
    byway_queue_release(queue);
    STATUS(byway_queue_wakeup((byway_queue *)(void *)engine), BYWAY_E_BAD_HANDLE, "a dead handle of another type");
}

static void wrong_types(void)
{
    byway_queue *queue = NULL;
    byway_engine *engine = NULL;
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_error *err = NULL;
    byway_str text;
    NEED(byway_queue_new(NULL, &queue, NULL));
    options.queue = (byway_queue *)(void *)((char *)queue + 8);
    STATUS(byway_engine_new(&options, &engine, &err), BYWAY_E_BAD_HANDLE, "a misaligned handle in a struct");
    byway_error_subject(err, &text);
    OK(!strcmp(text.data, "options.queue") && text.data[text.len] == 0, "the error names the field");
    byway_error_message(err, &text);
    OK(text.len > 0 && strlen(text.data) == text.len, "and has a message");
    STATUS(byway_engine_shutdown((byway_engine *)(void *)queue, 0, NULL), BYWAY_E_BAD_HANDLE, "a queue is no engine");
    STATUS(byway_engine_shutdown((byway_engine *)(void *)err, 0, NULL), BYWAY_E_BAD_HANDLE, "an error is no engine");
    byway_engine_release((byway_engine *)(void *)queue);
    STATUS(byway_queue_wakeup(queue), BYWAY_OK, "and releasing it as one does nothing");
    byway_error_free(err);
    STATUS(byway_error_code(err), BYWAY_OK, "a dead error has no code");
    byway_error_message(err, &text);
    OK(text.len == 0 && text.data[0] == 0, "and an empty message");
    byway_error_free(err);
    byway_queue_release(queue);
}

static void structs_grow(void)
{
    byway_engine *engine = NULL;
    struct {
        byway_engine_options known;
        unsigned char newer[64];
    } options;
    byway_engine_options init = BYWAY_ENGINE_OPTIONS_INIT;
    memset(&options, 0, sizeof options);
    options.known = init;
    options.known.struct_size = sizeof options;
    STATUS(byway_engine_new(&options.known, &engine, NULL), BYWAY_OK, "a newer host's struct with zeroes behind");
    byway_engine_release(engine);
    options.newer[63] = 1;
    STATUS(byway_engine_new(&options.known, &engine, NULL), BYWAY_E_STRUCT_SIZE, "what this library does not know");
    options.known.struct_size = 16;
    STATUS(byway_engine_new(&options.known, &engine, NULL), BYWAY_E_STRUCT_SIZE, "smaller than the first release");
    options.known = init;
    options.known.compat = 99;
    STATUS(byway_engine_new(&options.known, &engine, NULL), BYWAY_E_ENUM, "a number that is no constant");
    options.known = init;
    options.known.postpone_for_ms = -2;
    STATUS(byway_engine_new(&options.known, &engine, NULL), BYWAY_E_ARGUMENT, "a negative time");
    OK(engine == NULL, "outputs are cleared");
}

static void shut_down(void)
{
    byway_engine *engine = NULL;
    NEED(byway_engine_new(NULL, &engine, NULL));
    STATUS(byway_engine_shutdown(engine, 0, NULL), BYWAY_OK, "shutdown of an idle engine");
    STATUS(byway_engine_shutdown(engine, -1, NULL), BYWAY_OK, "is idempotent");
    byway_engine_release(engine);
    STATUS(byway_engine_shutdown(engine, 0, NULL), BYWAY_E_BAD_HANDLE, "and the last release ends the handle");
}

static void statuses(void)
{
    static const int32_t some[] = { INT32_MIN, INT32_MAX, 0, 1, 4, -1, -99, -100, -119, -120, -902, -903 };
    size_t i;
    int good = 1;
    for (i = 0; i < sizeof some / sizeof some[0]; i++)
        good = good && byway_status_name(some[i])[0] && byway_status_message(some[i])[0];
    OK(good, "every number has a name and a message");
    OK(!strcmp(byway_status_name(BYWAY_E_BUSY), "BYWAY_E_BUSY"), "a name is the constant's");
    OK(!strcmp(byway_status_name(12345), "BYWAY_UNKNOWN"), "a number that is no status");
    OK(byway_has_feature("no such thing", BYWAY_NUL) == 0, "a feature that is none");
}

int main(void)
{
    references();
    wrong_types();
    structs_grow();
    shut_down();
    statuses();
    return tap_done();
}
