/* What proxy selectors say, as JSON. */
#ifndef CONFORM_PROXIES_H
#define CONFORM_PROXIES_H

#include "conform.h"

/* An engine whose clock stands at `now_s` seconds since 1970; ends the one before. */
byway_engine *engine_at(double now_s);
/* The same; proxies that fail stay marked for so long. */
byway_engine *engine_marking(double now_s, int64_t bad_proxy_ms);
void set_clock(double now_s);
/* Ends the last one. */
void end_engine(void);

byway_str str_of(const char *text);

/* The list for a URL, entries as `{"type", "host", "port"}`; NULL and the status when there is none. `said`, unless NULL,
 * gets the explanation. `err`, unless NULL, the error. */
cJSON *proxies_of(byway_engine *engine, byway_proxy_selector *selector, const char *url, byway_dns *dns,
                  byway_status *status, cJSON **said, byway_error **err);

/* The same, entries as URLs, `direct://` for DIRECT. Takes `list`. */
cJSON *as_urls(cJSON *list);

/* 1 when the only entry is DIRECT. Takes `list`. */
int is_direct(cJSON *list);

/* Seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`. */
double instant(const char *text);

#endif
