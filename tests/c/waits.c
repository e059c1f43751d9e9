/* What may wait and what must not: blocking calls on the thread of an event loop, answers that come later than anybody
 * waits, first states that come later. */
#include "tap.h"
#include <poll.h>
#include <pthread.h>

#define TEXT(s) (s), BYWAY_NUL

enum { FOR_EVER_MS = 3600000 };

static byway_engine *engine;
static byway_queue *queue;
static byway_dns_request *asked;

static byway_status silent(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    byway_dns_request_release(asked);
    asked = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static byway_status silent_chooser(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                   const byway_call *call)
{
    (void)uri;
    (void)len;
    (void)call;
    *(byway_proxy_request **)user_data = byway_proxy_request_retain(request);
    return BYWAY_PENDING;
}

static void open_engine(int64_t default_ms, uint32_t queue_flags)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_queue_options of_queue = BYWAY_QUEUE_OPTIONS_INIT;
    of_queue.flags = queue_flags;
    NEED(byway_queue_new(&of_queue, &queue, NULL));
    options.queue = queue;
    options.default_timeout_ms = default_ms;
    NEED(byway_engine_new(&options, &engine, NULL));
}

static void close_engine(void)
{
    byway_dns_request_release(asked);
    asked = NULL;
    NEED(byway_engine_shutdown(engine, FOR_EVER_MS, NULL));
    byway_engine_release(engine);
    byway_queue_release(queue);
}

static byway_selector *silent_selector(void)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    set.lookup = silent;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    options.host.data = "slow.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &selector, NULL));
    byway_address_release(address);
    byway_dns_release(dns);
    return selector;
}

/* Polls until there is a record. */
static byway_completion one_record(void)
{
    byway_completion record = { 0, 0, 0, 0 };
    size_t n = 0;
    while (n == 0)
        NEED(byway_queue_poll(queue, FOR_EVER_MS, &record, sizeof record, 1, &n, NULL));
    return record;
}

static size_t records_now(void)
{
    byway_completion records[4];
    size_t n = 9;
    NEED(byway_queue_poll(queue, 0, records, sizeof records[0], 4, &n, NULL));
    return n;
}

static void *next_elsewhere(void *selector)
{
    byway_selection *selection = NULL;
    return (void *)(intptr_t)byway_selector_next(selector, 1, &selection, NULL);
}

static void *bind_elsewhere(void *chain_and_source)
{
    void **both = chain_and_source;
    return (void *)(intptr_t)byway_chain_bind_source(both[0], both[1], NULL, NULL, 1, NULL);
}

static void *get_elsewhere(void *source)
{
    byway_text *text = NULL;
    return (void *)(intptr_t)byway_source_get(source, TEXT("a.tag-router"), FOR_EVER_MS, &text, NULL);
}

static byway_source *nobody(void)
{
    byway_source *source = NULL;
    /* Nobody listens on port 1. */
    if (!byway_has_feature(TEXT("zookeeper")))
        return NULL;
    NEED(byway_source_new_zookeeper(engine, TEXT("127.0.0.1:1"), NULL, &source, NULL));
    return source;
}

static byway_chain *new_chain(void)
{
    byway_chain *chain = NULL;
    NEED(byway_chain_new(engine, TEXT("consumer://10.1.1.1/Greeter?application=shop"), NULL, &chain, NULL));
    return chain;
}

/* Every call that can wait, on the thread that polls a queue marked as a loop. */
static void on_a_loop(void)
{
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_dial *dial = NULL;
    byway_connected connected;
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_proxy_selector *chooser = NULL;
    byway_proxy_request *open = NULL;
    byway_source *source;
    byway_chain *chain;
    byway_text *text = NULL;
    pthread_t thread;
    void *status;
    size_t total;
    open_engine(FOR_EVER_MS, BYWAY_QUEUE_LOOP);
    selector = silent_selector();
    STATUS(byway_selector_next(selector, 1, &selection, NULL), BYWAY_E_TIMEOUT, "before anybody polls nobody is the loop");
    OK(records_now() == 0, "from here on this thread is");
    STATUS(byway_selector_next(selector, -1, &selection, NULL), BYWAY_E_WOULD_DEADLOCK, "a selector that would wait");
    STATUS(byway_selector_next(selector, 0, &selection, NULL), BYWAY_E_TIMEOUT, "one that would not");
    pthread_create(&thread, NULL, next_elsewhere, selector);
    pthread_join(thread, &status);
    STATUS((byway_status)(intptr_t)status, BYWAY_E_TIMEOUT, "another thread may wait");
    NEED(byway_dns_request_add_text(asked, TEXT("192.0.2.1"), NULL));
    NEED(byway_dns_request_finish(asked));
    STATUS(byway_selector_next(selector, -1, &selection, NULL), BYWAY_OK, "what is there needs no waiting");
    byway_selection_free(selection);
    byway_selector_free(selector);

    selector = silent_selector();
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    STATUS(byway_dial_run(dial, -1, &connected, NULL), BYWAY_E_WOULD_DEADLOCK, "a dial that would wait");
    STATUS(byway_dial_run(dial, 0, &connected, NULL), BYWAY_PENDING, "and one that would not");
    byway_dial_free(dial);
    byway_selector_free(selector);

    set.user_data = &open;
    set.select = silent_chooser;
    NEED(byway_proxy_selector_new(engine, &set, &chooser, NULL));
    STATUS(byway_engine_proxies_for_url(engine, chooser, TEXT("http://a/"), NULL, -1, NULL, 0, &total, NULL, NULL),
           BYWAY_E_WOULD_DEADLOCK, "a question to a proxy selector");
    byway_proxy_request_release(open);
    byway_proxy_selector_release(chooser);

    source = nobody();
    chain = new_chain();
    if (source) {
        void *both[2];
        STATUS(byway_chain_bind_source(chain, source, NULL, NULL, -1, NULL), BYWAY_E_WOULD_DEADLOCK, "a first state");
        STATUS(byway_chain_bind_status(chain, &text, NULL), BYWAY_E_STATE, "which binds nothing");
        OK(records_now() == 0, "and owes no record");
        STATUS(byway_source_get(source, TEXT("a.tag-router"), -1, &text, NULL), BYWAY_E_WOULD_DEADLOCK,
               "what a source holds");
        both[0] = chain;
        both[1] = source;
        pthread_create(&thread, NULL, bind_elsewhere, both);
        pthread_join(thread, &status);
        STATUS((byway_status)(intptr_t)status, BYWAY_PENDING, "another thread may wait for it");
    } else {
        SKIP("sources on a loop", "built without ZooKeeper");
    }
    byway_source_release(source);
    byway_chain_release(chain);
    close_engine();
}

/* A poll that is pending does not stay so for ever. */
static void polls_that_time_out(void)
{
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_completion record;
    struct pollfd watch;
    int64_t left = 0;
    int32_t fd = -1;
    open_engine(FOR_EVER_MS, 0);
    NEED(byway_queue_deadline(queue, &left));
    OK(left == -1, "nothing pending, no deadline");
    selector = silent_selector();
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "pending");
    NEED(byway_queue_deadline(queue, &left));
    OK(left > 0 && left <= FOR_EVER_MS, "until the engine's default timeout, which is the queue's next deadline");
    byway_selector_free(selector);
    record = one_record();
    OK(record.status == BYWAY_E_CANCELED, "freed: one record");
    NEED(byway_queue_deadline(queue, &left));
    OK(left == -1, "and no deadline any more");
    close_engine();

    open_engine(1, 0);
    NEED(byway_queue_fd(queue, &fd));
    selector = silent_selector();
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "pending for a millisecond");
    watch.fd = fd;
    watch.events = POLLIN;
    watch.revents = 0;
    OK(poll(&watch, 1, -1) == 1, "then the descriptor is readable");
    NEED(byway_queue_deadline(queue, &left));
    OK(left == 0, "as the deadline has passed");
    record = one_record();
    OK(record.status == BYWAY_E_TIMEOUT && record.kind == BYWAY_COMPLETION_SELECTOR &&
           record.id == byway_selector_id(selector),
       "one record says that time ran out");
    OK(records_now() == 0, "and no other");
    OK(poll(&watch, 1, 0) == 0, "the descriptor is quiet");
    NEED(byway_dns_request_add_text(asked, TEXT("192.0.2.1"), NULL));
    NEED(byway_dns_request_finish(asked));
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_OK, "a further call goes on with the same question");
    byway_selection_free(selection);
    byway_selector_free(selector);
    OK(records_now() == 0, "to which nothing is owed");
    close_engine();
}

static size_t providers(byway_chain *chain)
{
    byway_invocation *call = NULL;
    size_t total = 0;
    NEED(byway_invocation_new(&call, NULL));
    NEED(byway_invocation_set_method(call, TEXT("hello")));
    NEED(byway_chain_route_tags(chain, call, NULL, 0, &total, NULL, NULL));
    byway_invocation_free(call);
    return total;
}

static byway_source *memory(const char *list, const char *port)
{
    byway_source *source = NULL;
    char rule[128];
    snprintf(rule, sizeof rule, "force: true\nconditions: ['method=hello => address=*:%s']\n", port);
    NEED(byway_source_new_memory(engine, &source, NULL));
    NEED(byway_source_put(source, TEXT("Greeter/providers"), TEXT(list), NULL));
    NEED(byway_source_put(source, TEXT("Greeter::.condition-router"), TEXT(rule), NULL));
    NEED(byway_source_put(source, TEXT("Greeter/routers"),
                          TEXT("condition://0.0.0.0/Greeter?rule=%3D%3E%20host%20!%3D%2010.9.9.9&force=true"), NULL));
    return source;
}

static int has_static_rule(byway_chain *chain)
{
    byway_text *text = NULL;
    byway_str shown;
    int found;
    NEED(byway_chain_status(chain, &text, NULL));
    byway_text_str(text, &shown);
    found = strstr(shown.data, "condition://0.0.0.0") != NULL;
    byway_text_free(text);
    return found;
}

static const char two[] = "tri://10.0.0.1:20880/Greeter\ntri://10.0.0.1:20881/Greeter\n";
static const char three[] = "tri://10.0.0.1:20880/Greeter\ntri://10.0.0.1:20881/Greeter\ntri://10.0.0.2:20881/Greeter\n";

/* A binding that waits for its source owes one record, and leaves what was bound before in force. */
static void first_states(void)
{
    byway_bind_options options = BYWAY_BIND_OPTIONS_INIT;
    byway_queue_options small = BYWAY_QUEUE_OPTIONS_INIT;
    byway_queue *full = NULL;
    byway_source *away, *one, *other;
    byway_chain *chain;
    byway_completion record;
    pthread_t thread;
    void *status;
    open_engine(FOR_EVER_MS, 0);
    chain = new_chain();
    one = memory(two, "20880");
    other = memory(three, "20881");
    STATUS(byway_chain_bind_source(chain, one, NULL, NULL, 0, NULL), BYWAY_OK, "bound to a source that is there");
    OK(records_now() == 0, "nothing is owed");
    OK(providers(chain) == 1 && has_static_rule(chain), "its list and rules are in force");
    away = nobody();
    if (!away) {
        SKIP("first states that come later", "built without ZooKeeper");
    } else {
        options.tag = 77;
        STATUS(byway_chain_bind_source(chain, away, &options, NULL, 0, NULL), BYWAY_PENDING, "bound to one that is away");
        OK(records_now() == 0, "no record before there is something to tell");
        OK(providers(chain) == 1 && has_static_rule(chain), "list and rules of the one before stay in force");
        STATUS(byway_chain_bind_source(chain, other, NULL, NULL, 0, NULL), BYWAY_OK, "bound to a third");
        record = one_record();
        OK(record.tag == 77 && record.kind == BYWAY_COMPLETION_SOURCE && record.status == BYWAY_E_CANCELED,
           "the record of the second says that it will not come (%s)", byway_status_name(record.status));
        OK(providers(chain) == 2 && has_static_rule(chain), "the third is in force, its static rule too");
        NEED(byway_source_put(one, TEXT("Greeter/providers"), TEXT(""), NULL));
        OK(providers(chain) == 2, "the first is not heard any more");

        options.tag = 78;
        STATUS(byway_chain_bind_source(chain, away, &options, NULL, 0, NULL), BYWAY_PENDING, "away again");
        STATUS(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL), BYWAY_OK, "and unbound");
        record = one_record();
        OK(record.tag == 78 && record.status == BYWAY_E_CANCELED, "one record");
        OK(providers(chain) == 0 && !has_static_rule(chain), "what served meanwhile is taken back too");

        small.capacity = 1;
        NEED(byway_queue_new(&small, &full, NULL));
        options.queue = full;
        STATUS(byway_chain_bind_source(chain, away, &options, NULL, 0, NULL), BYWAY_PENDING, "one record has room");
        {
            byway_chain *second = new_chain();
            STATUS(byway_chain_bind_source(second, away, &options, NULL, 0, NULL), BYWAY_E_LIMIT, "a second has none");
            byway_chain_release(second);
        }
        options.queue = NULL;
        options.tag = 79;
        STATUS(byway_chain_bind_source(chain, away, &options, NULL, 0, NULL), BYWAY_PENDING, "and away until the end");
        pthread_create(&thread, NULL, get_elsewhere, away);
        NEED(byway_engine_shutdown(engine, FOR_EVER_MS, NULL));
        pthread_join(thread, &status);
        STATUS((byway_status)(intptr_t)status, BYWAY_E_SHUTDOWN, "shutdown ends who waits for a source");
        record = one_record();
        OK(record.tag == 79 && record.status == BYWAY_E_SHUTDOWN, "shutdown: one record (%s)",
           byway_status_name(record.status));
        byway_queue_release(full);
    }
    byway_source_release(away);
    byway_source_release(one);
    byway_source_release(other);
    byway_chain_release(chain);
    close_engine();

    open_engine(FOR_EVER_MS, 0);
    chain = new_chain();
    NEED(byway_source_new_file(engine, TEXT("/nowhere"), NULL, 0, &away, NULL));
    options.queue = NULL;
    options.tag = 80;
    if (byway_chain_bind_source(chain, away, &options, NULL, 0, NULL) == BYWAY_PENDING) {
        record = one_record();
        OK(record.tag == 80 && record.status == BYWAY_OK, "a first state that came later");
    } else {
        OK(records_now() == 0, "a first state that was there already");
    }
    STATUS(byway_chain_bind_source(chain, away, &options, NULL, 0, NULL), BYWAY_OK, "what is known is there at once");
    OK(records_now() == 0, "and owes nothing");
    byway_source_release(away);
    byway_chain_release(chain);
    close_engine();
}

/* Unbinding takes back what the source gave, not the list the host gave itself. */
static void lists_of_the_host(void)
{
    byway_bind_options rules_only = BYWAY_BIND_OPTIONS_INIT;
    byway_chain *chain;
    byway_source *source, *away;
    byway_invokers *own = NULL;
    open_engine(FOR_EVER_MS, 0);
    chain = new_chain();
    source = memory(three, "20881");
    NEED(byway_chain_bind_source(chain, source, NULL, NULL, 0, NULL));
    NEED(byway_chain_invokers(chain, &own, NULL));
    NEED(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL));
    OK(providers(chain) == 0, "a source's list goes with it");

    NEED(byway_chain_set_invokers(chain, own, NULL, NULL));
    rules_only.flags = BYWAY_BIND_RULES_ONLY;
    NEED(byway_chain_bind_source(chain, source, &rules_only, NULL, 0, NULL));
    OK(providers(chain) == 2, "the source's rules over the host's list");
    NEED(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL));
    OK(providers(chain) == 3, "the rules are gone, the host's list stays");

    away = nobody();
    if (!away) {
        SKIP("a source that never came", "built without ZooKeeper");
    } else {
        STATUS(byway_chain_bind_source(chain, away, NULL, NULL, 0, NULL), BYWAY_PENDING, "a source that never comes");
        NEED(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL));
        OK(providers(chain) == 3, "has nothing to be taken back");
    }
    NEED(byway_chain_bind_source(chain, source, NULL, NULL, 0, NULL));
    NEED(byway_chain_set_invokers(chain, own, NULL, NULL));
    NEED(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL));
    OK(providers(chain) == 3, "a list that took the place of the source's stays too");
    byway_invokers_release(own);
    byway_source_release(away);
    byway_source_release(source);
    byway_chain_release(chain);
    close_engine();
}

int main(void)
{
    on_a_loop();
    polls_that_time_out();
    first_states();
    lists_of_the_host();
    return tap_done();
}
