/* Proxy scripts: where the text comes from, who resolves what they ask for, what they see of time, who waits for whom. */
#include "ask.h"
#include <pthread.h>
#include <unistd.h>

#define ALWAYS(proxy) "function FindProxyForURL(url, host) { return '" proxy "'; }"

static byway_proxy_selector *pac(const byway_pac_options *options, const byway_pac_callbacks *callbacks)
{
    byway_proxy_selector *made = NULL;
    NEED(byway_proxy_selector_new_pac(engine, options, callbacks, &made, NULL));
    return made;
}

static byway_pac_options text(const char *source)
{
    byway_pac_options options = BYWAY_PAC_OPTIONS_INIT;
    options.url = str("http://pac.example/p.pac");
    options.source = str(source);
    options.time_limit_ms = 20000; /* whatever else this machine does */
    return options;
}

static int64_t wall = 1488542400000; /* Friday 2017-03-03 12:00 UTC */

static int64_t own_wall(void *data)
{
    (void)data;
    return wall;
}

static uint64_t own_monotonic(void *data)
{
    (void)data;
    return 1000000000000u + (uint64_t)wall * 1000000u;
}

/* --- readings */

static void readings(void)
{
    byway_pac_options options = text(ALWAYS("SOCKS s:1"));
    byway_proxy_selector *made = pac(&options, NULL);
    byway_ip mine[2];
    byway_error *err = NULL;

    GIVES(made, "http://a/", "socks4://s:1");
    GIVES(made, "http://localhost/", "DIRECT");
    byway_proxy_selector_release(made);
    options.flags = BYWAY_PAC_SOCKS_IS_5 | BYWAY_PAC_ASK_LOOPBACK;
    made = pac(&options, NULL);
    GIVES(made, "http://localhost/", "socks5h://s:1");
    byway_proxy_selector_release(made);

    options = text(ALWAYS("nonsense"));
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "BYWAY_E_PAC");
    byway_proxy_selector_release(made);
    options.flags = BYWAY_PAC_EMPTY_IS_DIRECT;
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "DIRECT");
    byway_proxy_selector_release(made);

    options = text("function FindProxyForURL() { return 'PROXY plain'; } function FindProxyForURLEx() { return 'PROXY ex'; }");
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "http://plain:80");
    byway_proxy_selector_release(made);
    options.flags = BYWAY_PAC_EX;
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "http://ex:80");
    byway_proxy_selector_release(made);

    options = text("function FindProxyForURL() { return 'PROXY ' + myIpAddress() + '; PROXY ' + myIpAddressEx().length; }");
    NEED(byway_ip_parse("2001:db8::7", BYWAY_NUL, &mine[0], NULL));
    NEED(byway_ip_parse("192.0.2.7", BYWAY_NUL, &mine[1], NULL));
    options.my_addresses = mine;
    options.my_addresses_len = 2;
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "http://192.0.2.7:80 http://0.0.0.21:80");
    byway_proxy_selector_release(made);

    options = text("function FindProxyForURL(\n  url { }");
    STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, &err), BYWAY_E_PAC, "a text that does not parse");
    byway_error_free(err);
    options = text(ALWAYS("DIRECT"));
    options.utc_offset_minutes = 1441;
    STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, NULL), BYWAY_E_ARGUMENT, "a zone that is none");
    options.utc_offset_minutes = 0;
    options.memory_limit = 1024;
    STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, NULL), BYWAY_E_ARGUMENT, "too little memory");
    options.memory_limit = 0;
    options.flags = 1u << 31;
    STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, NULL), BYWAY_E_ENUM, "an unknown flag");
}

/* --- time */

static void clocks(void)
{
    byway_engine_options with = BYWAY_ENGINE_OPTIONS_INIT;
    byway_engine *usual = engine;
    byway_pac_options options = text("function FindProxyForURL() {\n"
                                     "  return 'PROXY h' + new Date().getHours() + (weekdayRange('FRI') ? 'fri' : 'not'); }");
    byway_proxy_selector *made;
    with.wall_ms = own_wall;
    with.monotonic_ns = own_monotonic;
    NEED(byway_engine_new(&with, &engine, NULL));
    options.flags = BYWAY_PAC_FIXED_ZONE;
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "http://h12fri:80");
    wall += 13 * 3600 * 1000;
    GIVES(made, "http://a/", "http://h1not:80");
    byway_proxy_selector_release(made);
    options.utc_offset_minutes = -120;
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "http://h23fri:80");
    byway_proxy_selector_release(made);
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    engine = usual;
}

/* --- names */

static byway_dns_request *kept;
static int lookups;
static char asked_name[64];
static pthread_t asked_on;

static byway_status later(void *user_data, byway_dns_request *request, const char *host, size_t len, const byway_call *call)
{
    (void)user_data;
    (void)len;
    (void)call;
    lookups++;
    asked_on = pthread_self();
    snprintf(asked_name, sizeof asked_name, "%s", host);
    kept = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static byway_status at_once(void *user_data, byway_dns_request *request, const char *host, size_t len,
                            const byway_call *call)
{
    (void)user_data;
    (void)len;
    (void)call;
    lookups++;
    asked_on = pthread_self();
    snprintf(asked_name, sizeof asked_name, "%s", host);
    if (strstr(host, "missing"))
        return BYWAY_E_UNKNOWN_HOST;
    return byway_dns_request_add_text(request, "2001:db8::5, 192.0.2.5", BYWAY_NUL, NULL);
}

static byway_dns *resolver(byway_status (*lookup)(void *, byway_dns_request *, const char *, size_t, const byway_call *))
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_dns *made = NULL;
    set.lookup = lookup;
    NEED(byway_dns_new(engine, &set, &made, NULL));
    return made;
}

static byway_selector *selector_of(byway_proxy_selector *chooser, byway_dns *dns, const char *host)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *made = NULL;
    options.host = str(host);
    options.port = 80;
    options.proxy_selector = chooser;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &made, NULL));
    byway_address_release(address);
    return made;
}

static size_t records(void)
{
    byway_completion found[8];
    byway_queue *queue = byway_engine_queue(engine);
    size_t n = 0;
    NEED(byway_queue_poll(queue, 10000, found, sizeof found[0], 8, &n, NULL));
    byway_queue_release(queue);
    return n;
}

static void names(void)
{
    byway_pac_options options = text("function FindProxyForURL(url, host) {\n"
                                     "  if (!isResolvable('missing.example')) return 'PROXY ' + dnsResolve('B\\u00fccher.example');\n"
                                     "  return 'PROXY wrong'; }");
    byway_dns *quick = resolver(at_once), *slow = resolver(later), *hosts = NULL;
    byway_proxy_selector *made = pac(&options, NULL);
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_status status;
    const char *got;

    got = ask_with(made, "http://a/", quick, -1);
    OK(!strcmp(got, "http://192.0.2.5:80"), "a resolver that answers in place: %s", got);
    OK(pthread_equal(asked_on, pthread_self()) && lookups == 2, "it is asked on the thread that asks, once per name (%d)",
       lookups);
    OK(!strcmp(asked_name, "xn--bcher-kva.example"), "for the canonical name: %s", asked_name);
    byway_proxy_selector_release(made);

    NEED(byway_dns_new_hosts(engine, "192.0.2.9 table.example\n", BYWAY_NUL, &hosts, NULL));
    options = text("function FindProxyForURL(url, host) {\n"
                   "  return isInNet('table.example', '192.0.2.0', '255.255.255.0') ? 'PROXY 192.0.2.1' : 'DIRECT'; }");
    options.dns = hosts;
    made = pac(&options, NULL);
    got = ask_with(made, "http://a/", slow, -1);
    OK(!strcmp(got, "http://192.0.2.1:80"), "the selector's own resolver counts before the address's: %s", got);
    byway_proxy_selector_release(made);

    /* From an event loop: nothing waits, one record comes when there is news. */
    options = text("function FindProxyForURL(url, host) { return 'PROXY ' + dnsResolve('slow.example'); }");
    made = pac(&options, NULL);
    lookups = 0;
    selector = selector_of(made, slow, "192.0.2.3");
    while ((status = byway_selector_poll_next(selector, &selection, NULL)) == BYWAY_PENDING && !lookups)
        (void)records();
    STATUS(status, BYWAY_PENDING, "a slow name: pending");
    OK(lookups == 1 && !strcmp(asked_name, "slow.example"), "it was asked for once");
    NEED(byway_dns_request_add_text(kept, "192.0.2.44", BYWAY_NUL, NULL));
    (void)byway_dns_request_finish(kept);
    byway_dns_request_release(kept);
    while ((status = byway_selector_poll_next(selector, &selection, NULL)) == BYWAY_PENDING)
        (void)records();
    STATUS(status, BYWAY_OK, "then the routes are there");
    {
        const byway_route *route = NULL;
        byway_proxy *proxy = NULL;
        byway_str host;
        NEED(byway_selection_next(selection, &route, NULL));
        NEED(byway_route_proxy(route, &proxy, NULL));
        byway_proxy_host(proxy, &host);
        OK(!strcmp(host.data, "192.0.2.44"), "through what the script made of the answer: %s", host.data);
        byway_proxy_release(proxy);
    }
    byway_selection_free(selection);
    byway_selector_free(selector);

    /* Given up: a late answer is harmless. */
    selector = selector_of(made, slow, "192.0.2.3");
    selection = NULL;
    while (lookups < 2 && byway_selector_next(selector, 1, &selection, NULL) == BYWAY_E_TIMEOUT)
        ;
    OK(lookups == 2, "asked again for another connection");
    byway_selector_free(selector);
    STATUS(byway_dns_request_finish(kept), BYWAY_E_CANCELED, "an answer after the selector is gone");
    byway_dns_request_release(kept);
    byway_proxy_selector_release(made);
    byway_dns_release(quick);
    byway_dns_release(slow);
    byway_dns_release(hosts);
}

/* --- fetching */

static int fetches;
static byway_proxy_selector *to_hand_in;
static const char *fetched;
static byway_status fetch_says;

static byway_status fetch(void *user_data, byway_proxy_selector *selector, const char *url, size_t len,
                          const byway_call *call)
{
    (void)user_data;
    (void)len;
    (void)call;
    fetches++;
    if (strcmp(url, "http://pac.example/p.pac"))
        return BYWAY_E_HOST;
    if (fetch_says == BYWAY_PENDING)
        to_hand_in = byway_proxy_selector_retain(selector);
    else if (fetch_says == BYWAY_OK && fetched)
        return byway_proxy_selector_set_script(selector, fetched, BYWAY_NUL, "utf-8", BYWAY_NUL, NULL);
    return fetch_says;
}

static void *hand_in(void *unused)
{
    (void)unused;
    NEED(byway_proxy_selector_set_script(to_hand_in, ALWAYS("PROXY later"), BYWAY_NUL, NULL, 0, NULL));
    return NULL;
}

static void fetching(void)
{
    byway_pac_callbacks set = BYWAY_PAC_CALLBACKS_INIT;
    byway_pac_options options = text(NULL);
    byway_engine_options with = BYWAY_ENGINE_OPTIONS_INIT;
    byway_engine *usual = engine;
    byway_proxy_selector *made;
    byway_error *err = NULL;
    pthread_t thread;

    STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, &err), BYWAY_E_ARGUMENT, "nobody fetches");
    byway_error_free(err);
    with.wall_ms = own_wall;
    with.monotonic_ns = own_monotonic;
    NEED(byway_engine_new(&with, &engine, NULL));
    set.fetch = fetch;
    options.refresh_ms = 60000;

    fetched = ALWAYS("PROXY first");
    made = pac(&options, &set);
    OK(fetches == 0, "nothing is fetched before a question");
    GIVES(made, "http://a/", "http://first:80");
    GIVES(made, "http://a/", "http://first:80");
    OK(fetches == 1, "one fetch for two questions (%d)", fetches);
    fetched = ALWAYS("PROXY second");
    wall += 59000;
    GIVES(made, "http://a/", "http://first:80");
    wall += 2000;
    GIVES(made, "http://a/", "http://second:80");
    OK(fetches == 2, "an old one is fetched anew (%d)", fetches);
    fetched = ALWAYS("PROXY third");
    NEED(byway_proxy_selector_refresh(made, NULL));
    GIVES(made, "http://a/", "http://third:80");
    fetched = ALWAYS("PROXY fourth");
    (void)byway_engine_network_changed(engine, NULL);
    GIVES(made, "http://a/", "http://fourth:80");
    OK(fetches == 4, "also when the host says so, and after the network changed (%d)", fetches);
    /* A refresh that comes later: the old text serves meanwhile. */
    fetch_says = BYWAY_PENDING;
    NEED(byway_proxy_selector_refresh(made, NULL));
    GIVES(made, "http://a/", "http://fourth:80");
    GIVES(made, "http://a/", "http://fourth:80");
    OK(fetches == 5, "one at a time (%d)", fetches);
    (void)hand_in(NULL);
    GIVES(made, "http://a/", "http://later:80");
    byway_proxy_selector_release(to_hand_in);
    /* A refresh that fails: the old text serves on, and the reason is told. */
    fetch_says = BYWAY_E_HOST;
    NEED(byway_proxy_selector_refresh(made, NULL));
    GIVES(made, "http://a/", "http://later:80");
    {
        byway_text *lines = NULL;
        byway_str shown;
        NEED(byway_proxy_selector_diagnostics(made, &lines, NULL));
        byway_text_str(lines, &shown);
        OK(strstr(shown.data, "not fetched") != NULL, "why it was not fetched: %s", shown.data);
        byway_text_free(lines);
    }
    byway_proxy_selector_release(made);

    /* The first one comes from another thread, while a question waits. */
    fetch_says = BYWAY_PENDING;
    made = pac(&options, &set);
    OK(!strcmp(ask_with(made, "http://a/", NULL, 0), "BYWAY_E_TIMEOUT"), "without waiting: it is not there yet");
    pthread_create(&thread, NULL, hand_in, NULL);
    GIVES(made, "http://a/", "http://later:80");
    pthread_join(thread, NULL);
    byway_proxy_selector_release(to_hand_in);
    byway_proxy_selector_release(made);

    /* It fails: an error, and no further attempt for a while. */
    made = pac(&options, &set);
    OK(!strcmp(ask_with(made, "http://a/", NULL, 0), "BYWAY_E_TIMEOUT"), "waiting for a fetch");
    STATUS(byway_proxy_selector_script_failed(to_hand_in, BYWAY_E_TIMEOUT, 7, "no route to the server", BYWAY_NUL), BYWAY_OK,
           "that fails");
    byway_proxy_selector_release(to_hand_in);
    fetches = 0;
    GIVES(made, "http://a/", "BYWAY_E_TIMEOUT");
    OK(fetches == 0, "no further attempt at once");
    fetch_says = BYWAY_OK;
    wall += 8001;
    GIVES(made, "http://a/", "http://fourth:80");
    byway_proxy_selector_release(made);

    /* Texts that are none. */
    fetched = "this is no script (";
    made = pac(&options, &set);
    GIVES(made, "http://a/", "BYWAY_E_PAC");
    byway_proxy_selector_release(made);
    fetched = NULL;
    made = pac(&options, &set);
    GIVES(made, "http://a/", "BYWAY_E_EMPTY_ANSWER");
    STATUS(byway_proxy_selector_set_script(made, ALWAYS("DIRECT"), BYWAY_NUL, "klingon", BYWAY_NUL, &err),
           BYWAY_E_UNSUPPORTED, "an unknown charset");
    byway_error_free(err);
    byway_proxy_selector_release(made);
    fetch_says = BYWAY_OK;
    fetched = NULL;

    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    engine = usual;
}

static void files(void)
{
    char path[] = "/tmp/byway-pac-XXXXXX", url[64];
    byway_pac_options options = text(NULL);
    byway_proxy_selector *made;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    if (!file || fputs(ALWAYS("PROXY file1"), file) < 0 || fclose(file)) {
        printf("Bail out! cannot write %s\n", path);
        exit(2);
    }
    snprintf(url, sizeof url, "file://%s", path);
    options.url = str(url);
    made = pac(&options, NULL);
    GIVES(made, "http://a/", "http://file1:80");
    file = fopen(path, "w");
    if (!file || fputs(ALWAYS("PROXY file2"), file) < 0 || fclose(file)) {
        printf("Bail out! cannot write %s\n", path);
        exit(2);
    }
    GIVES(made, "http://a/", "http://file1:80");
    NEED(byway_proxy_selector_refresh(made, NULL));
    GIVES(made, "http://a/", "http://file2:80");
    unlink(path);
    STATUS(byway_proxy_selector_refresh(made, NULL), BYWAY_E_OS, "a file that is gone");
    GIVES(made, "http://a/", "http://file2:80");
    byway_proxy_selector_release(made);
    options.url = str(path);
    STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, NULL), BYWAY_E_OS, "a path where nothing is");
}

/* --- a script that does not end is nobody else's trouble */

static byway_proxy_selector *endless;
static const char *endless_said;

static void *ask_endless(void *unused)
{
    byway_proxy *proxies[1];
    size_t total;
    (void)unused;
    endless_said = byway_status_name(byway_engine_proxies_for_url(engine, endless, "http://endless/", BYWAY_NUL, NULL, -1,
                                                                  proxies, 1, &total, NULL, NULL));
    return NULL;
}

static void slow_scripts(void)
{
    byway_pac_options options = text("function FindProxyForURL(url, host) {\n"
                                     "  if (host == 'endless') while (true) {}\n  return 'PROXY quick'; }");
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_error *err = NULL;
    pthread_t thread;
    byway_status status;
    int i;

    options.time_limit_ms = getenv("BYWAY_TEST_SLOW") ? 8000 : 2000;
    endless = pac(&options, NULL);
    pthread_create(&thread, NULL, ask_endless, NULL);
    for (i = 0; i < 8; i++)
        GIVES(endless, "http://a/", "http://quick:80");
    selector = selector_of(endless, NULL, "endless");
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "an event loop goes on meanwhile");
    while ((status = byway_selector_poll_next(selector, &selection, &err)) == BYWAY_PENDING)
        (void)records();
    STATUS(status, BYWAY_E_TIMEOUT, "and is told in the end");
    byway_error_free(err);
    byway_selector_free(selector);
    pthread_join(thread, NULL);
    OK(!strcmp(endless_said, "BYWAY_E_TIMEOUT"), "the question itself runs out of time: %s", endless_said);
    byway_proxy_selector_release(endless);

    /* A shutdown does not wait for it. */
    {
        byway_engine *usual = engine;
        NEED(byway_engine_new(NULL, &engine, NULL));
        /* Whoever waits for the one does not come to the end of the other. */
        options.time_limit_ms = 600000;
        endless = pac(&options, NULL);
        selector = selector_of(endless, NULL, "endless");
        STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "a script that runs for long");
        STATUS(byway_engine_shutdown(engine, 60000, NULL), BYWAY_OK, "a shutdown while it runs");
        byway_selector_free(selector);
        byway_proxy_selector_release(endless);
        byway_engine_release(engine);
        engine = usual;
    }
}

int main(void)
{
    if (!byway_has_feature("script", BYWAY_NUL)) {
        SKIP("proxy scripts", "built without them");
        return tap_done();
    }
    NEED(byway_engine_new(NULL, &engine, NULL));
    readings();
    clocks();
    names();
    fetching();
    files();
    slow_scripts();
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    return tap_done();
}
