/* Every export in a forked child: values go on as in the parent, whatever has an engine, a queue or a lock behind it
 * answers BYWAY_E_FORKED, and releasing and freeing run no host code. */
#include "byway.h"

static void compare(const char *name, byway_status status);
#define EXPECT_STATUS(name, bad, status) compare(name, status)

#include "calls.c"
#include "calls.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *other_type(int index)
{
    return index < (int)(sizeof types / sizeof types[0]) ? types[index] : NULL;
}

/* Own what they show and have no lock, thread or descriptor: the header's list, and what is made of bytes alone. */
static const char *const values[] = { "byway_error", "byway_text", "byway_address", "byway_route", "byway_proxy",
                                      "byway_filter", "byway_choice", "byway_handshake", "byway_invocation" };

static int is_value(const char *type)
{
    size_t i;
    for (i = 0; type && i < sizeof values / sizeof values[0]; i++)
        if (!strcmp(values[i], type))
            return 1;
    return 0;
}

/* One object of each type, made in the parent; what is ended in the child is not looked for again. */
static void *kept[sizeof types / sizeof types[0]];
static byway_status before[sizeof exports / sizeof exports[0]];
static int is_child, at, told;

static void *from_parent(const char *type)
{
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i], type))
            return kept[i];
    return NULL;
}

static int was_parents(const void *handle)
{
    (void)handle;
    return 1;
}

static void compare(const char *name, byway_status status)
{
    if (!is_child) {
        before[at] = status;
        return;
    }
    told++;
    if (exports[at].self && is_value(exports[at].self)) {
        /* A new object cannot be made from a value either. */
        if (status != before[at] && status != BYWAY_E_FORKED)
            problem(name, -1, "a value answers otherwise than in the parent", status);
    } else if (exports[at].self) {
        if (status != BYWAY_E_FORKED)
            problem(name, -1, "answers in a child", status);
    } else if (status != before[at] && status != BYWAY_E_FORKED) {
        problem(name, -1, "neither what the parent gets nor BYWAY_E_FORKED", status);
    }
}

static int ends(const char *name)
{
    const char *last = strrchr(name, '_');
    return !strcmp(last, "_free") || !strcmp(last, "_release");
}

/* What a value shows, in words, is what it showed in the parent. */
static int same_text(const char *what, byway_status status, byway_text *text, const char *want)
{
    byway_str shown = { "", 0 };
    byway_text_str(text, &shown);
    if (status == BYWAY_OK && !strcmp(shown.data, want))
        return 1;
    printf("# child: %s: %s, \"%s\"\n", what, byway_status_name(status), shown.data);
    return 0;
}

static int child(void)
{
    const int destroyed = zoo_destroyed;
    byway_text *text = NULL;
    byway_ip ip;
    int32_t denied = -1;
    uint64_t tag = 0;
    uint16_t port = 0;
    int good, pass;
    byway_status status;
    is_child = 1;
    recall = from_parent;
    forget = was_parents;
    problems = 0;
    /* Ends come last. */
    for (pass = 0; pass < 2; pass++)
        for (at = 0; at < (int)(sizeof exports / sizeof exports[0]); at++)
            if (ends(exports[at].name) == pass) {
                /* Keeps a set's own count right: none is destroyed here, and all are refused. */
                exports[at].call(-1);
                if (pass == 0 && !strcmp(exports[at].name, "byway_route_text")) {
                    status = byway_route_text(from_parent("byway_route"), &text, NULL);
                    good = same_text("route", status, text, "a.example at 192.0.2.7:443");
                    status = byway_address_text(from_parent("byway_address"), &text, NULL);
                    good = good && same_text("address", status, text, "https://a.example:443");
                    status = byway_proxy_text(from_parent("byway_proxy"), &text, NULL);
                    good = good && same_text("proxy", status, text, "http://192.0.2.80:8080");
                    status = byway_route_hop(from_parent("byway_route"), &ip, &port);
                    good = good && status == BYWAY_OK && ip.bytes[3] == 7 && port == 443;
                    status = byway_filter_check(from_parent("byway_filter"), &ip, &denied);
                    good = good && status == BYWAY_OK && denied == 1;
                    good = good && byway_choice_len(from_parent("byway_choice")) == 2 &&
                           byway_choice_tag_at(from_parent("byway_choice"), 1, &tag) == BYWAY_OK;
                    if (!good) {
                        printf("# child: a value shows something else\n");
                        problems++;
                    }
                }
            }
    if (zoo_destroyed != destroyed) {
        printf("# child: %d sets were destroyed\n", zoo_destroyed - destroyed);
        problems++;
    }
    if (told < 100) {
        printf("# child: only %d exports were heard\n", told);
        problems++;
    }
    fflush(stdout);
    return problems != 0;
}

static atomic_int stop;

/* Keeps locks in use while the process forks. */
static void *busy(void *nothing)
{
    (void)nothing;
    while (!atomic_load(&stop)) {
        byway_engine *engine = NULL;
        byway_selector *selector = NULL;
        byway_selection *selection = NULL;
        byway_address *address = NULL;
        byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
        options.host.data = "192.0.2.1";
        options.host.len = BYWAY_NUL;
        options.port = 80;
        (void)byway_engine_new(NULL, &engine, NULL);
        (void)byway_address_new(engine, &options, &address, NULL);
        (void)byway_selector_new(engine, address, NULL, &selector, NULL);
        (void)byway_selector_next(selector, 0, &selection, NULL);
        byway_selection_free(selection);
        byway_selector_free(selector);
        byway_address_release(address);
        (void)byway_engine_shutdown(engine, 0, NULL);
        byway_engine_release(engine);
    }
    return NULL;
}

int main(void)
{
    enum { ROUNDS = 3 };
    pthread_t thread;
    size_t i;
    int round, status, good = 0;
    memset(long_text, 'a', sizeof long_text - 1);
    /* The first round leaves behind what every later one finds. */
    for (round = 0; round < 2; round++)
        for (at = 0; at < (int)(sizeof exports / sizeof exports[0]); at++) {
            exports[at].call(-1);
            end_all();
        }
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        kept[i] = zoo_make(types[i]);
    pthread_create(&thread, NULL, busy, NULL);
    for (round = 0; round < ROUNDS; round++) {
        pid_t pid;
        fflush(stdout);
        pid = fork();
        if (pid == 0)
            _exit(child());
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            good++;
        else
            printf("# child %d: status %x\n", round, (unsigned)status);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    OK(good == ROUNDS, "every export in %d of %d children", good, ROUNDS);
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        zoo_end(types[i], kept[i]);
    zoo_close();
    OK(problems == 0, "and the parent goes on");
    return tap_done();
}
