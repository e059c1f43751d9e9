/* Kinds of bugs.jsonl about the boundary itself. */
#include "conform.h"
#include <pthread.h>

/* What a thread was told of its own mistake. */
struct mistake {
    byway_engine *engine;
    pthread_barrier_t *both;
    int by_rule;
    char told[512];
};

static void *make_mistake(void *data)
{
    struct mistake *it = data;
    byway_error *err = NULL;
    byway_chain *chain = NULL;
    byway_str message = {"", 0}, subject = {"", 0};
    if (it->by_rule)
        (void)byway_engine_set_rule(it->engine, "S::.condition-router", BYWAY_NUL, "conditions: 5", BYWAY_NUL, &err);
    else
        (void)byway_chain_new(it->engine, "consumer://[::1/S", BYWAY_NUL, NULL, &chain, &err);
    /* Both have failed before one asks why. */
    pthread_barrier_wait(it->both);
    byway_error_message(err, &message);
    byway_error_subject(err, &subject);
    snprintf(it->told, sizeof it->told, "%s %s %s", byway_status_name(byway_error_code(err)), message.data, subject.data);
    byway_error_free(err);
    return NULL;
}

static enum outcome two_mistakes(const cJSON *expect)
{
    struct mistake mistakes[2];
    pthread_t threads[2];
    pthread_barrier_t both;
    byway_engine *engine = NULL;
    const char *wanted[2];
    enum outcome outcome = PASS;
    int i;
    wanted[0] = text_of(expect, "T1_contains", "?");
    wanted[1] = text_of(expect, "T2_contains", "?");
    if (byway_engine_new(NULL, &engine, NULL) != BYWAY_OK || pthread_barrier_init(&both, NULL, 2) != 0)
        abort();
    for (i = 0; i < 2; i++) {
        mistakes[i].engine = engine;
        mistakes[i].both = &both;
        mistakes[i].by_rule = i == 0;
        if (pthread_create(&threads[i], NULL, make_mistake, &mistakes[i]) != 0)
            abort();
    }
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        if (outcome == PASS && strcasestr(mistakes[i].told, wanted[i]) == NULL)
            outcome = fails("T%d was told: %s", i + 1, mistakes[i].told);
    }
    pthread_barrier_destroy(&both);
    byway_engine_release(engine);
    return outcome;
}

/* A builder is spent when it has built, and freeing it is no second end of what it built. */
static enum outcome builder(const cJSON *expect)
{
    byway_engine *engine = NULL;
    byway_invokers_builder *made = NULL;
    byway_invokers *list = NULL, *again = NULL;
    int refused, whole;
    if (byway_engine_new(NULL, &engine, NULL) != BYWAY_OK ||
        byway_invokers_builder_new(engine, NULL, 0, NULL, &made, NULL) != BYWAY_OK ||
        byway_invokers_builder_add(made, "dubbo://10.0.0.1:1/S", BYWAY_NUL, 7, NULL) != BYWAY_OK ||
        byway_invokers_builder_finish(made, &list, NULL) != BYWAY_OK)
        abort();
    refused = byway_invokers_builder_finish(made, &again, NULL) < 0 && again == NULL;
    byway_invokers_builder_free(made);
    whole = byway_invokers_len(list) == 1;
    byway_invokers_release(list);
    byway_engine_release(engine);
    byway_engine_release(NULL);
    if (!refused != !cJSON_IsNull(get(expect, "b_after_build")))
        return fails("it builds twice");
    return whole != flag_of(expect, "double_free") ? PASS : fails("the list went with its builder");
}

static enum outcome sequence(const cJSON *one)
{
    const cJSON *expect = get(one, "expect");
    const char *language = text_of(get(one, "input"), "language", "");
    if (get(expect, "T1_contains") != NULL)
        return two_mistakes(expect);
    if (get(expect, "b_after_build") != NULL)
        return builder(expect);
    return strcmp(language, "c") == 0 ? skips("tests/c/copies.c loads and unloads") : skips("of %s", language);
}

static enum outcome null(const cJSON *one)
{
    (void)one;
    return skips("tests/c/misuse.c calls every function so");
}

static enum outcome artefact(const cJSON *one)
{
    (void)one;
    return skips("Android is no platform of byway's");
}

static enum outcome load(const cJSON *one)
{
    (void)one;
    return skips("Java's: NativeLibrary unpacks");
}

const struct kind boundary_kinds[] = {
    {"bugs", "ffi_sequence", sequence},
    {"bugs", "ffi_null", null},
    {"bugs", "artifact", artefact},
    {"bugs", "load", load},
    {NULL, NULL, NULL},
};
