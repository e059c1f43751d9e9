/* Proxy selectors of the library: made of others, from settings, from scripts; and proxies that fail. */
#include "tap.h"
#include <pthread.h>
#include <unistd.h>

static byway_engine *engine;

static byway_str str(const char *text)
{
    byway_str made = { text, text ? strlen(text) : 0 };
    return made;
}

/* The list a selector gives for a URL, as text; the status's name when it gives none. */
static const char *ask_with(byway_proxy_selector *selector, const char *url, byway_dns *dns, int64_t timeout_ms)
{
    static char shown[512];
    byway_proxy *proxies[8];
    byway_text *text = NULL;
    byway_str line;
    size_t total = 0, i;
    byway_status status = byway_engine_proxies_for_url(engine, selector, url, BYWAY_NUL, dns, timeout_ms, proxies, 8,
                                                       &total, NULL, NULL);
    if (status != BYWAY_OK)
        return byway_status_name(status);
    shown[0] = '\0';
    for (i = 0; i < total && i < 8; i++) {
        if (i)
            strcat(shown, " ");
        if (!proxies[i]) {
            strcat(shown, "DIRECT");
            continue;
        }
        NEED(byway_proxy_text(proxies[i], &text, NULL));
        byway_text_str(text, &line);
        strncat(shown, line.data, 100);
        byway_text_free(text);
        byway_proxy_release(proxies[i]);
    }
    return shown;
}

static const char *ask(byway_proxy_selector *selector, const char *url)
{
    return ask_with(selector, url, NULL, -1);
}

#define GIVES(selector, url, want) \
    do { \
        const char *got_ = ask(selector, url); \
        if (!OK(!strcmp(got_, want), "%s: %s", url, want)) \
            printf("# got %s\n", got_); \
    } while (0)

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
    byway_proxy_selector *made = NULL;
    NEED(byway_proxy_selector_new_script(engine, "test.pac", BYWAY_NUL, source, BYWAY_NUL, &made, NULL));
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

int main(void)
{
    NEED(byway_engine_new(NULL, &engine, NULL));
    bypass();
    if (byway_has_feature("script", BYWAY_NUL))
        by_scheme_and_rule();
    NEED(byway_engine_shutdown(engine, 1000, NULL));
    byway_engine_release(engine);
    return tap_done();
}
