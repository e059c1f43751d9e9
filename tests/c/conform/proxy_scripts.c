/* Proxy scripts: helpers, arguments, answers, limits. What a helper gives comes back as an element of the answer that names
 * no proxy; the explanation shows the answer whole. */
#include "proxies.h"

/* Names as a case gives them, and what was asked. */
static const cJSON *table;
static cJSON *asked;

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    const cJSON *one;
    int found = 0;
    (void)user_data;
    (void)len;
    (void)call;
    cJSON_AddItemToArray(asked, cJSON_CreateString(host));
    cJSON_ArrayForEach(one, table) {
        const char *pattern = one->string;
        const size_t tail = pattern[0] == '*' ? strlen(pattern + 1) : 0;
        if (strcmp(pattern, "myIpAddress")
            && (tail ? strlen(host) >= tail && !strcmp(host + strlen(host) - tail, pattern + 1) : !strcmp(host, pattern))) {
            (void)byway_dns_request_add_text(request, one->valuestring, BYWAY_NUL, NULL);
            found = 1;
        }
    }
    return found ? BYWAY_OK : BYWAY_E_UNKNOWN_HOST;
}

struct run {
    byway_engine *engine;
    byway_dns *dns;
    byway_pac_options options;
    byway_ip mine[16];
};

static void begin(struct run *run, const cJSON *input, const char *now, uint32_t flags)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    const cJSON *one, *mine = get(get(input, "dns"), "myIpAddress");
    run->engine = engine_at(instant(now));
    set.lookup = lookup;
    run->dns = NULL;
    (void)byway_dns_new(run->engine, &set, &run->dns, NULL);
    table = get(input, "dns");
    asked = cJSON_CreateArray();
    byway_pac_options_init(&run->options);
    run->options.dns = run->dns;
    run->options.flags = flags | BYWAY_PAC_FIXED_ZONE;
    run->options.my_addresses = run->mine;
    /* Ample, so that a busy machine changes no answer; cases about time bring their own. */
    run->options.time_limit_ms = 60000;
    if (cJSON_IsString(mine)
        && byway_ip_parse(mine->valuestring, BYWAY_NUL, &run->mine[run->options.my_addresses_len], NULL) == BYWAY_OK)
        run->options.my_addresses_len++;
    cJSON_ArrayForEach(one, get(input, "local_addresses")) {
        if (run->options.my_addresses_len < 16
            && byway_ip_parse(one->valuestring, BYWAY_NUL, &run->mine[run->options.my_addresses_len], NULL) == BYWAY_OK)
            run->options.my_addresses_len++;
    }
}

static void end(struct run *run)
{
    byway_dns_release(run->dns);
    cJSON_Delete(asked);
    end_engine();
}

static byway_proxy_selector *made_of(struct run *run, const char *script, byway_status *status, byway_error **err)
{
    byway_proxy_selector *made = NULL;
    run->options.source = str_of(script);
    *status = byway_proxy_selector_new_pac(run->engine, &run->options, NULL, &made, err);
    return made;
}

static const char *message(byway_error *err)
{
    static char shown[1000];
    byway_str text;
    byway_error_message(err, &text);
    snprintf(shown, sizeof shown, "%s", text.data);
    byway_error_free(err);
    return shown;
}

static char *decoded(const char *text)
{
    char *out = malloc(strlen(text) + 1), *at = out;
    unsigned byte;
    while (*text) {
        if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
            *at++ = (char)byte;
            text += 3;
        } else
            *at++ = *text++;
    }
    *at = '\0';
    return out;
}

/* What an expression gives, as JSON; NULL and the message when it throws. `said` gets the explanation. */
static char *value_of(struct run *run, const char *expression, const char *url, cJSON **said, const char **threw)
{
    static const char form[] = "function FindProxyForURL(url, host) {\n  var value = (%s);\n"
                               "  return 'DIRECT; =' + encodeURIComponent(String(JSON.stringify(value)));\n}";
    char *script = malloc(sizeof form + strlen(expression)), *value = NULL;
    byway_status status;
    byway_error *err = NULL;
    byway_proxy_selector *made;
    cJSON *list;
    sprintf(script, form, expression);
    *said = NULL;
    made = made_of(run, script, &status, &err);
    list = made ? proxies_of(run->engine, made, url, NULL, &status, said, &err) : NULL;
    if (list) {
        const char *answer = text_of(get(*said, "script"), "answer", "");
        const char *at = strchr(answer, '=');
        value = decoded(at ? at + 1 : "");
        cJSON_Delete(list);
    } else
        *threw = message(err);
    byway_proxy_selector_release(made);
    free(script);
    return value;
}

static enum outcome helper(struct run *run, const cJSON *input, const cJSON *expect)
{
    const char *op = text_of(input, "op", ""), *url = text_of(input, "url", "http://example.com/"), *threw = "";
    const int arguments = !strcmp(op, "arguments");
    const char *expression = arguments ? "{url_arg: url, host_arg: host}" : text_of(input, "expr", "");
    cJSON *said, *got;
    char *value = value_of(run, expression, url, &said, &threw);
    enum outcome outcome;
    if (flag_of(expect, "throws"))
        outcome = value || !strstr(threw, text_of(expect, "kind", "")) ? fails("got %s %s", value ? value : "error", threw)
                                                                        : PASS;
    else if (!value)
        outcome = fails("threw %s", threw);
    else if (!strcmp(op, "helper_resolver_sees"))
        outcome = same_json(cJSON_Duplicate(asked, 1), get(expect, "resolver_input"), "resolver_input");
    else if (!strcmp(op, "alert")) {
        char logged[4096];
        snprintf(logged, sizeof logged, "%s", text_of(get(said, "script"), "alerts", ""));
        if (logged[0] && logged[strlen(logged) - 1] == '\n')
            logged[strlen(logged) - 1] = '\0';
        outcome = same_json(cJSON_CreateString(logged), get(expect, "logged"), "logged");
    } else {
        got = cJSON_Parse(value);
        if (!got)
            got = cJSON_CreateString(value);
        outcome = same_json(got, arguments ? expect : get(expect, "value"), op);
    }
    cJSON_Delete(said);
    free(value);
    return outcome;
}

/* A script for the cases that describe one in words. */
static const char *described(const char *script)
{
    static char text[400];
    int nth = 0;
    if (!strcmp(script, "(FindProxyForURL is a getter that throws on first access)"))
        nth = 1;
    if (!strcmp(script, "(FindProxyForURL is a getter that throws on second access)"))
        nth = 2;
    if (!nth)
        return script;
    snprintf(text, sizeof text,
             "var n = 0; Object.defineProperty(globalThis, 'FindProxyForURL', { get() { if (++n >= %d) throw new Error('no'); "
             "return function () { return 'DIRECT'; }; } });", nth);
    return text;
}

static int is_one_of(const char *word, const char *alternatives)
{
    const size_t len = strlen(word);
    const char *at = alternatives;
    while ((at = strstr(at, word)) != NULL) {
        if ((at == alternatives || at[-1] == '|') && (at[len] == '\0' || at[len] == '|'))
            return 1;
        at += len;
    }
    return 0;
}

static const char *pac_word(byway_status status)
{
    return status == BYWAY_E_TIMEOUT ? "pac_timeout"
        : status == BYWAY_E_LIMIT    ? "pac_memory"
        : status == BYWAY_E_PAC      ? "pac_script_failed"
                                     : byway_status_name(status);
}

static cJSON *places(struct run *run, byway_proxy_selector *made, const char *url, int calls)
{
    cJSON *got = cJSON_CreateArray();
    while (calls-- > 0) {
        byway_status status;
        cJSON *list = proxies_of(run->engine, made, url, NULL, &status, NULL, NULL);
        const cJSON *first = cJSON_GetArrayItem(list, 0);
        char shown[300];
        snprintf(shown, sizeof shown, "%s:%.0f", text_of(first, "host", ""), number_of(first, "port", 0));
        cJSON_AddItemToArray(got, cJSON_CreateString(shown));
        cJSON_Delete(list);
    }
    return got;
}

static enum outcome find(struct run *run, const cJSON *input, const cJSON *expect)
{
    const char *script = described(text_of(input, "script", "")), *error = text_of(expect, "error", NULL);
    const char *url = text_of(input, "url", "http://example.com/"), *stage = text_of(expect, "stage", NULL);
    byway_status status;
    byway_error *err = NULL;
    byway_proxy_selector *made;
    enum outcome outcome;
    cJSON *list = NULL;
    int loading;
    if (error && is_one_of("pac_timeout", error))
        run->options.time_limit_ms = 0;
    made = made_of(run, script, &status, &err);
    loading = !made;
    if (made && get(expect, "sequence")) {
        const int calls = (int)number_of(input, "calls", 1);
        outcome = same_json(places(run, made, url, calls), get(expect, "sequence"), "sequence");
        if (outcome == PASS) {
            (void)byway_proxy_selector_set_script(made, script, BYWAY_NUL, NULL, 0, NULL);
            outcome = same_json(places(run, made, url, calls), get(expect, "after_reload"), "after reload");
        }
        byway_proxy_selector_release(made);
        return outcome;
    }
    if (made)
        list = proxies_of(run->engine, made, url, NULL, &status, NULL, &err);
    if (!error)
        outcome = list ? same_json(list, get(expect, "proxies"), "proxies") : fails("%s", message(err));
    else if (list) {
        cJSON_Delete(list);
        outcome = fails("got an answer, want %s", error);
    } else {
        byway_error_free(err);
        outcome = PASS;
        if (!is_one_of(pac_word(status), error) || (stage && loading != !strcmp(stage, "load")))
            outcome = fails("got %s%s, want %s", loading ? "while loading " : "", pac_word(status), error);
    }
    byway_proxy_selector_release(made);
    return outcome;
}

static int is_in_names(const cJSON *names, const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, names) {
        if (!strcmp(one->valuestring, name))
            return 1;
    }
    return 0;
}

/* Browsers' rules: these cases are about what scripts in the wild rely on. */
static enum outcome pac(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *expect = get(test, "expect");
    struct run run;
    enum outcome outcome;
    if (!byway_has_feature("script", BYWAY_NUL))
        return skips("built without scripts");
    if (is_in_names(get(expect, "resolver_input"), ""))
        return skips("a resolver is asked for names, and the empty text is none");
    begin(&run, input, text_of(input, "now", NULL), BYWAY_PAC_EMPTY_IS_DIRECT | BYWAY_PAC_BROWSER_CALENDAR);
    outcome = !strcmp(text_of(input, "op", ""), "find") ? find(&run, input, expect) : helper(&run, input, expect);
    end(&run);
    return outcome;
}

static enum outcome pac_string(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *expect = get(test, "expect");
    struct run run;
    char *literal, *script;
    byway_status status;
    byway_proxy_selector *made;
    cJSON *list;
    enum outcome outcome;
    if (get(input, "keep_types"))
        return skips("no list of kinds a host can use");
    if (!byway_has_feature("script", BYWAY_NUL))
        return skips("built without scripts");
    begin(&run, input, NULL, BYWAY_PAC_EMPTY_IS_DIRECT);
    literal = cJSON_PrintUnformatted(get(input, "pac"));
    script = malloc(strlen(literal) + 64);
    sprintf(script, "function FindProxyForURL() { return %s; }", literal);
    made = made_of(&run, script, &status, NULL);
    list = made ? proxies_of(run.engine, made, "http://example.com/", NULL, &status, NULL, NULL) : NULL;
    if (get(expect, "error")) {
        outcome = list ? fails("got a list") : PASS;
        cJSON_Delete(list);
    } else
        outcome = list ? same_json(list, get(expect, "proxies"), "proxies") : fails("%s", byway_status_name(status));
    byway_proxy_selector_release(made);
    free(script);
    cJSON_free(literal);
    end(&run);
    return outcome;
}

/* `socks5://` in these cases is a proxy that resolves, `socks://` SOCKS 4. */
static cJSON *own_words(const cJSON *urls)
{
    cJSON *out = cJSON_CreateArray();
    const cJSON *one;
    cJSON_ArrayForEach(one, urls) {
        char shown[300];
        const char *url = one->valuestring, *rest = strstr(url, "://");
        if (!strncmp(url, "socks5://", 9))
            snprintf(shown, sizeof shown, "socks5h%s", rest);
        else if (!strncmp(url, "socks://", 8))
            snprintf(shown, sizeof shown, "socks4%s", rest);
        else
            snprintf(shown, sizeof shown, "%s", url);
        cJSON_AddItemToArray(out, cJSON_CreateString(shown));
    }
    return out;
}

static enum outcome bug_pac(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *expect = get(test, "expect"), *then = get(expect, "then");
    const char *url = text_of(input, "url", ""), *error = text_of(expect, "error", NULL);
    struct run run;
    byway_status status;
    byway_error *err = NULL;
    byway_proxy_selector *made;
    cJSON *list = NULL, *said = NULL, *want;
    enum outcome outcome = PASS;
    if (!byway_has_feature("script", BYWAY_NUL))
        return skips("built without scripts");
    begin(&run, input, text_of(input, "clock", NULL), 0);
    if (get(input, "budget_ms"))
        run.options.time_limit_ms = (uint32_t)number_of(input, "budget_ms", 0);
    made = made_of(&run, text_of(input, "script", ""), &status, &err);
    if (made)
        list = proxies_of(run.engine, made, url, NULL, &status, &said, &err);
    if (error) {
        const byway_status wanted = !strcmp(error, "pac_timeout") ? BYWAY_E_TIMEOUT
            : !strcmp(error, "pac_memory")                        ? BYWAY_E_LIMIT
                                                                  : BYWAY_E_PAC;
        if (list || status != wanted)
            outcome = fails("got %s, want %s", byway_status_name(status), error);
        else if (!strcmp(error, "pac_syntax") && (byway_error_line(err) == 0 || byway_error_column(err) == 0))
            outcome = fails("no line and column");
        byway_error_free(err);
        cJSON_Delete(list);
    } else if (!list)
        outcome = fails("%s", message(err));
    else {
        const int skipped = cJSON_GetArraySize(get(get(said, "script"), "skipped"));
        if (get(expect, "skipped") && skipped != (int)number_of(expect, "skipped", 0))
            outcome = fails("skipped %d", skipped);
        want = own_words(get(expect, "proxies"));
        list = as_urls(list);
        if (outcome == PASS)
            outcome = same_json(list, want, "proxies");
        else
            cJSON_Delete(list);
        cJSON_Delete(want);
    }
    cJSON_Delete(said);
    byway_proxy_selector_release(made);
    if (then && outcome == PASS) {
        run.options.time_limit_ms = 60000;
        made = made_of(&run, text_of(then, "script", ""), &status, NULL);
        list = made ? proxies_of(run.engine, made, url, NULL, &status, NULL, NULL) : NULL;
        outcome = list ? same_json(as_urls(list), get(then, "proxies"), "then") : fails("then %s", byway_status_name(status));
        byway_proxy_selector_release(made);
    }
    end(&run);
    return outcome;
}

const struct kind pac_kinds[] = {
    { "proxy", "pac", pac },
    { "proxy", "pac_string", pac_string },
    { "bugs", "pac", bug_pac },
    { NULL, NULL, NULL },
};
