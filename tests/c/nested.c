/* A resolver that itself selects routes: legal to depth 8; whoever goes on without end is told so, and everybody further
 * up still gets what is asked for. */
#include "tap.h"

static byway_engine *engine;
static byway_address *address;
static int depth, wanted;
static byway_status statuses[64];

static byway_status select_once(void)
{
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    byway_status status = byway_selector_new(engine, address, NULL, &selector, NULL);
    if (status == BYWAY_OK)
        status = byway_selector_next(selector, 0, &selection, NULL);
    if (status == BYWAY_OK && byway_selection_len(selection) != 1)
        status = BYWAY_E_STATE;
    byway_selection_free(selection);
    byway_selector_free(selector);
    return status;
}

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    if (depth < wanted) {
        depth++;
        statuses[depth] = select_once();
        depth--;
    }
    return byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL);
}

int main(void)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    int i, good = 1, refused = 0;
    NEED(byway_engine_new(NULL, &engine, NULL));
    set.lookup = lookup;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    options.host.data = "a.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &address, NULL));

    wanted = 7;
    STATUS(select_once(), BYWAY_OK, "eight selectors, each inside the resolver of the one before");
    for (i = 1; i <= wanted; i++)
        good = good && statuses[i] == BYWAY_OK;
    OK(good, "every one has its routes");

    wanted = 63;
    STATUS(select_once(), BYWAY_OK, "a resolver that nests without end: the outermost has its routes");
    for (i = 1; i <= 8; i++)
        good = good && statuses[i] == BYWAY_OK;
    OK(good, "and so have the first eight");
    for (i = 9; i <= wanted; i++)
        refused += statuses[i] == BYWAY_E_REENTRANT;
    OK(refused == 1, "one further down is refused with BYWAY_E_REENTRANT, which ends it (%d)", refused);

    byway_address_release(address);
    byway_dns_release(dns);
    STATUS(byway_engine_shutdown(engine, 0, NULL), BYWAY_OK, "nothing is left inside");
    byway_engine_release(engine);
    return tap_done();
}
