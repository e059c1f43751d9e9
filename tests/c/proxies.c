/* Proxy selectors of the library: made of others, from settings, from scripts; and proxies that fail. */
#include "ask.h"
#include <unistd.h>

static byway_proxy_selector *fixed(int32_t kind, const char *host, int32_t port)
{
    byway_proxy *proxy = NULL;
    byway_proxy_selector *made = NULL;
    NEED(byway_proxy_new(kind, host, BYWAY_NUL, port, &proxy, NULL));
    NEED(byway_proxy_selector_new_fixed(engine, (const byway_proxy *const *)&proxy, 1, &made, NULL));
    byway_proxy_release(proxy);
    return made;
}

static byway_proxy_selector *script(const char *source)
{
    byway_pac_options options = BYWAY_PAC_OPTIONS_INIT;
    byway_proxy_selector *made = NULL;
    options.source = str(source);
    options.time_limit_ms = 20000; /* whatever else this machine does */
    NEED(byway_proxy_selector_new_pac(engine, &options, NULL, &made, NULL));
    return made;
}

static const char *diagnostics(byway_proxy_selector *selector)
{
    static char shown[512];
    byway_text *text = NULL;
    byway_str lines;
    NEED(byway_proxy_selector_diagnostics(selector, &text, NULL));
    byway_text_str(text, &lines);
    snprintf(shown, sizeof shown, "%s", lines.data);
    byway_text_free(text);
    return shown;
}

static void bypass(void)
{
    static const struct {
        int32_t style;
        uint32_t flags;
        const char *list, *dialect, *direct, *proxied;
    } cases[] = {
        { BYWAY_BYPASS_BROWSER, 0, "*.corp;10.0.0.0/8", NULL, "http://x.corp/", "http://corp/" },
        { BYWAY_BYPASS_BROWSER, 0, "<-loopback>", NULL, NULL, "http://localhost/" },
        { BYWAY_BYPASS_BROWSER, BYWAY_BYPASS_PROXY_LOOPBACK, "a", NULL, "http://a/", "http://127.0.0.1/" },
        { BYWAY_BYPASS_BROWSER_SUFFIX, 0, "corp", NULL, "http://xcorp/", "http://corpx/" },
        { BYWAY_BYPASS_WINDOWS, 0, "<local> 10.*", NULL, "http://intranet/", "http://a.example/" },
        { BYWAY_BYPASS_MACOS, BYWAY_BYPASS_EXCLUDE_SIMPLE, "*.corp\n169.254/16", NULL, "http://169.254.1.1/",
          "http://127.0.0.1/" },
        { BYWAY_BYPASS_NO_PROXY, 0, "example.com", NULL, "http://www.example.com/", "http://example.org/" },
        { BYWAY_BYPASS_NO_PROXY, BYWAY_BYPASS_STRICT_DOT, ".example.com", "byway", "http://www.example.com/",
          "http://example.com/" },
        { BYWAY_BYPASS_NO_PROXY, BYWAY_BYPASS_BLANK_SEPARATES, "a b", "byway", "http://b/", "http://c/" },
        { BYWAY_BYPASS_NO_PROXY, 0, "*.example.com", "node", "http://example.com/", "http://example.org/" },
        { BYWAY_BYPASS_BROWSER, BYWAY_BYPASS_REVERSED, "*.corp", NULL, "http://example.com/", "http://x.corp/" },
    };
    byway_bypass_options options = BYWAY_BYPASS_OPTIONS_INIT;
    byway_proxy_selector *inner = fixed(BYWAY_PROXY_HTTP, "p.example", 3128), *made = NULL, *outer = NULL;
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        options.list = str(cases[i].list);
        options.style = cases[i].style;
        options.flags = cases[i].flags;
        options.dialect = str(cases[i].dialect);
        NEED(byway_proxy_selector_new_bypass(engine, &options, inner, &made, NULL));
        if (cases[i].direct)
            GIVES(made, cases[i].direct, "DIRECT");
        GIVES(made, cases[i].proxied, "http://p.example:3128");
        byway_proxy_selector_release(made);
    }
    byway_bypass_options_init(&options);
    options.list = str("fine,not a host");
    NEED(byway_proxy_selector_new_bypass(engine, &options, inner, &made, NULL));
    OK(strstr(diagnostics(made), "not a host") != NULL, "what means nothing is named: %s", diagnostics(made));
    byway_proxy_selector_release(made);
    options.style = 77;
    STATUS(byway_proxy_selector_new_bypass(engine, &options, inner, &made, NULL), BYWAY_E_ENUM, "an unknown style");
    options.style = BYWAY_BYPASS_NO_PROXY;
    options.dialect = str("klingon");
    STATUS(byway_proxy_selector_new_bypass(engine, &options, inner, &made, NULL), BYWAY_E_ARGUMENT, "an unknown dialect");
    byway_bypass_options_init(&options);
    STATUS(byway_proxy_selector_new_bypass(engine, &options, NULL, &made, NULL), BYWAY_E_BAD_HANDLE, "nothing inside");

    made = byway_proxy_selector_retain(inner);
    for (i = 0; i < 16; i++) {
        NEED(byway_proxy_selector_new_bypass(engine, &options, made, &outer, NULL));
        byway_proxy_selector_release(made);
        made = outer;
    }
    STATUS(byway_proxy_selector_new_bypass(engine, &options, made, &outer, NULL), BYWAY_E_LIMIT, "17 deep are too many");
    GIVES(made, "http://a/", "http://p.example:3128");
    byway_proxy_selector_release(made);
    byway_proxy_selector_release(inner);
}

static int is_about(const byway_error *err, const char *parameter)
{
    byway_str about;
    byway_error_subject(err, &about);
    return strcmp(about.data, parameter) == 0;
}

static void bounds(void)
{
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 1);
    byway_bypass_options options = BYWAY_BYPASS_OPTIONS_INIT;
    byway_proxy_selector *inner = fixed(BYWAY_PROXY_HTTP, "p.example", 3128), *made = NULL;
    byway_str name = { "no_proxy", 8 }, value = { text, MOST };
    byway_error *err = NULL;
    size_t total;

    memset(text, 'a', MOST + 1);
    options.list = value;
    NEED(byway_proxy_selector_new_bypass(engine, &options, inner, &made, NULL));
    byway_proxy_selector_release(made);
    options.list.len++;
    STATUS(byway_proxy_selector_new_bypass(engine, &options, inner, &made, &err), BYWAY_E_LIMIT, "a list above 1 MiB");
    OK(is_about(err, "options.list"), "the list is named");
    byway_error_free(err);

    NEED(byway_proxy_selector_new_environment(engine, &name, &value, 1, NULL, 0, &made, NULL));
    byway_proxy_selector_release(made);
    value.len++;
    STATUS(byway_proxy_selector_new_environment(engine, &name, &value, 1, NULL, 0, &made, &err), BYWAY_E_LIMIT,
           "a variable above 1 MiB");
    OK(is_about(err, "values"), "the values are named");
    byway_error_free(err);
    STATUS(byway_proxy_selector_new_properties(engine, &name, &value, 1, 0, &made, NULL), BYWAY_E_LIMIT,
           "a property above 1 MiB");
    STATUS(byway_proxy_selector_new_windows(engine, "p:1", 3, text, MOST + 1, &made, &err), BYWAY_E_LIMIT,
           "exceptions above 1 MiB");
    OK(is_about(err, "bypass"), "the exceptions are named");
    byway_error_free(err);

    memcpy(text, "http://", 7);
    STATUS(byway_engine_proxies_for_url(engine, inner, text, MOST, NULL, 0, NULL, 0, &total, NULL, NULL),
           BYWAY_E_INVALID_URL, "a host of 1 MiB");
    STATUS(byway_engine_proxies_for_url(engine, inner, "http://..", 9, NULL, 0, NULL, 0, &total, NULL, NULL),
           BYWAY_E_INVALID_URL, "a host of dots");
    text[8] = '/';
    NEED(byway_engine_proxies_for_url(engine, inner, text, MOST, NULL, 0, NULL, 0, &total, NULL, NULL));
    OK(total == 1, "a path may be long");
    byway_proxy_selector_release(inner);
    free(text);
}

/* What is no regular file is refused at once: nothing is read without end, nobody is waited for. */
static void script_files(void)
{
    static const char *const urls[] = { "file:///dev/zero", "/dev/zero", "file:///" };
    byway_pac_options options = BYWAY_PAC_OPTIONS_INIT;
    byway_proxy_selector *made = NULL;
    size_t i;
    for (i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        options.url = str(urls[i]);
        STATUS(byway_proxy_selector_new_pac(engine, &options, NULL, &made, NULL), BYWAY_E_ARGUMENT, urls[i]);
    }
}

static void by_scheme_and_rule(void)
{
    byway_proxy_selector *web = fixed(BYWAY_PROXY_HTTP, "web", 1), *secure = fixed(BYWAY_PROXY_HTTPS, "secure", 2);
    byway_proxy_selector *rest = fixed(BYWAY_PROXY_SOCKS5H, "rest", 3), *made = NULL;
    byway_proxy_selector *script_of = script("function FindProxyForURL(url, host) { return 'PROXY s:' + host.length; }");
    byway_str schemes[] = { { "http", 4 }, { "HTTPS", 5 }, { "ftp", 3 } };
    const byway_proxy_selector *selectors[] = { web, secure, NULL };
    byway_str patterns[] = { { "*.corp;10.0.0.0/8", BYWAY_NUL }, { "https://pac.example", BYWAY_NUL }, { "local", 5 } };
    const byway_proxy_selector *chosen[] = { web, script_of, NULL };
    byway_error *err = NULL;

    NEED(byway_proxy_selector_new_per_scheme(engine, schemes, selectors, 3, rest, &made, NULL));
    GIVES(made, "http://a/", "http://web:1");
    GIVES(made, "ws://a/", "http://web:1");
    GIVES(made, "https://a/", "https://secure:2");
    GIVES(made, "ftp://a/", "DIRECT");
    GIVES(made, "gopher://a/", "socks5h://rest:3");
    byway_proxy_selector_release(made);
    schemes[1] = schemes[0];
    STATUS(byway_proxy_selector_new_per_scheme(engine, schemes, selectors, 3, rest, &made, NULL), BYWAY_E_ARGUMENT,
           "one scheme twice");

    NEED(byway_proxy_selector_new_rules(engine, patterns, chosen, 3, NULL, &made, NULL));
    GIVES(made, "http://x.corp/", "http://web:1");
    GIVES(made, "http://10.1.2.3/", "http://web:1");
    GIVES(made, "https://pac.example/", "http://s:11");
    GIVES(made, "http://local/", "DIRECT");
    GIVES(made, "http://pac.example/", "BYWAY_E_PROXY_SELECTOR");
    byway_proxy_selector_release(made);
    NEED(byway_proxy_selector_new_rules(engine, patterns, chosen, 3, rest, &made, NULL));
    GIVES(made, "http://pac.example/", "socks5h://rest:3");
    byway_proxy_selector_release(made);
    patterns[1] = str("://");
    STATUS(byway_proxy_selector_new_rules(engine, patterns, chosen, 3, rest, &made, &err), BYWAY_E_ARGUMENT,
           "a pattern that means nothing");
    {
        byway_str subject;
        byway_error_subject(err, &subject);
        OK(!strcmp(subject.data, "rule 1"), "is named: %s", subject.data);
    }
    byway_error_free(err);
    byway_proxy_selector_release(web);
    byway_proxy_selector_release(secure);
    byway_proxy_selector_release(rest);
    byway_proxy_selector_release(script_of);
}

/* A system selector from texts alone: no file, no environment of the process. */
static byway_system_options texts(void)
{
    static const byway_str none[1];
    byway_system_options options = BYWAY_SYSTEM_OPTIONS_INIT;
    options.names = options.values = none;
    return options;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file)) {
        printf("Bail out! cannot write %s\n", path);
        exit(2);
    }
}

static const char gnome[] = "[org/gnome/system/proxy]\nmode='manual'\nignore-hosts=['localhost', '*.corp']\n"
                            "[org/gnome/system/proxy/http]\nhost='g.example'\nport=3128\n";
static const char kde[] = "[Proxy Settings]\nProxyType=1\nhttpProxy=http://k.example 8080\nNoProxyFor=.corp\n";
static const char suse[] = "PROXY_ENABLED=\"yes\"\nHTTP_PROXY=\"http://s.example:8000\"\nNO_PROXY=\"corp\"\n";

static void settings(void)
{
    byway_system_options options = texts();
    byway_str name = { "http_proxy", 10 }, value = { "http://e.example:1", 18 };
    byway_proxy_selector *made = NULL;
    byway_text *text = NULL;
    byway_error *err = NULL;
    char folder[] = "/tmp/byway-settings-XXXXXX", path[128];

    NEED(byway_proxy_selector_new_system(engine, &options, NULL, &made, NULL));
    GIVES(made, "http://a/", "DIRECT");
    OK(strstr(diagnostics(made), "settings from nothing") != NULL, "where they are from: %s", diagnostics(made));
    options.sysconfig = str(suse);
    NEED(byway_proxy_selector_set_system(made, &options, NULL));
    GIVES(made, "http://a/", "http://s.example:8000");
    GIVES(made, "http://x.corp/", "DIRECT");
    options.kioslaverc = str(kde);
    NEED(byway_proxy_selector_set_system(made, &options, NULL));
    GIVES(made, "http://a/", "http://k.example:8080");
    options.keyfile = str(gnome);
    NEED(byway_proxy_selector_set_system(made, &options, NULL));
    GIVES(made, "http://a/", "http://g.example:3128");
    GIVES(made, "http://x.corp/", "DIRECT");
    options.desktop = str("KDE");
    NEED(byway_proxy_selector_set_system(made, &options, NULL));
    GIVES(made, "http://a/", "http://k.example:8080");
    options.names = &name;
    options.values = &value;
    options.n = 1;
    NEED(byway_proxy_selector_set_system(made, &options, NULL));
    GIVES(made, "http://a/", "http://e.example:1");
    options = texts();
    options.dconf = str("not a database");
    STATUS(byway_proxy_selector_set_system(made, &options, &err), BYWAY_E_SYNTAX, "settings that cannot be understood");
    byway_error_free(err);
    GIVES(made, "http://a/", "http://e.example:1");
    STATUS(byway_proxy_selector_script_url(made, &text, NULL), BYWAY_DONE, "no script among them");
    byway_proxy_selector_release(made);

    if (!mkdtemp(folder)) {
        printf("Bail out! no temporary folder\n");
        exit(2);
    }
    options = texts();
    options.config_home = str(folder);
    snprintf(path, sizeof path, "%s/kioslaverc", folder);
    write_file(path, kde);
    NEED(byway_proxy_selector_new_system(engine, &options, NULL, &made, NULL));
    GIVES(made, "http://a/", "http://k.example:8080");
    write_file(path, "[Proxy Settings]\nProxyType=1\nhttpProxy=http://k2.example 8080\n");
    GIVES(made, "http://a/", "http://k.example:8080");
    STATUS(byway_proxy_selector_refresh(made, NULL), BYWAY_OK, "files are read again when the host says so");
    GIVES(made, "http://a/", "http://k2.example:8080");
    write_file(path, "[Proxy Settings]\nProxyType=2\nProxy Config Script=http://pac.example/p.pac\n");
    NEED(byway_proxy_selector_refresh(made, NULL));
    NEED(byway_proxy_selector_script_url(made, &text, NULL));
    byway_text_free(text);
    GIVES(made, "http://a/", "BYWAY_E_PAC");
    unlink(path);
    NEED(byway_proxy_selector_refresh(made, NULL));
    GIVES(made, "http://a/", "DIRECT");
    byway_proxy_selector_release(made);
    rmdir(folder);

    NEED(byway_proxy_selector_new_windows(engine, "http=w:1;socks=s:2", BYWAY_NUL, "<local>;*.corp", BYWAY_NUL, &made, NULL));
    GIVES(made, "http://a.example/", "http://w:1");
    GIVES(made, "ftp://a.example/", "socks4://s:2");
    GIVES(made, "http://intranet/", "DIRECT");
    STATUS(byway_proxy_selector_refresh(made, NULL), BYWAY_E_STATE, "what came as a text cannot be read again");
    byway_proxy_selector_release(made);
}

/* The process's own environment is read when the host says so, also through what is made of it. */
static void environment(void)
{
    byway_bypass_options except = BYWAY_BYPASS_OPTIONS_INIT;
    byway_proxy_selector *own = NULL, *outer = NULL, *given = NULL;
    byway_str name = str("http_proxy"), value = str("http://e.example:9");

    setenv("http_proxy", "http://e.example:1", 1);
    NEED(byway_proxy_selector_new_environment(engine, NULL, NULL, 0, NULL, 0, &own, NULL));
    except.list = str("*.corp");
    NEED(byway_proxy_selector_new_bypass(engine, &except, own, &outer, NULL));
    GIVES(own, "http://a.example/", "http://e.example:1");
    setenv("http_proxy", "http://e.example:2", 1);
    GIVES(own, "http://a.example/", "http://e.example:1");
    STATUS(byway_proxy_selector_refresh(own, NULL), BYWAY_OK, "the environment is read again when the host says so");
    GIVES(own, "http://a.example/", "http://e.example:2");
    setenv("http_proxy", "http://e.example:3", 1);
    STATUS(byway_proxy_selector_refresh(outer, NULL), BYWAY_OK, "and by way of a selector that is made of it");
    GIVES(own, "http://a.example/", "http://e.example:3");
    unsetenv("http_proxy");
    NEED(byway_proxy_selector_new_environment(engine, &name, &value, 1, NULL, 0, &given, NULL));
    STATUS(byway_proxy_selector_refresh(given, NULL), BYWAY_E_STATE, "a table is not read again");
    byway_proxy_selector_release(given);
    byway_proxy_selector_release(outer);
    byway_proxy_selector_release(own);
}

/* A host's own selector inside others: asked, told of failures, passes. */
static int told;

static byway_status host_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                const byway_call *call)
{
    (void)user_data;
    (void)len;
    (void)call;
    if (strstr(uri, "pass"))
        return BYWAY_PASS;
    return byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "192.0.2.80", BYWAY_NUL, 8080, NULL);
}

static void host_failed(void *user_data, const char *uri, size_t len, const byway_route *route, int32_t failure,
                        int32_t os_errno, const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)route;
    (void)failure;
    (void)os_errno;
    (void)call;
    told++;
}

static void of_a_host(void)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_bypass_options options = BYWAY_BYPASS_OPTIONS_INIT;
    byway_address_options place = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_proxy_selector *own = NULL, *around = NULL, *usual = fixed(BYWAY_PROXY_HTTP, "usual", 9);
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    const byway_route *route = NULL;

    set.select = host_select;
    set.connect_failed = host_failed;
    NEED(byway_proxy_selector_new(engine, &set, &own, NULL));
    options.list = str("*.corp");
    NEED(byway_proxy_selector_new_bypass(engine, &options, own, &around, NULL));
    GIVES(around, "http://a.example/", "http://192.0.2.80:8080");
    GIVES(around, "http://a.corp/", "DIRECT");
    GIVES(around, "http://pass/", "DIRECT");
    NEED(byway_engine_set_proxy_selector(engine, usual, NULL));
    GIVES(around, "http://pass/", "http://usual:9");
    NEED(byway_engine_set_proxy_selector(engine, NULL, NULL));

    place.host = str("a.example");
    place.port = 80;
    place.proxy_selector = around;
    NEED(byway_address_new(engine, &place, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &selector, NULL));
    NEED(byway_selector_next(selector, 0, &selection, NULL));
    NEED(byway_selection_next(selection, &route, NULL));
    NEED(byway_engine_connect_failed(engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL));
    OK(told == 1, "a failure reaches the selector inside (%d)", told);
    byway_selection_free(selection);
    byway_selector_free(selector);
    byway_address_release(address);
    byway_proxy_selector_release(usual);
    byway_proxy_selector_release(around);
    byway_proxy_selector_release(own);
}

int main(void)
{
    NEED(byway_engine_new(NULL, &engine, NULL));
    bypass();
    bounds();
    script_files();
    settings();
    environment();
    of_a_host();
    if (byway_has_feature("script", BYWAY_NUL))
        by_scheme_and_rule();
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    return tap_done();
}
