/* Sources through the boundary: memory, files, ZooKeeper that nobody answers for; bound chains and their events. */
#include "tap.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT(s) (s), BYWAY_NUL
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static byway_engine *engine;
static byway_queue *queue;

static const char consumer[] = "consumer://10.1.1.1/HelloService?application=shop";
static const char both[] = "tri://10.0.0.1:20880/HelloService?application=stock\n"
                           "tri://10.0.0.1:20881/HelloService?application=stock\n";
static const char only_first[] = "force: true\nconditions: ['method=hello => address=*:20880']\n";
static const char rule_key[] = "HelloService::.condition-router";

static byway_chain *chain_new(void)
{
    byway_chain *chain = NULL;
    NEED(byway_chain_new(engine, TEXT(consumer), NULL, &chain, NULL));
    return chain;
}

/* The ports a call of a method may go to, as text: "20880 20881". */
static const char *ports(byway_chain *chain, const char *method)
{
    static char text[256];
    byway_invocation *call = NULL;
    byway_choice *choice = NULL;
    byway_invokers *list = NULL;
    size_t i, at = 0;
    NEED(byway_invocation_new(&call, NULL));
    NEED(byway_invocation_set_method(call, TEXT(method)));
    NEED(byway_chain_route(chain, call, &choice, NULL));
    NEED(byway_choice_invokers(choice, &list, NULL));
    text[0] = 0;
    for (i = 0; i < byway_choice_len(choice); i++) {
        uint64_t tag = 0;
        size_t row = 0;
        byway_text *url = NULL;
        byway_str seen;
        const char *port;
        NEED(byway_choice_tag_at(choice, i, &tag));
        NEED(byway_invokers_row_of(list, tag, &row));
        NEED(byway_invokers_url(list, row, &url, NULL));
        byway_text_str(url, &seen);
        port = strchr(seen.data + 6, ':') + 1;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.5s", i ? " " : "", port);
        byway_text_free(url);
    }
    byway_invokers_release(list);
    byway_choice_free(choice);
    byway_invocation_free(call);
    return text;
}

#define PORTS(chain, method, want, what) \
    do { \
        const char *got_ = ports(chain, method); \
        if (!OK(!strcmp(got_, want), "%s", what)) \
            printf("# got \"%s\", want \"%s\"\n", got_, want); \
    } while (0)

static int events[6], destroyed;
static char refused[256];
static byway_status refused_status;

static void on_event(void *user_data, const byway_source_event *event)
{
    (void)user_data;
    if (event->kind >= 0 && event->kind < (int)COUNT(events))
        events[event->kind]++;
    if (event->kind == BYWAY_SOURCE_EVENT_REFUSED && event->error) {
        snprintf(refused, sizeof refused, "%s", event->subject.data);
        refused_status = event->status;
    }
}

static void on_destroy(void *user_data)
{
    (void)user_data;
    destroyed++;
}

static void poll_events(int64_t timeout_ms)
{
    size_t n = 0;
    NEED(byway_queue_poll(queue, timeout_ms, NULL, sizeof(byway_completion), 0, &n, NULL));
}

static void memory(void)
{
    byway_source *source = NULL;
    byway_chain *chain = chain_new();
    byway_source_callbacks set = BYWAY_SOURCE_CALLBACKS_INIT;
    byway_bind_options options = BYWAY_BIND_OPTIONS_INIT;
    byway_source_state state = BYWAY_SOURCE_STATE_INIT;
    byway_source_change changes[2];
    byway_error *err = NULL, *last = NULL;
    byway_text *text = NULL;
    byway_str seen;

    set.on_event = on_event;
    set.destroy = on_destroy;
    options.queue = queue;
    NEED(byway_source_new_memory(engine, &source, NULL));
    NEED(byway_source_put(source, TEXT("HelloService/providers"), TEXT(both), NULL));
    NEED(byway_source_put(source, TEXT(rule_key), TEXT(only_first), NULL));
    STATUS(byway_chain_bind_status(chain, &text, NULL), BYWAY_E_STATE, "not bound");
    STATUS(byway_chain_bind_source(chain, source, &options, &set, 0, NULL), BYWAY_OK, "memory is ready at once");
    PORTS(chain, "hello", "20880", "rule and providers are in force");
    PORTS(chain, "other", "20880 20881", "for its method");

    memset(changes, 0, sizeof changes);
    changes[0].key.data = rule_key;
    changes[0].key.len = BYWAY_NUL;
    changes[0].remove = 1;
    changes[1].key.data = "HelloService/providers";
    changes[1].key.len = BYWAY_NUL;
    changes[1].text.data = "tri://10.0.0.1:20882/HelloService";
    changes[1].text.len = BYWAY_NUL;
    STATUS(byway_source_apply(source, changes, 2, NULL), BYWAY_OK, "both at once");
    PORTS(chain, "hello", "20882", "in force when the call returns");
    changes[1].remove = 7;
    STATUS(byway_source_apply(source, changes, 2, NULL), BYWAY_E_ENUM, "remove is 0 or 1");

    NEED(byway_source_put(source, TEXT(rule_key), TEXT("conditions: [[["), NULL));
    poll_events(1000);
    OK(events[BYWAY_SOURCE_EVENT_READY] == 1 && events[BYWAY_SOURCE_EVENT_CHANGED] >= 1, "ready and changed are told");
    OK(events[BYWAY_SOURCE_EVENT_REFUSED] == 1 && refused_status == BYWAY_E_SYNTAX && !strcmp(refused, rule_key),
       "a refused rule is told with its key (%d events, %d, %s)", events[BYWAY_SOURCE_EVENT_REFUSED], refused_status,
       refused);
    NEED(byway_chain_bind_status(chain, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "\"ready\":true") && strstr(seen.data, "\"kind\":\"memory\"") &&
           strstr(seen.data, "HelloService/providers"),
       "the status says how it stands");
    byway_text_free(text);

    STATUS(byway_source_status(source, &state, &last, NULL), BYWAY_OK, "status");
    OK(state.connected == 1 && state.age_ms == 0 && state.keys > 3 && !last, "memory is always up to date");
    STATUS(byway_source_get(source, TEXT("HelloService/providers"), 0, &text, NULL), BYWAY_OK, "get");
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "tri://10.0.0.1:20882/HelloService"), "a list, one entry a line");
    byway_text_free(text);
    STATUS(byway_source_get(source, TEXT("nobody.tag-router"), 0, &text, NULL), BYWAY_E_NOT_FOUND, "absent");
    STATUS(byway_source_put(source, TEXT("a//b"), TEXT("x"), &err), BYWAY_E_ARGUMENT, "a key that means nothing");
    byway_error_free(err);
    err = NULL;

    /* Emptied and gone: what happens is a policy. */
    NEED(byway_source_remove(source, TEXT("HelloService/providers"), NULL));
    PORTS(chain, "other", "20882", "a list that vanished is kept");
    poll_events(1000);
    OK(events[BYWAY_SOURCE_EVENT_KEPT] == 1, "which is told");
    NEED(byway_source_put(source, TEXT("HelloService/providers"), TEXT(""), NULL));
    PORTS(chain, "other", "", "one that is empty is not");

    options.empty_protection = 9;
    STATUS(byway_chain_bind_source(chain, source, &options, NULL, 0, NULL), BYWAY_E_ENUM, "unknown protection");
    options.empty_protection = 0;
    options.flags = 64;
    STATUS(byway_chain_bind_source(chain, source, &options, NULL, 0, NULL), BYWAY_E_ENUM, "unknown flag");
    NEED(byway_source_put(source, TEXT("HelloService/providers"), TEXT(both), NULL));
    STATUS(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL), BYWAY_OK, "unbound");
    PORTS(chain, "other", "", "what the source gave is taken back");
    poll_events(0);
    OK(destroyed == 1, "and its callbacks are destroyed");
    byway_source_release(source);
    byway_chain_release(chain);
}

static void write_file(const char *folder, const char *name, const char *content)
{
    char fresh[512], path[512];
    FILE *file;
    snprintf(fresh, sizeof fresh, "%s/.fresh", folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(fresh, "w");
    if (!file || fputs(content, file) < 0 || fclose(file) || rename(fresh, path))
        abort();
}

static void files(void)
{
    char folder[] = "/tmp/byway-sources-XXXXXX", path[512];
    byway_source *source = NULL;
    byway_chain *chain = chain_new();
    byway_bind_options options = BYWAY_BIND_OPTIONS_INIT;
    byway_source_callbacks set = BYWAY_SOURCE_CALLBACKS_INIT;
    int tries;
    if (!mkdtemp(folder))
        abort();
    write_file(folder, "HelloService.providers", both);
    set.on_event = on_event;
    options.queue = queue;
    STATUS(byway_source_new_file(engine, TEXT(""), NULL, 0, &source, NULL), BYWAY_E_ARGUMENT, "an empty path");
    NEED(byway_source_new_file(engine, TEXT(folder), NULL, 0, &source, NULL));
    STATUS(byway_chain_bind_source(chain, source, &options, &set, 60000, NULL), BYWAY_OK, "files are ready soon");
    PORTS(chain, "hello", "20880 20881", "providers from a file");
    STATUS(byway_source_put(source, TEXT("a"), TEXT("b"), NULL), BYWAY_E_UNSUPPORTED, "files are not written here");
    events[BYWAY_SOURCE_EVENT_CHANGED] = 0;
    write_file(folder, rule_key, only_first);
    /* Calls see the rule a little before the queue has the event. */
    for (tries = 0; tries < 300 && (strcmp(ports(chain, "hello"), "20880") || !events[BYWAY_SOURCE_EVENT_CHANGED]); tries++)
        poll_events(200);
    OK(events[BYWAY_SOURCE_EVENT_CHANGED] > 0, "the change is told");
    PORTS(chain, "hello", "20880", "a rule that came by rename");
    byway_source_release(source);
    byway_chain_release(chain);
    snprintf(path, sizeof path, "%s/HelloService.providers", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", folder, rule_key);
    unlink(path);
    rmdir(folder);
}

static void zookeeper(void)
{
    byway_source *source = NULL;
    byway_chain *chain;
    byway_zookeeper_options options = BYWAY_ZOOKEEPER_OPTIONS_INIT;
    byway_source_state state = BYWAY_SOURCE_STATE_INIT;
    byway_source_callbacks hears = BYWAY_SOURCE_CALLBACKS_INIT;
    byway_bind_options bind = BYWAY_BIND_OPTIONS_INIT;
    byway_error *err = NULL, *last = NULL;
    byway_str seen;
    uint64_t before;
    if (!byway_has_feature(TEXT("zookeeper"))) {
        STATUS(byway_source_new_zookeeper(engine, TEXT("127.0.0.1:1"), NULL, &source, NULL), BYWAY_E_UNSUPPORTED,
               "built without ZooKeeper");
        return;
    }
    STATUS(byway_source_new_zookeeper(engine, TEXT("u:secret@h:99999"), NULL, &source, &err), BYWAY_E_ARGUMENT,
           "a port that is none");
    byway_error_message(err, &seen);
    OK(!strstr(seen.data, "secret"), "credentials are not shown");
    byway_error_free(err);
    options.session_timeout_ms = -1;
    STATUS(byway_source_new_zookeeper(engine, TEXT("127.0.0.1:1"), &options, &source, NULL), BYWAY_E_ARGUMENT,
           "a negative timeout");
    options.session_timeout_ms = 0;
    options.retry_longest_ms = 50;
    /* Nobody listens on port 1. */
    NEED(byway_source_new_zookeeper(engine, TEXT("127.0.0.1:1"), &options, &source, NULL));
    chain = chain_new();
    memset(events, 0, sizeof events);
    hears.on_event = on_event;
    bind.queue = queue;
    STATUS(byway_chain_bind_source(chain, source, &bind, &hears, 100, NULL), BYWAY_PENDING, "no first state in time");
    /* Its thread may not have been refused yet. */
    do {
        byway_error_free(last);
        last = NULL;
        NEED(byway_source_status(source, &state, &last, NULL));
    } while (!state.errors && !sched_yield());
    while (!events[BYWAY_SOURCE_EVENT_DISCONNECTED])
        poll_events(1000);
    /* More rounds of failures tell nothing new. */
    before = state.errors;
    do {
        byway_error_free(last);
        last = NULL;
        NEED(byway_source_status(source, &state, &last, NULL));
    } while (state.errors < before + 3 && !sched_yield());
    poll_events(0);
    OK(events[BYWAY_SOURCE_EVENT_DISCONNECTED] == 1, "a server that is never reached is told once");
    OK(state.connected == 0 && state.age_ms == -1 && state.errors > 0 && last, "the status says why");
    byway_error_free(last);
    byway_source_release(source);
    byway_chain_release(chain);
}

/* --- a bind that waits is called off */

struct waiter {
    byway_chain *chain;
    byway_source *source;
    byway_status status;
    int done;
};

static byway_chain *to_cancel;

static void *wait_for_state(void *given)
{
    struct waiter *one = given;
    one->status = byway_chain_bind_source(one->chain, one->source, NULL, NULL, 600000, NULL);
    __atomic_store_n(&one->done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
    byway_chain_cancel_bind(to_cancel);
}

static void cancel_from_elsewhere(struct waiter *one, pthread_t thread)
{
    (void)one, (void)thread;
    byway_chain_cancel_bind(one->chain);
}

static void cancel_from_a_handler(struct waiter *one, pthread_t thread)
{
    if (!__atomic_load_n(&one->done, __ATOMIC_SEQ_CST))
        pthread_kill(thread, SIGUSR1);
}

static void unbind(struct waiter *one, pthread_t thread)
{
    (void)thread;
    NEED(byway_chain_bind_source(one->chain, NULL, NULL, NULL, 0, NULL));
}

static void canceled(void)
{
    static const struct {
        const char *what;
        void (*cancel)(struct waiter *, pthread_t);
        int keeps;
    } ways[] = {{"another thread", cancel_from_elsewhere, 1},
                {"a signal handler on the waiting thread", cancel_from_a_handler, 1},
                {"unbinding", unbind, 0}};
    byway_source *memory = NULL, *nowhere = NULL;
    struct sigaction action;
    size_t i;
    if (!byway_has_feature(TEXT("zookeeper")))
        return;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    NEED(byway_source_new_memory(engine, &memory, NULL));
    NEED(byway_source_put(memory, TEXT("HelloService/providers"), TEXT(both), NULL));
    /* Nobody listens on port 1, so no first state ever comes. */
    NEED(byway_source_new_zookeeper(engine, TEXT("127.0.0.1:1"), NULL, &nowhere, NULL));
    for (i = 0; i < COUNT(ways); i++) {
        byway_chain *chain = chain_new();
        struct waiter one = {chain, nowhere, BYWAY_OK, 0};
        pthread_t thread;
        byway_text *text = NULL;
        NEED(byway_chain_bind_source(chain, memory, NULL, NULL, 0, NULL));
        NEED(byway_chain_cancel_bind(chain));
        STATUS(byway_chain_bind_source(chain, memory, NULL, NULL, -1, NULL), BYWAY_OK, "a later bind does not care");
        to_cancel = chain;
        pthread_create(&thread, NULL, wait_for_state, &one);
        /* It may not have begun the first time. */
        while (!__atomic_load_n(&one.done, __ATOMIC_SEQ_CST)) {
            ways[i].cancel(&one, thread);
            poll(NULL, 0, 1);
        }
        pthread_join(thread, NULL);
        STATUS(one.status, BYWAY_E_CANCELED, ways[i].what);
        if (ways[i].keeps) {
            PORTS(chain, "hello", "20880 20881", "what was followed before is served");
            NEED(byway_source_put(memory, TEXT("HelloService/providers"), TEXT("tri://10.0.0.1:20889/HelloService"), NULL));
            PORTS(chain, "hello", "20889", "and still followed");
            NEED(byway_source_put(memory, TEXT("HelloService/providers"), TEXT(both), NULL));
        } else {
            STATUS(byway_chain_bind_status(chain, &text, NULL), BYWAY_E_STATE, "and bound to nothing");
        }
        byway_chain_release(chain);
    }
    STATUS(byway_chain_cancel_bind(NULL), BYWAY_E_BAD_HANDLE, "nothing to cancel");
    byway_source_release(memory);
    byway_source_release(nowhere);
}

static int own_threads(void)
{
    FILE *list = popen("cat /proc/$PPID/task/*/comm 2>/dev/null | grep -c '^byway-'", "r");
    int count = -1;
    if (list && fscanf(list, "%d", &count) != 1)
        count = -1;
    if (list)
        pclose(list);
    return count;
}

int main(void)
{
    byway_source *source = NULL;
    byway_chain *chain;
    byway_status bound;
    int tries, left = -1;
    NEED(byway_queue_new(NULL, &queue, NULL));
    NEED(byway_engine_new(NULL, &engine, NULL));
    memory();
    files();
    zookeeper();
    canceled();

    /* A shutdown ends the threads of sources that are still bound. */
    chain = chain_new();
    NEED(byway_source_new_file(engine, TEXT("/nowhere"), NULL, 0, &source, NULL));
    /* Its thread may have found out already that nothing is there. */
    bound = byway_chain_bind_source(chain, source, NULL, NULL, 0, NULL);
    OK(bound == BYWAY_PENDING || bound == BYWAY_OK, "bound without waiting: %s", byway_status_name(bound));
    STATUS(byway_engine_shutdown(engine, 60000, NULL), BYWAY_OK, "shutdown");
    /* A thread that has been joined is listed until the kernel has put it away. */
    for (tries = 0; tries < 600 && (left = own_threads()) != 0; tries++)
        poll(NULL, 0, 100);
    OK(left == 0, "no thread is left");
    STATUS(byway_source_put(source, TEXT("a"), TEXT("b"), NULL), BYWAY_E_SHUTDOWN, "sources end with their engine");
    byway_chain_release(chain);
    byway_source_release(source);
    byway_engine_release(engine);
    byway_queue_release(queue);
    return tap_done();
}
