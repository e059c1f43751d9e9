/* The vocabulary of okhttp.jsonl: its addresses, proxies, failures and versions as byway's. */
#ifndef OKHTTP_H
#define OKHTTP_H

#include "conform.h"

/* A member as text, "" when it is missing or no text. */
const char *word(const cJSON *object, const char *name);
/* A member as truth. */
int truth_of(const cJSON *object, const char *name, int otherwise);
/* A member, NULL also when it is null. */
const cJSON *member(const cJSON *object, const char *name);

/* An owned text as JSON; frees it. */
cJSON *take_text(byway_text *text);
/* IP literal to record; ends the program when it is none. */
byway_ip ip_of(const char *text);
/* Record to text; NULL for none. */
const char *ip_text(const byway_ip *ip);

/* Engine with this compat and flags; ends the program when there is none. */
byway_engine *engine_with(int32_t compat, uint32_t routing_flags);

/* `{"type": "HTTP", "host": ..., "ip": ..., "port": ...}`; NULL for DIRECT and null. */
byway_proxy *okhttp_proxy(const cJSON *proxy);

/* `{"scheme": ..., "host": ..., "port": ..., "protocols": [...]}` with an explicit proxy or NULL. */
byway_address *okhttp_address(byway_engine *engine, const cJSON *address, const cJSON *explicit_proxy, byway_dns *dns,
                              byway_proxy_selector *chooser);

/* Adds every address of a list of texts to a DNS answer. */
byway_status answer_ips(byway_dns_request *request, const cJSON *list);

/* The hops of every DIRECT route to a host with these addresses, in the order to try them. */
cJSON *planned(const cJSON *ips, uint32_t routing_flags, byway_status *status);

/* Name of a failure to `BYWAY_FAILURE_*`. */
int32_t okhttp_failure(const cJSON *name);

/* `BYWAY_COMPAT_OKHTTP_3` for cases of the 3.x line. */
int32_t okhttp_line(const cJSON *test);

#endif
