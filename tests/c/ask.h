/* What a proxy selector says about a URL, as text; for test programs with an `engine`. */
#ifndef ASK_H
#define ASK_H

#include "tap.h"

static byway_engine *engine;

static byway_str str(const char *text)
{
    byway_str made = { NULL, 0 };
    made.data = text;
    made.len = text ? strlen(text) : 0;
    return made;
}

/* The list, entries separated by blanks; the status's name when there is none. */
static const char *ask_with(byway_proxy_selector *selector, const char *url, byway_dns *dns, int64_t timeout_ms)
{
    static char shown[1024];
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

#endif
