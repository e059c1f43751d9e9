/* Proxy selectors: environment, exceptions, Java's properties, Windows, desktops, proxies that fail. */
#include "proxies.h"

static byway_engine *current;
static double clock_s;

static uint64_t monotonic(void *data)
{
    (void)data;
    return (uint64_t)(clock_s * 1e9) + 1000000000u;
}

static int64_t wall(void *data)
{
    (void)data;
    return (int64_t)(clock_s * 1000);
}

void set_clock(double now_s)
{
    clock_s = now_s;
}

void end_engine(void)
{
    if (current) {
        (void)byway_engine_shutdown(current, 60000, NULL);
        byway_engine_release(current);
        current = NULL;
    }
}

byway_engine *engine_at(double now_s)
{
    return engine_marking(now_s, -1);
}

byway_engine *engine_marking(double now_s, int64_t bad_proxy_ms)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    end_engine();
    clock_s = now_s;
    options.monotonic_ns = monotonic;
    options.wall_ms = wall;
    options.bad_proxy_ms = bad_proxy_ms;
    (void)byway_engine_new(&options, &current, NULL);
    return current;
}

byway_str str_of(const char *text)
{
    byway_str made = { NULL, 0 };
    made.data = text;
    made.len = text ? strlen(text) : 0;
    return made;
}

static const char *const kinds[] = { "direct", "http", "https", "socks4", "socks4a", "socks5", "socks5h" };

cJSON *proxies_of(byway_engine *engine, byway_proxy_selector *selector, const char *url, byway_dns *dns,
                  byway_status *status, cJSON **said, byway_error **err)
{
    byway_proxy *proxies[64];
    byway_text *text = NULL;
    size_t total = 0, i;
    cJSON *list;
    *status = byway_engine_proxies_for_url(engine, selector, url, BYWAY_NUL, dns, 120000, proxies, 64, &total,
                                           said ? &text : NULL, err);
    if (*status != BYWAY_OK)
        return NULL;
    list = cJSON_CreateArray();
    for (i = 0; i < total && i < 64; i++) {
        cJSON *one = cJSON_CreateObject();
        int32_t kind = byway_proxy_kind(proxies[i]);
        cJSON_AddStringToObject(one, "type", kind < 0 || kind > 6 ? "?" : kinds[kind]);
        if (proxies[i]) {
            byway_str host;
            (void)byway_proxy_host(proxies[i], &host);
            cJSON_AddStringToObject(one, "host", host.data);
            cJSON_AddNumberToObject(one, "port", byway_proxy_port(proxies[i]));
        }
        cJSON_AddItemToArray(list, one);
        byway_proxy_release(proxies[i]);
    }
    if (said) {
        byway_str json;
        byway_text_str(text, &json);
        *said = cJSON_Parse(json.data);
        byway_text_free(text);
    }
    return list;
}

cJSON *as_urls(cJSON *list)
{
    cJSON *urls = cJSON_CreateArray();
    const cJSON *one;
    cJSON_ArrayForEach(one, list) {
        char shown[512];
        const char *host = text_of(one, "host", "");
        if (!strcmp(text_of(one, "type", ""), "direct"))
            snprintf(shown, sizeof shown, "direct://");
        else
            snprintf(shown, sizeof shown, strchr(host, ':') ? "%s://[%s]:%.0f" : "%s://%s:%.0f", text_of(one, "type", ""),
                     host, number_of(one, "port", 0));
        cJSON_AddItemToArray(urls, cJSON_CreateString(shown));
    }
    cJSON_Delete(list);
    return urls;
}

int is_direct(cJSON *list)
{
    const int direct = cJSON_GetArraySize(list) == 1
        && !strcmp(text_of(cJSON_GetArrayItem(list, 0), "type", ""), "direct");
    cJSON_Delete(list);
    return direct;
}

double instant(const char *text)
{
    int y, m, d, hours, minutes, seconds;
    long days;
    if (!text || sscanf(text, "%d-%d-%dT%d:%d:%d", &y, &m, &d, &hours, &minutes, &seconds) != 6)
        return 0;
    /* Days from civil: March-based years make leap days last. */
    if (m <= 2) {
        y--;
        m += 9;
    } else
        m -= 3;
    days = 365L * y + y / 4 - y / 100 + y / 400 + (153L * m + 2) / 5 + d - 1 - 719468L;
    return (double)days * 86400 + hours * 3600 + minutes * 60 + seconds;
}

static byway_engine *usual(void)
{
    return current ? current : engine_at(0);
}

static byway_proxy_selector *fixed_http(const char *host, int32_t port)
{
    byway_proxy *proxy = NULL;
    byway_proxy_selector *made = NULL;
    if (byway_proxy_new(BYWAY_PROXY_HTTP, host, BYWAY_NUL, port, &proxy, NULL) == BYWAY_OK)
        (void)byway_proxy_selector_new_fixed(usual(), (const byway_proxy *const *)&proxy, 1, &made, NULL);
    byway_proxy_release(proxy);
    return made;
}

/* 1 when a list makes a URL an exception, 0 when not, -1 when it cannot be asked. */
static int is_exception(int32_t style, uint32_t flags, const char *dialect, const char *list, const char *url)
{
    byway_bypass_options options = BYWAY_BYPASS_OPTIONS_INIT;
    byway_proxy_selector *inner = fixed_http("proxy.test", 1), *made = NULL;
    byway_status status = BYWAY_E_STATE;
    cJSON *got = NULL;
    options.list = str_of(list);
    options.style = style;
    options.flags = flags;
    options.dialect = str_of(dialect);
    if (byway_proxy_selector_new_bypass(usual(), &options, inner, &made, NULL) == BYWAY_OK)
        got = proxies_of(usual(), made, url, NULL, &status, NULL, NULL);
    byway_proxy_selector_release(made);
    byway_proxy_selector_release(inner);
    return status == BYWAY_OK ? is_direct(got) : -1;
}

/* Implementations that are a dialect of byway, by the names the cases use. */
static const char *const dialects[][2] = {
    { "curl", "curl" }, { "go", "go" }, { "urllib", "python" }, { "undici", "node" }, { "chromium", "chromium" },
};
enum { DIALECTS = sizeof dialects / sizeof dialects[0] };

static enum outcome no_proxy(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *expect = get(test, "expect"), *answers = get(test, "answers");
    const char *list = text_of(input, "no_proxy", ""), *url = text_of(input, "url", "");
    size_t i;
    if (is_exception(BYWAY_BYPASS_NO_PROXY, BYWAY_BYPASS_PROXY_LOOPBACK, "byway", list, url) != flag_of(expect, "bypass"))
        return fails("bypass");
    if (is_exception(BYWAY_BYPASS_NO_PROXY, 0, "byway", list, url) != flag_of(expect, "bypass_with_implicit_loopback"))
        return fails("bypass_with_implicit_loopback");
    for (i = 0; i < DIALECTS; i++) {
        const cJSON *answer = get(answers, dialects[i][0]);
        if (cJSON_IsBool(answer)
            && is_exception(BYWAY_BYPASS_NO_PROXY, 0, dialects[i][1], list, url) != cJSON_IsTrue(answer))
            return fails("%s", dialects[i][0]);
    }
    return PASS;
}

static enum outcome browser_bypass(const cJSON *test)
{
    const cJSON *input = get(test, "input");
    /* A URL that is none is an error before any list is asked: no exception. */
    const int got = is_exception(BYWAY_BYPASS_BROWSER, 0, NULL, text_of(input, "rules", ""), text_of(input, "url", "")) == 1;
    return got == flag_of(get(test, "expect"), "bypass") ? PASS : fails("bypass: got %d", got);
}

/* ---- environment */

enum { MOST = 64 };

static size_t pairs_of(const cJSON *map, byway_str *names, byway_str *values, size_t n)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, map) {
        if (n < MOST && cJSON_IsString(one)) {
            names[n] = str_of(one->string);
            values[n++] = str_of(one->valuestring);
        }
    }
    return n;
}

static byway_proxy_selector *environment_of(const cJSON *map, const char *no_proxy_list, const char *dialect)
{
    byway_str names[MOST + 1], values[MOST + 1];
    byway_proxy_selector *made = NULL;
    size_t n = pairs_of(map, names, values, 0);
    if (no_proxy_list) {
        names[n] = str_of("no_proxy");
        values[n++] = str_of(no_proxy_list);
    }
    (void)byway_proxy_selector_new_environment(usual(), names, values, n, dialect, BYWAY_NUL, &made, NULL);
    return made;
}

/* `host:port` of the first entry; empty for DIRECT. Takes `list`. */
static const char *place(cJSON *list)
{
    static char shown[2][300];
    static int turn;
    const cJSON *one = cJSON_GetArrayItem(list, 0);
    char *at = shown[turn++ % 2];
    at[0] = '\0';
    if (get(one, "host"))
        snprintf(at, sizeof shown[0], "%s:%.0f", text_of(one, "host", ""), number_of(one, "port", 0));
    cJSON_Delete(list);
    return at;
}

/* A proxy value, as the widest grammar reads it; NULL when it is none. */
static cJSON *proxy_value(const char *value, const char *dialect)
{
    cJSON *map = cJSON_CreateObject(), *list;
    byway_proxy_selector *made;
    byway_status status;
    cJSON_AddStringToObject(map, "https_proxy", value);
    made = environment_of(map, NULL, dialect);
    list = proxies_of(usual(), made, "https://t.example/", NULL, &status, NULL, NULL);
    byway_proxy_selector_release(made);
    cJSON_Delete(map);
    return list;
}

static const char *category(byway_status status)
{
    switch (status) {
    case BYWAY_E_INVALID_PROXY:
        return "invalid_proxy";
    case BYWAY_E_INVALID_URL:
        return "invalid_url";
    case BYWAY_E_INVALID_PORT:
        return "invalid_port";
    case BYWAY_E_PROXY_SELECTOR:
        return "refused_in_cgi";
    default:
        return byway_status_name(status);
    }
}

/* Without credentials, which show nowhere. */
static cJSON *visible(const cJSON *list)
{
    cJSON *copy = cJSON_Duplicate(list, 1), *one;
    cJSON_ArrayForEach(one, copy) {
        cJSON_DeleteItemFromObjectCaseSensitive(one, "user");
        cJSON_DeleteItemFromObjectCaseSensitive(one, "password");
    }
    return copy;
}

static enum outcome expected(cJSON *got, byway_status status, const cJSON *expect, const char *what)
{
    const char *error = text_of(expect, "error", NULL);
    cJSON *want;
    enum outcome outcome;
    if (error || !got) {
        cJSON_Delete(got);
        if (!error || status == BYWAY_OK)
            return fails("%s: got %s, want %s", what, byway_status_name(status), error ? error : "a list");
        /* java.lang.IllegalArgumentException is the JDK's word for a port it cannot use. */
        if (strcmp(error, category(status)) && !strstr(error, "IllegalArgumentException") && strcmp(error, "configuration"))
            return fails("%s: got %s, want %s", what, category(status), error);
        return PASS;
    }
    want = visible(get(expect, "proxies"));
    outcome = same_json(got, want, what);
    cJSON_Delete(want);
    return outcome;
}

static enum outcome environment(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *expect = get(test, "expect");
    const char *url = text_of(input, "url", "");
    byway_proxy_selector *made = environment_of(get(input, "env"), NULL, "byway");
    byway_status status;
    cJSON *got = proxies_of(usual(), made, url, NULL, &status, NULL, NULL);
    enum outcome outcome = expected(got, status, expect, "byway");
    size_t i;
    byway_proxy_selector_release(made);
    for (i = 0; i < DIALECTS && outcome == PASS; i++) {
        const cJSON *answer = get(get(test, "answers"), dialects[i][0]);
        const char *proxy = text_of(answer, "proxy", NULL), *name = dialects[i][0], *at;
        const int errs = get(answer, "error") != NULL;
        char port[16];
        cJSON *want;
        if (!cJSON_IsObject(answer))
            continue;
        made = environment_of(get(input, "env"), NULL, dialects[i][1]);
        got = proxies_of(usual(), made, url, NULL, &status, NULL, NULL);
        byway_proxy_selector_release(made);
        if (!got) {
            /* Where a program hands a bad value on or drops it, byway has one rule: an error of the request. */
            if (errs || get(expect, "error"))
                continue;
            want = proxy ? proxy_value(proxy, "python") : NULL;
            if (!proxy || want)
                outcome = fails("%s: %s", name, byway_status_name(status));
            cJSON_Delete(want);
            continue;
        }
        at = place(got);
        if (errs)
            outcome = fails("%s: got %s, want an error", name, at);
        else if (proxy) {
            want = proxy_value(proxy, "python");
            if (!want || strcmp(at, place(want)))
                outcome = fails("%s: got %s, want %s", name, at, proxy);
            if (outcome == PASS && cJSON_IsNumber(get(answer, "connect_port"))) {
                snprintf(port, sizeof port, ":%.0f", number_of(answer, "connect_port", 0));
                if (strlen(at) < strlen(port) || strcmp(at + strlen(at) - strlen(port), port))
                    outcome = fails("%s: got %s, want port %s", name, at, port);
            }
        } else if (at[0])
            outcome = fails("%s: got %s, want DIRECT", name, at);
    }
    return outcome;
}

static enum outcome jdk_properties(const cJSON *test)
{
    static const char *const words[] = { "DIRECT", "HTTP", "HTTPS", "SOCKSv4", "SOCKSv4", "SOCKSv5", "SOCKSv5" };
    const cJSON *input = get(test, "input");
    const char *url = text_of(input, "url", ""), *released = text_of(get(test, "answers"), "jdk17", NULL);
    byway_str names[MOST], values[MOST];
    const size_t n = pairs_of(get(input, "properties"), names, values, 0);
    byway_proxy_selector *made = NULL;
    byway_status status;
    cJSON *got;
    enum outcome outcome;
    (void)byway_proxy_selector_new_properties(usual(), names, values, n, 1, &made, NULL);
    got = proxies_of(usual(), made, url, NULL, &status, NULL, NULL);
    outcome = expected(got, status, get(test, "expect"), "byway");
    byway_proxy_selector_release(made);
    if (outcome != PASS || !released)
        return outcome;
    (void)byway_proxy_selector_new_properties(usual(), names, values, n, 0, &made, NULL);
    got = proxies_of(usual(), made, url, NULL, &status, NULL, NULL);
    byway_proxy_selector_release(made);
    if (got) {
        const char *type = text_of(cJSON_GetArrayItem(got, 0), "type", ""), *at;
        char shown[400];
        size_t i = 0;
        while (i < 6 && strcmp(kinds[i], type))
            i++;
        at = place(got);
        snprintf(shown, sizeof shown, at[0] ? "%s %s" : "%s%s", words[i], at);
        return strcmp(shown, released) ? fails("jdk17: got %s, want %s", shown, released) : PASS;
    }
    return strstr(released, "Exception") ? PASS : fails("jdk17: got %s, want %s", byway_status_name(status), released);
}

/* ---- bugs.jsonl */

static const char *bug_dialect(const cJSON *test)
{
    const char *name = text_of(test, "dialect", "byway");
    return !strcmp(name, "ours") || !strcmp(name, "libproxy") ? "byway" : name;
}

static const char *url_of(const char *host, const cJSON *port)
{
    static char url[1200];
    char tail[16] = "";
    if (strstr(host, "://"))
        return host;
    if (cJSON_IsNumber(port))
        snprintf(tail, sizeof tail, ":%.0f", port->valuedouble);
    snprintf(url, sizeof url, strchr(host, ':') && host[0] != '[' ? "http://[%.1000s]%s/" : "http://%.1000s%s/", host, tail);
    return url;
}

static enum outcome bug_no_proxy(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *want = get(get(test, "expect"), "bypass"), *port = get(input, "scheme_port");
    const cJSON *checks = get(input, "checks"), *hosts = get(input, "hosts"), *one;
    const cJSON *all = checks ? checks : hosts;
    const char *dialect = bug_dialect(test), *list = text_of(input, "no_proxy", "");
    const uint32_t flags = BYWAY_BYPASS_PROXY_LOOPBACK;
    cJSON *got;
    if (!checks && !hosts) {
        const char *host = text_of(input, "host", text_of(input, "url", ""));
        return same_json(cJSON_CreateBool(is_exception(BYWAY_BYPASS_NO_PROXY, flags, dialect, list, url_of(host, port)) == 1),
                         want, "bypass");
    }
    got = cJSON_CreateArray();
    cJSON_ArrayForEach(one, all) {
        const char *host = checks ? cJSON_GetStringValue(cJSON_GetArrayItem(one, 1)) : one->valuestring;
        const char *of = checks ? cJSON_GetStringValue(cJSON_GetArrayItem(one, 0)) : list;
        cJSON_AddItemToArray(
            got, cJSON_CreateBool(is_exception(BYWAY_BYPASS_NO_PROXY, flags, dialect, of, url_of(host, port)) == 1));
    }
    return same_json(got, want, "bypass");
}

static enum outcome bug_proxy_for_url(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *expect = get(test, "expect"), *urls = get(input, "urls");
    const cJSON *explicit_ = get(input, "explicit"), *one;
    const char *dialect = bug_dialect(test);
    cJSON *named = cJSON_CreateObject();
    byway_proxy_selector *made;
    enum outcome outcome = PASS;
    int index, count = urls ? cJSON_GetArraySize(urls) : 1;
    cJSON_ArrayForEach(one, explicit_) {
        char name[64];
        snprintf(name, sizeof name, strcmp(one->string, "no_proxy") ? "%.40s_proxy" : "%.40s", one->string);
        cJSON_AddStringToObject(named, name, one->valuestring);
    }
    /* What a person set explicitly beats the environment as a whole. */
    made = cJSON_GetArraySize(named) > 0 ? environment_of(named, NULL, dialect)
                                         : environment_of(get(input, "env"), text_of(input, "no_proxy", NULL), dialect);
    for (index = 0; index < count && outcome == PASS; index++) {
        const char *url = urls ? cJSON_GetStringValue(cJSON_GetArrayItem(urls, index)) : text_of(input, "url", "");
        const char *asked = url ? url : "";
        const cJSON *want = get(expect, "proxy"), *error = get(expect, "error");
        byway_status status;
        cJSON *got = proxies_of(usual(), made, asked, NULL, &status, NULL, NULL), *value;
        if (cJSON_IsArray(want))
            want = cJSON_GetArrayItem(want, index);
        if (cJSON_IsArray(error))
            error = cJSON_GetArrayItem(error, index);
        if (!got || error) {
            if (got || !error || strcmp(category(status), cJSON_GetStringValue(error)))
                outcome = fails("%s: got %s", asked, category(status));
            cJSON_Delete(got);
            continue;
        }
        value = cJSON_IsString(want) ? proxy_value(want->valuestring, !strcmp(dialect, "go") ? "go" : "byway") : NULL;
        if (value) {
            outcome = same_json(got, value, asked);
            cJSON_Delete(value);
        } else if (!is_direct(got))
            outcome = fails("%s: want DIRECT", asked);
    }
    byway_proxy_selector_release(made);
    cJSON_Delete(named);
    return outcome;
}

static enum outcome bug_windows(const cJSON *test)
{
    byway_proxy_selector *made = NULL;
    const cJSON *one;
    enum outcome outcome = PASS;
    if (byway_proxy_selector_new_windows(usual(), text_of(get(test, "input"), "ProxyServer", ""), BYWAY_NUL, "<-loopback>",
                                         BYWAY_NUL, &made, NULL) != BYWAY_OK)
        return fails("not taken");
    cJSON_ArrayForEach(one, get(test, "expect")) {
        const int socks = !strcmp(one->string, "socks");
        char url[64], want[200];
        byway_status status;
        cJSON *got;
        const char *found;
        snprintf(url, sizeof url, "%.20s://h.example/", socks ? "gopher" : one->string);
        got = as_urls(proxies_of(usual(), made, url, NULL, &status, NULL, NULL));
        found = cJSON_GetStringValue(cJSON_GetArrayItem(got, 0));
        if (!cJSON_IsString(one))
            snprintf(want, sizeof want, "direct://");
        else if (!strncmp(one->valuestring, "socks://", 8))
            snprintf(want, sizeof want, "socks4://%s", one->valuestring + 8);
        else
            snprintf(want, sizeof want, "%s", one->valuestring);
        if (!found || (socks && cJSON_IsString(one) ? strncmp(found, "socks4://", 9) != 0 : strcmp(found, want) != 0))
            outcome = fails("%s: got %s, want %s", one->string, found ? found : "nothing", want);
        cJSON_Delete(got);
    }
    byway_proxy_selector_release(made);
    return outcome;
}

static enum outcome bug_exceptions(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *one;
    const char *kind = text_of(test, "kind", "");
    char list[2000] = "";
    cJSON *got = cJSON_CreateArray();
    byway_proxy_selector *made = NULL;
    if (!strcmp(kind, "jvm_non_proxy_hosts")) {
        byway_str names[2], values[2];
        names[0] = str_of("http.proxyHost");
        values[0] = str_of("p");
        names[1] = str_of("http.nonProxyHosts");
        values[1] = str_of(text_of(input, "nonProxyHosts", ""));
        (void)byway_proxy_selector_new_properties(usual(), names, values, 2, 1, &made, NULL);
    }
    cJSON_ArrayForEach(one, get(input, "exceptions")) {
        strncat(list, one->valuestring, 200);
        strcat(list, "\n");
    }
    cJSON_ArrayForEach(one, get(input, "hosts")) {
        const char *url = url_of(one->valuestring, NULL);
        byway_status status;
        int direct;
        if (made)
            direct = is_direct(proxies_of(usual(), made, url, NULL, &status, NULL, NULL));
        else if (!strcmp(kind, "win_bypass"))
            direct = is_exception(BYWAY_BYPASS_WINDOWS, 0, NULL, text_of(input, "ProxyOverride", ""), url);
        else
            direct = is_exception(BYWAY_BYPASS_MACOS, flag_of(input, "exclude_simple") ? BYWAY_BYPASS_EXCLUDE_SIMPLE : 0,
                                  NULL, list, url);
        cJSON_AddItemToArray(got, cJSON_CreateBool(direct == 1));
    }
    byway_proxy_selector_release(made);
    return same_json(got, get(get(test, "expect"), "bypass"), "bypass");
}

/* As GNOME's keyfile writes it. */
static enum outcome bug_desktop(const cJSON *test)
{
    static const char *const schemes[] = { "http", "https", "ftp", "socks" };
    static const byway_str none[1];
    const cJSON *input = get(test, "input");
    byway_system_options options = BYWAY_SYSTEM_OPTIONS_INIT;
    byway_proxy_selector *made = NULL;
    byway_status status;
    char file[2000];
    size_t i;
    cJSON *got;
    enum outcome outcome;
    snprintf(file, sizeof file, "[org/gnome/system/proxy]\nmode='%.40s'\nignore-hosts=@as []\n", text_of(input, "mode", "none"));
    for (i = 0; i < 4; i++) {
        const char *value = text_of(input, schemes[i], ""), *colon = strrchr(value, ':');
        if (colon)
            snprintf(file + strlen(file), sizeof file - strlen(file), "[org/gnome/system/proxy/%s]\nhost='%.*s'\nport=%s\n",
                     schemes[i], (int)(colon - value), value, colon + 1);
    }
    options.names = options.values = none;
    options.keyfile = str_of(file);
    if (byway_proxy_selector_new_system(usual(), &options, NULL, &made, NULL) != BYWAY_OK)
        return fails("not taken: %s", file);
    got = proxies_of(usual(), made, text_of(input, "url", ""), NULL, &status, NULL, NULL);
    outcome = same_json(as_urls(got), get(get(test, "expect"), "proxies"), "proxies");
    byway_proxy_selector_release(made);
    return outcome;
}

static enum outcome bug_wpad_names(const cJSON *test)
{
    byway_text *text = NULL;
    byway_str lines;
    char copy[2000], *line;
    cJSON *got = cJSON_CreateArray();
    if (byway_wpad_names(text_of(get(test, "input"), "local_domain", ""), BYWAY_NUL, NULL, 0, &text, NULL) == BYWAY_OK) {
        byway_text_str(text, &lines);
        snprintf(copy, sizeof copy, "%s", lines.data);
        byway_text_free(text);
        for (line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
            cJSON_AddItemToArray(got, cJSON_CreateString(line));
    }
    return same_json(got, get(get(test, "expect"), "names"), "names");
}

const struct kind proxy_kinds[] = {
    { "proxy", "noproxy", no_proxy },
    { "proxy", "bypass", browser_bypass },
    { "proxy", "env", environment },
    { "proxy", "nonproxyhosts", jdk_properties },
    { "bugs", "no_proxy", bug_no_proxy },
    { "bugs", "no_proxy_list", bug_no_proxy },
    { "bugs", "libproxy_ignore", bug_no_proxy },
    { "bugs", "proxy_for_url", bug_proxy_for_url },
    { "bugs", "proxy_for_url_list", bug_proxy_for_url },
    { "bugs", "win_proxy_server", bug_windows },
    { "bugs", "win_bypass", bug_exceptions },
    { "bugs", "mac_exceptions", bug_exceptions },
    { "bugs", "jvm_non_proxy_hosts", bug_exceptions },
    { "bugs", "desktop_config", bug_desktop },
    { "bugs", "wpad_names", bug_wpad_names },
    { NULL, NULL, NULL },
};
