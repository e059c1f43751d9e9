/* Router chains through the boundary: lists, rules, calls, choices, sessions, host routers, picks. */
#include "tap.h"
#include <pthread.h>

#define TEXT(s) (s), BYWAY_NUL
#define STR(s) { (s), BYWAY_NUL }
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static byway_engine *engine;
static int destroyed;

static void on_destroy(void *user_data)
{
    (void)user_data;
    destroyed++;
}

static const byway_str three[] = {
    STR("dubbo://10.0.0.1:20880/HelloService?remote.application=shop&weight=1"),
    STR("dubbo://10.0.0.2:20881/HelloService?remote.application=shop&weight=2"),
    STR("dubbo://10.0.0.3:20882/HelloService?remote.application=shop&weight=3"),
};
static const uint64_t tags[] = { 101, 102, 103 };

static byway_invokers *list_of_three(void)
{
    byway_invokers *list = NULL;
    NEED(byway_invokers_new(engine, three, tags, 3, 0, NULL, &list, NULL));
    return list;
}

static byway_chain *chain_over(byway_invokers *list, const char *consumer)
{
    byway_chain *chain = NULL;
    NEED(byway_chain_new(engine, TEXT(consumer), NULL, &chain, NULL));
    if (list)
        NEED(byway_chain_set_invokers(chain, list, NULL, NULL));
    return chain;
}

static byway_invocation *call_of(const char *method)
{
    byway_invocation *call = NULL;
    NEED(byway_invocation_new(&call, NULL));
    NEED(byway_invocation_set_method(call, TEXT(method)));
    return call;
}

/* The tags a chain gives for a method, as text: "101 103". */
static const char *routed(byway_chain *chain, const byway_invocation *call)
{
    static char text[256];
    uint64_t found[8];
    size_t total = 0, i, at = 0;
    NEED(byway_chain_route_tags(chain, call, found, COUNT(found), &total, NULL, NULL));
    text[0] = 0;
    for (i = 0; i < total && i < COUNT(found); i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%llu", i ? " " : "", (unsigned long long)found[i]);
    return text;
}

#define ROUTED(chain, call, want, what) \
    do { \
        const char *got_ = routed(chain, call); \
        if (!OK(!strcmp(got_, want), "%s", what)) \
            printf("# got \"%s\", want \"%s\"\n", got_, want); \
    } while (0)

static void lists(void)
{
    byway_invokers *list = list_of_three(), *next = NULL, *keeper = NULL;
    byway_invokers_builder *builder = NULL;
    byway_invokers_callbacks set = BYWAY_INVOKERS_CALLBACKS_INIT;
    byway_error *err = NULL;
    byway_text *text = NULL;
    byway_str seen;
    uint64_t tag = 7;
    const uint64_t twice[] = { 1, 2, 1 }, null[] = { 1, 0, 3 };
    const byway_str bad[] = { STR("dubbo://h:1/S"), STR("dubbo://h:99999/S") };

    OK(byway_invokers_len(list) == 3 && byway_invokers_len(NULL) == 0, "a list knows its length");
    STATUS(byway_invokers_tag(list, 2, &tag), BYWAY_OK, "a row has its tag");
    OK(tag == 103, "the host's own");
    STATUS(byway_invokers_tag(list, 3, &tag), BYWAY_E_NOT_FOUND, "no row behind the last");
    OK(tag == 0, "outputs are cleared");
    STATUS(byway_invokers_url(list, 0, &text, &err), BYWAY_E_NOT_FOUND, "URL texts are kept on request only");
    byway_error_free(err);

    STATUS(byway_invokers_new(engine, three, twice, 3, 0, NULL, &next, &err), BYWAY_E_INVOKERS, "a tag twice");
    byway_error_message(err, &seen);
    OK(strstr(seen.data, "2") != NULL || strstr(seen.data, "already") != NULL, "is named: %s", seen.data);
    byway_error_free(err);
    STATUS(byway_invokers_new(engine, three, null, 3, 0, NULL, &next, NULL), BYWAY_E_INVOKERS, "a tag of 0");
    STATUS(byway_invokers_new(engine, bad, NULL, 2, 0, NULL, &next, &err), BYWAY_E_INVOKERS, "an unparsable URL");
    OK(byway_error_cause_count(err) == 1 && next == NULL, "has a cause, and no list is made");
    byway_error_message(err, &seen);
    OK(!strncmp(seen.data, "the URL \"", 9), "and is shown, once: %s", seen.data);
    byway_error_free(err);

    /* An update shares what it does not touch and inherits what must be destroyed with the last name of a tag. */
    set.destroy = on_destroy;
    destroyed = 0;
    NEED(byway_invokers_new(engine, three, tags, 3, BYWAY_INVOKERS_KEEP_URLS, &set, &keeper, NULL));
    NEED(byway_invokers_builder_new(engine, keeper, BYWAY_INVOKERS_KEEP_URLS, NULL, &builder, NULL));
    NEED(byway_invokers_builder_remove(builder, 102, NULL));
    STATUS(byway_invokers_builder_remove(builder, 102, NULL), BYWAY_E_NOT_FOUND, "it is gone already");
    NEED(byway_invokers_builder_add(builder, TEXT("dubbo://10.0.0.4:20883/HelloService"), 104, NULL));
    NEED(byway_invokers_builder_set(builder, TEXT("dubbo://10.0.0.9:20889/HelloService"), 101, NULL));
    NEED(byway_invokers_builder_finish(builder, &next, NULL));
    STATUS(byway_invokers_builder_add(builder, TEXT("dubbo://h:1/S"), 9, NULL), BYWAY_E_STATE, "it has finished");
    byway_invokers_builder_free(builder);
    OK(byway_invokers_len(next) == 3 && byway_invokers_generation(next) != byway_invokers_generation(keeper),
       "the update is a list of its own");
    NEED(byway_invokers_url(next, 0, &text, NULL));
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "dubbo://10.0.0.9:20889/HelloService"), "a replaced URL stays in its place");
    byway_text_free(text);
    byway_invokers_release(keeper);
    OK(destroyed == 0, "the update still names tags");
    byway_invokers_release(next);
    OK(destroyed == 1, "the last list ends the set");

    /* A refused call ends its set too. */
    STATUS(byway_invokers_new(engine, bad, NULL, 2, 0, &set, &next, NULL), BYWAY_E_INVOKERS, "refused with a set");
    OK(destroyed == 2, "and the set is ended");
    byway_invokers_release(list);
}

static void rules(void)
{
    static const char by_method[] =
        "configVersion: v3.0\nforce: true\nconditions:\n"
        "  - method=hello => address=*:20880\n  - method=hello2 => address=*:20882\n";
    static const char broken[] = "configVersion: v3.0\nconditions:\n  - method=hello =>=> x\n";
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *hello = call_of("hello"), *hello2 = call_of("hello2"), *other = call_of("other");
    byway_text *text = NULL;
    byway_error *err = NULL;
    byway_str seen;
    uint64_t before = byway_chain_generation(chain);

    NEED(byway_rule_key(BYWAY_DIALECT_BYWAY, BYWAY_RULE_CONDITION, NULL, 0, TEXT("HelloService"), NULL, 0, NULL, 0,
                        &text, NULL));
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "HelloService::.condition-router"), "both colons are there: %s", seen.data);
    byway_text_free(text);
    NEED(byway_chain_keys(chain, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "HelloService::.condition-router\n") && strstr(seen.data, "shop.tag-router\n"),
       "the chain wants its service's and its providers' rules");
    byway_text_free(text);

    ROUTED(chain, hello, "101 102 103", "without rules everything passes");
    NEED(byway_engine_set_rule(engine, TEXT("HelloService::.condition-router"), TEXT(by_method), NULL));
    OK(byway_chain_generation(chain) > before, "a rule makes a new world");
    ROUTED(chain, hello, "101", "the first condition");
    ROUTED(chain, hello2, "103", "the second condition");
    ROUTED(chain, other, "101 102 103", "neither");

    NEED(byway_rule_check(BYWAY_DIALECT_BYWAY, BYWAY_RULE_CONDITION, TEXT(by_method), list, BYWAY_FORMAT_JSON,
                          &text, NULL));
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "{\"refused\":false,\"problems\":[]}"), "nothing to say of a good rule: %s", seen.data);
    byway_text_free(text);
    NEED(byway_rule_check(BYWAY_DIALECT_BYWAY, BYWAY_RULE_CONDITION, TEXT(broken), NULL, BYWAY_FORMAT_JSON,
                          &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "\"refused\":true") && strstr(seen.data, "\"severity\":\"error\",\"line\":3,\"column\":20"),
       "what is wrong, and where: %s", seen.data);
    byway_text_free(text);
    STATUS(byway_engine_set_rule(engine, TEXT("HelloService::.condition-router"), TEXT(broken), &err), BYWAY_E_RULE,
           "a broken rule");
    OK(byway_error_line(err) == 3 && byway_error_column(err) > 1, "has line %u, column %u", byway_error_line(err),
       byway_error_column(err));
    byway_error_free(err);
    ROUTED(chain, hello, "101", "the last good rule stays");
    NEED(byway_chain_status(chain, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "BYWAY_E_RULE") != NULL, "the status tells the error");
    byway_text_free(text);

    STATUS(byway_engine_set_rule(engine, TEXT("HelloService.rules"), TEXT("x"), NULL), BYWAY_E_NOT_FOUND,
           "no kind of rule has such keys");
    NEED(byway_engine_remove_rule(engine, TEXT("HelloService::.condition-router"), NULL));
    STATUS(byway_engine_remove_rule(engine, TEXT("HelloService::.condition-router"), NULL), BYWAY_E_NOT_FOUND,
           "it is gone");
    ROUTED(chain, hello, "101 102 103", "without the rule everything passes again");

    byway_invocation_free(hello);
    byway_invocation_free(hello2);
    byway_invocation_free(other);
    byway_chain_release(chain);
    byway_invokers_release(list);
}

static char heard[512];

static void on_event(void *user_data, const byway_event *event)
{
    (void)user_data;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "[%d %s %s %u]", event->kind, event->subject.data,
             byway_status_name(event->status), event->error ? byway_error_line(event->error) : 0);
}

static void poll_queue(void)
{
    byway_queue *queue = byway_engine_queue(engine);
    size_t n = 0;
    heard[0] = 0;
    NEED(byway_queue_poll(queue, 0, NULL, 0, 0, &n, NULL) < 0 ? BYWAY_E_STATE : BYWAY_OK);
    byway_queue_release(queue);
}

static void events(void)
{
    static const char good[] = "conditions: ['=> address=*:20881']", bad[] = "conditions: ['=>=>']";
    byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_listener *listener = NULL;
    byway_invokers *list = list_of_three(), *other = NULL;
    byway_chain *chain;
    const byway_str url = STR("dubbo://10.0.0.7:20880/HelloService?remote.application=bank");
    set.mask = (uint64_t)1 << BYWAY_EVENT_RULE | (uint64_t)1 << BYWAY_EVENT_CHAIN_KEYS;
    set.on_event = on_event;
    heard[0] = 0;
    NEED(byway_engine_add_listener(engine, &set, &listener, NULL));
    NEED(byway_engine_set_rule(engine, TEXT("EventService::.condition-router"), TEXT(good), NULL));
    OK(heard[0] == 0, "events of rules wait in the queue");
    poll_queue();
    OK(!strcmp(heard, "[32 EventService::.condition-router BYWAY_OK 0]"), "and come with its poll: %s", heard);
    NEED(byway_engine_remove_rule(engine, TEXT("EventService::.condition-router"), NULL));
    STATUS(byway_engine_set_rule(engine, TEXT("EventService::.condition-router"), TEXT(bad), NULL), BYWAY_E_RULE,
           "a broken rule");
    poll_queue();
    OK(!strcmp(heard, "[32 EventService::.condition-router BYWAY_E_RULE 1]"), "the newest of a key wins: %s", heard);
    NEED(byway_engine_remove_rule(engine, TEXT("EventService::.condition-router"), NULL));
    chain = chain_over(list, "consumer://10.0.0.9/EventService?application=web");
    poll_queue();
    NEED(byway_invokers_new(engine, &url, NULL, 1, 0, NULL, &other, NULL));
    NEED(byway_chain_set_invokers(chain, other, NULL, NULL));
    poll_queue();
    OK(!strcmp(heard, "[33 consumer://10.0.0.9/EventService?application=web BYWAY_OK 0]"),
       "another provider application means other keys: %s", heard);
    byway_listener_release(listener);
    NEED(byway_chain_set_invokers(chain, list, NULL, NULL));
    poll_queue();
    OK(heard[0] == 0, "nobody listens any more");
    byway_chain_release(chain);
    byway_invokers_release(other);
    byway_invokers_release(list);
}

static uint64_t host_now_ns = 3600000000000ull;
static int draws;

static uint64_t host_monotonic(void *data)
{
    return data == &host_now_ns ? host_now_ns : 0;
}

static int64_t host_wall(void *data)
{
    (void)data;
    return 1800000000000ll;
}

static uint64_t host_random(void *data)
{
    (void)data;
    draws++;
    return UINT64_MAX / 2;
}

/* Clocks and draws of the host: a provider that started a minute ago weighs a tenth, and every draw is asked for. */
static void host_sources(void)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_engine *before = engine;
    byway_invokers *list = NULL;
    byway_chain *chain;
    byway_invocation *call = call_of("hello");
    byway_picked picked;
    const byway_str warm[] = {
        STR("dubbo://10.0.0.1:20880/HelloService?timestamp=1799999940000"),
        STR("dubbo://10.0.0.2:20880/HelloService?timestamp=1700000000000"),
    };
    char seen[12] = { 0 };
    int i;
    options.source_data = &host_now_ns;
    options.monotonic_ns = host_monotonic;
    options.wall_ms = host_wall;
    options.random = host_random;
    NEED(byway_engine_new(&options, &engine, NULL));
    NEED(byway_invokers_new(engine, warm, NULL, 2, 0, NULL, &list, NULL));
    chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    NEED(byway_chain_pick(chain, call, NULL, &picked, NULL));
    OK(picked.row == 1 && draws == 1, "the middle of 10 + 100 is the warm one; %d draws", draws);
    {
        byway_pick_options wish = BYWAY_PICK_OPTIONS_INIT;
        wish.balance = BYWAY_BALANCE_ROUND_ROBIN;
        for (i = 0; i < 11; i++) {
            NEED(byway_chain_pick(chain, call, &wish, &picked, NULL));
            seen[i] = (char)('a' + picked.row);
        }
        OK(!strcmp(seen, "bbbbbabbbbb"), "one of eleven turns is the cold one's: %s", seen);
    }
    byway_chain_release(chain);
    byway_invokers_release(list);
    byway_invocation_free(call);
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    engine = before;
}

static void explanations(void)
{
    static const char rule[] = "configVersion: v3.0\nforce: true\nconditions: ['method=hello => address=*:20880']\n";
    static const char nowhere[] = "configVersion: v3.0\nconditions:\n  - method=hello => address=*:1\n";
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello");
    const byway_invocation *calls[1];
    byway_text *text = NULL;
    byway_error *err = NULL;
    byway_str seen;
    calls[0] = call;
    NEED(byway_engine_set_rule(engine, TEXT("HelloService::.condition-router"), TEXT(rule), NULL));
    NEED(byway_chain_explain(chain, call, BYWAY_FORMAT_TEXT, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "HelloService.hello: 3 -> 1") && strstr(seen.data, "10.0.0.3:20882"),
       "an explanation names whom a rule dropped");
    byway_text_free(text);
    NEED(byway_chain_explain(chain, call, BYWAY_FORMAT_JSON, &text, NULL));
    byway_text_str(text, &seen);
    OK(seen.data[0] == '{' && strstr(seen.data, "\"key\":\"HelloService::.condition-router\""), "also as JSON");
    byway_text_free(text);
    STATUS(byway_chain_explain(chain, call, 2, &text, NULL), BYWAY_E_ENUM, "in no third form");

    NEED(byway_chain_diff(chain, TEXT("HelloService::.condition-router"), NULL, 0, calls, 1, BYWAY_FORMAT_JSON, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "\"added\":[102,103]") != NULL, "without the rule two would come: %s", seen.data);
    byway_text_free(text);
    NEED(byway_chain_diff(chain, TEXT("HelloService::.condition-router"), NULL, 0, calls, 1, BYWAY_FORMAT_TEXT, &text, NULL));
    byway_text_str(text, &seen);
    OK(strcmp(seen.data, "call 0: 1 -> 3; 2 come: 102, 103\n0 of 1 calls stay as they are\n") == 0, "also as text: %s",
       seen.data);
    byway_text_free(text);
    STATUS(byway_chain_diff(chain, TEXT("HelloService::.condition-router"), TEXT("conditions: [=>=>]"), calls, 1,
                            BYWAY_FORMAT_JSON, &text, &err),
           BYWAY_E_RULE, "a broken proposal");
    OK(byway_error_line(err) == 1 && text == NULL, "is refused with its place");
    byway_error_free(err);
    STATUS(byway_chain_diff(chain, TEXT("Other::.condition-router"), TEXT(rule), calls, 1, BYWAY_FORMAT_JSON, &text, NULL),
           BYWAY_E_NOT_FOUND, "a key the chain does not want");
    ROUTED(chain, call, "101", "nothing was set");

    NEED(byway_rule_check(BYWAY_DIALECT_BYWAY, BYWAY_RULE_CONDITION, TEXT(nowhere), list, BYWAY_FORMAT_TEXT, &text,
                          NULL));
    byway_text_str(text, &seen);
    OK(!strncmp(seen.data, "3:", 2) && strstr(seen.data, "warning"), "lint: %s", seen.data);
    byway_text_free(text);
    STATUS(byway_rule_check(BYWAY_DIALECT_BYWAY, 9, TEXT(rule), NULL, BYWAY_FORMAT_JSON, &text, NULL), BYWAY_E_ENUM,
           "an unknown kind");
    NEED(byway_engine_remove_rule(engine, TEXT("HelloService::.condition-router"), NULL));
    byway_invocation_free(call);
    byway_chain_release(chain);
    byway_invokers_release(list);
}

static void recent_calls(void)
{
    byway_invokers *list = list_of_three();
    byway_chain_options options = BYWAY_CHAIN_OPTIONS_INIT;
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web"), *kept = NULL;
    byway_invocation *call = call_of("hello");
    byway_session *session = NULL;
    const byway_choice *view = NULL;
    byway_text *text = NULL;
    byway_str seen;
    NEED(byway_session_new(chain, &session, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    NEED(byway_chain_recent(chain, BYWAY_FORMAT_JSON, &text, NULL));
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "[]"), "nothing is kept at first: %s", seen.data);
    byway_text_free(text);

    NEED(byway_chain_keep_recent(chain, 1, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    ROUTED(chain, call, "101 102 103", "a third time");
    NEED(byway_chain_recent(chain, BYWAY_FORMAT_JSON, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "[{\"number\":1,\"wall_ms\":") == seen.data && strstr(seen.data, "\"number\":3,")
           && !strstr(seen.data, "\"number\":4,") && strstr(seen.data, "\"method\":\"hello\""),
       "three calls are kept: %s", seen.data);
    byway_text_free(text);
    NEED(byway_chain_recent(chain, BYWAY_FORMAT_TEXT, &text, NULL));
    byway_text_str(text, &seen);
    OK(!strncmp(seen.data, "#1 at ", 6) && strstr(seen.data, "HelloService.hello: 3 -> 3\n"), "also for people");
    byway_text_free(text);
    STATUS(byway_chain_recent(chain, 2, &text, NULL), BYWAY_E_ENUM, "in no third form");
    NEED(byway_chain_keep_recent(chain, 0, NULL));
    NEED(byway_chain_recent(chain, BYWAY_FORMAT_JSON, &text, NULL));
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "[]"), "switched off, they are gone");
    byway_text_free(text);

    options.flags = BYWAY_CHAIN_KEEP_RECENT;
    NEED(byway_chain_new(engine, TEXT("consumer://10.0.0.9/HelloService"), &options, &kept, NULL));
    ROUTED(kept, call, "", "a chain without providers");
    NEED(byway_chain_recent(kept, BYWAY_FORMAT_JSON, &text, NULL));
    byway_text_str(text, &seen);
    OK(strstr(seen.data, "\"number\":1,") != NULL, "from the start by an option");
    byway_text_free(text);
    byway_chain_release(kept);
    byway_session_free(session);
    byway_invocation_free(call);
    byway_chain_release(chain);
    byway_invokers_release(list);
}

static void static_rules(void)
{
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello");
    const byway_str good = STR("condition://0.0.0.0/HelloService?rule=+%3D%3E+address%3D*%3A20881&force=true");
    const byway_str bad[] = { STR("condition://0.0.0.0/HelloService?rule=+%3D%3E+address%3D*"), STR("route://x/y") };
    byway_error *err = NULL;
    byway_str seen;
    NEED(byway_chain_set_rule_urls(chain, &good, 1, NULL));
    ROUTED(chain, call, "102", "a static rule from a URL");
    STATUS(byway_chain_set_rule_urls(chain, bad, 2, &err), BYWAY_E_ARGUMENT, "an unusable URL");
    byway_error_subject(err, &seen);
    OK(!strcmp(seen.data, "urls[1]"), "is named: %s", seen.data);
    byway_error_free(err);
    ROUTED(chain, call, "102", "and nothing changes");
    NEED(byway_chain_set_rule_urls(chain, NULL, 0, NULL));
    ROUTED(chain, call, "101 102 103", "all taken away");
    byway_invocation_free(call);
    byway_chain_release(chain);
    byway_invokers_release(list);
}

static void calls(void)
{
    static const char tagged[] =
        "configVersion: v3.0\nforce: true\ntags:\n  - name: gray\n    addresses: ['10.0.0.2:20881']\n";
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello");
    const byway_str pairs[] = { STR("a"), STR("1"), STR("dubbo.tag"), STR("gray"), STR("odd") };
    const byway_str arguments[] = { STR("x"), { NULL, BYWAY_NUL }, { NULL, 0 } };
    uint32_t id = 0, again = 0;
    NEED(byway_engine_set_rule(engine, TEXT("shop.tag-router"), TEXT(tagged), NULL));
    ROUTED(chain, call, "101 103", "without a tag the tagged provider is out");
    NEED(byway_invocation_set_attachment(call, TEXT("dubbo.tag"), TEXT("gray")));
    ROUTED(chain, call, "102", "with the tag only it is in");
    NEED(byway_invocation_set_attachment(call, TEXT("dubbo.tag"), TEXT("none")));
    ROUTED(chain, call, "101 103", "a key set again is replaced");
    STATUS(byway_invocation_set_attachments(call, pairs, 5), BYWAY_E_ARGUMENT, "an odd number of texts");
    NEED(byway_invocation_set_attachments(call, pairs, 4));
    ROUTED(chain, call, "102", "many attachments at once");
    NEED(byway_invocation_set_arguments(call, arguments, 3));
    NEED(byway_invocation_set_types(call, arguments, 1));
    NEED(byway_chain_intern_method(chain, TEXT("hello"), &id, NULL));
    NEED(byway_chain_intern_method(chain, TEXT("hello"), &again, NULL));
    OK(id != 0 && id == again, "a name keeps its number");
    NEED(byway_invocation_reset(call));
    NEED(byway_invocation_set_method_id(call, id));
    STATUS(byway_invocation_set_method_id(call, 0), BYWAY_E_NOT_FOUND, "a number nobody was given");
    ROUTED(chain, call, "101 103", "reset forgets the attachments");
    NEED(byway_engine_remove_rule(engine, TEXT("shop.tag-router"), NULL));
    byway_invocation_free(call);
    byway_chain_release(chain);
    byway_invokers_release(list);
}

static void choices(void)
{
    static const char block[] = "configVersion: v3.0\nforce: true\nconditions:\n  - method=gone => address=1.1.1.1\n";
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello"), *gone = call_of("gone");
    const byway_invocation *both[2];
    byway_choice *choice = NULL;
    byway_text *text = NULL;
    byway_str seen;
    uint64_t tag = 0, some[2] = { 0, 0 }, many[4], generation = 0;
    size_t total = 0, totals[2] = { 9, 9 };
    NEED(byway_engine_set_rule(engine, TEXT("HelloService::.condition-router"), TEXT(block), NULL));
    NEED(byway_chain_route(chain, call, &choice, NULL));
    OK(byway_choice_len(choice) == 3, "three may serve");
    NEED(byway_choice_tag_at(choice, 1, &tag));
    OK(tag == 102, "in list order");
    STATUS(byway_choice_tag_at(choice, 3, &tag), BYWAY_E_NOT_FOUND, "past the end");
    NEED(byway_choice_tags(choice, some, 2, &total));
    OK(total == 3 && some[0] == 101 && some[1] == 102, "as many as fit, and how many there are");
    STATUS(byway_choice_emptied_by(choice, &text, NULL), BYWAY_DONE, "nobody emptied it");
    OK(byway_choice_generation(choice) == byway_chain_generation(chain), "the world that answered");
    /* It pins its world: the chain may go, and with it the list. */
    NEED(byway_chain_set_invokers(chain, list, &generation, NULL));
    OK(generation == byway_chain_generation(chain) && byway_choice_generation(choice) < generation, "an older world");
    byway_choice_free(choice);
    STATUS(byway_choice_tag_at(choice, 0, &tag), BYWAY_E_BAD_HANDLE, "a freed choice");

    NEED(byway_chain_route(chain, gone, &choice, NULL));
    OK(byway_choice_len(choice) == 0, "nobody may serve");
    STATUS(byway_choice_emptied_by(choice, &text, NULL), BYWAY_OK, "and the choice says why");
    byway_text_str(text, &seen);
    OK(!strcmp(seen.data, "service"), "router %s", seen.data);
    byway_text_free(text);
    byway_choice_free(choice);

    both[0] = call;
    both[1] = gone;
    NEED(byway_chain_route_many(chain, both, 2, many, 2, totals, &generation, NULL));
    OK(totals[0] == 3 && totals[1] == 0 && many[0] == 101 && many[1] == 102, "many calls in one");
    NEED(byway_engine_remove_rule(engine, TEXT("HelloService::.condition-router"), NULL));
    byway_invocation_free(call);
    byway_invocation_free(gone);
    byway_chain_release(chain);
    byway_invokers_release(list);
}

static void *free_it(void *choice)
{
    byway_choice_free(choice);
    return NULL;
}

/* From a call's second answer on, a thread counts by itself which worlds its choices pin. */
static void pinned_worlds(void)
{
    byway_invokers_callbacks set = BYWAY_INVOKERS_CALLBACKS_INIT;
    byway_invokers *list = NULL, *next = list_of_three();
    byway_invocation *call = call_of("hello");
    byway_choice *some[4] = { NULL, NULL, NULL, NULL }, *newer = NULL;
    byway_chain *chain;
    pthread_t thread;
    int i;
    set.destroy = on_destroy;
    destroyed = 0;
    NEED(byway_invokers_new(engine, three, tags, 3, 0, &set, &list, NULL));
    chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invokers_release(list);
    for (i = 0; i < 4; i++)
        NEED(byway_chain_route(chain, call, &some[i], NULL));
    NEED(byway_chain_set_invokers(chain, next, NULL, NULL));
    byway_invokers_release(next);
    NEED(byway_chain_route(chain, call, &newer, NULL));
    OK(destroyed == 0 && byway_choice_generation(newer) > byway_choice_generation(some[3]), "worlds old and new");
    for (i = 0; i < 3; i++)
        byway_choice_free(some[i]);
    OK(destroyed == 0 && byway_choice_len(some[3]) == 3, "the last choice holds the old one");
    if (pthread_create(&thread, NULL, free_it, some[3]))
        abort();
    pthread_join(thread, NULL);
    OK(destroyed == 1, "and takes it along, on another thread");
    byway_chain_release(chain);
    OK(byway_choice_len(newer) == 3, "a choice outlives its chain");
    byway_choice_free(newer);
    byway_choice_free(newer);
    byway_invocation_free(call);
}

struct elsewhere {
    byway_session *session;
    byway_invocation *call;
    byway_status route, adopt, after;
};

static void *on_another_thread(void *argument)
{
    struct elsewhere *e = argument;
    const byway_choice *view = NULL;
    byway_invocation *own = call_of("hello");
    e->route = byway_session_route(e->session, own, &view, NULL);
    e->adopt = byway_session_adopt(e->session, NULL);
    e->after = byway_session_route(e->session, own, &view, NULL);
    byway_invocation_free(own);
    return NULL;
}

static void sessions(void)
{
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello");
    byway_session *session = NULL;
    const byway_choice *view = NULL, *second = NULL;
    byway_error *err = (byway_error *)&session;
    struct elsewhere e;
    byway_str said;
    pthread_t thread;
    uint64_t tag = 0;
    int i, good = 1;
    NEED(byway_session_new(chain, &session, NULL));
    for (i = 0; i < 100; i++)
        good &= byway_session_route(session, call, &view, &err) == BYWAY_OK && err == NULL && byway_choice_len(view) == 3
                && byway_choice_tag_at(view, 2, &tag) == BYWAY_OK && tag == 103;
    OK(good, "a session routes again and again");
    byway_choice_free((byway_choice *)view);
    OK(byway_choice_len(view) == 3, "a lent choice cannot be freed");
    NEED(byway_chain_set_invokers(chain, NULL, NULL, NULL) == BYWAY_E_BAD_HANDLE ? BYWAY_OK : BYWAY_E_STATE);
    NEED(byway_engine_set_rule(engine, TEXT("HelloService::.condition-router"),
                               TEXT("configVersion: v3.0\nforce: true\nconditions: ['=> address=*:20881']\n"), NULL));
    OK(byway_choice_len(view) == 3, "the view stays as it is");
    NEED(byway_session_route(session, call, &second, NULL));
    OK(byway_choice_len(second) == 1, "the next call sees the new world");
    for (i = 0, good = 1; i < 3; i++) {
        uint64_t found[2] = { 0, 0 }, world = 0, of_chain = 0;
        size_t total = 7;
        good &= byway_session_route_tags(session, call, found, 2, &total, &world, &err) == BYWAY_OK && err == NULL
                && total == 1 && found[0] == 102 && found[1] == 0;
        NEED(byway_chain_route_tags(chain, call, NULL, 0, NULL, &of_chain, NULL));
        good &= world == of_chain && world != 0;
        good &= byway_session_route_tags(session, call, NULL, 0, &total, NULL, NULL) == BYWAY_OK && total == 1;
    }
    OK(good, "tags are copied, first and remembered, with the world's number");
    OK(byway_choice_len(second) == 0, "and the choice lent before shows nothing");
    NEED(byway_engine_remove_rule(engine, TEXT("HelloService::.condition-router"), NULL));

    e.session = session;
    if (pthread_create(&thread, NULL, on_another_thread, &e))
        abort();
    pthread_join(thread, NULL);
    STATUS(e.route, BYWAY_E_BUSY, "on another thread");
    STATUS(e.adopt, BYWAY_OK, "which may adopt it");
    STATUS(e.after, BYWAY_OK, "and then use it");
    STATUS(byway_session_route_tags(session, call, NULL, 0, NULL, NULL, NULL), BYWAY_E_BUSY, "which also copies for nobody else");
    STATUS(byway_session_route(session, call, &view, &err), BYWAY_E_BUSY, "it is no longer ours");
    byway_error_message(err, &said);
    OK(strstr(said.data, "belongs to another thread") != NULL, "and says so: %s", said.data);
    byway_error_free(err);
    err = NULL;
    NEED(byway_session_adopt(session, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    NEED(byway_session_idle(session, NULL));
    OK(byway_choice_len(view) == 0, "an idle session pins and shows nothing");
    STATUS(byway_session_route(session, NULL, &view, &err), BYWAY_E_BAD_HANDLE, "without an invocation");
    OK(view == NULL && err != NULL, "outputs are cleared");
    byway_error_free(err);
    byway_chain_release(chain);
    NEED(byway_session_route(session, call, &view, NULL));
    OK(byway_choice_len(view) == 3, "a session outlives its chain's handle");
    byway_session_free(session);
    STATUS(byway_session_route(session, call, &view, NULL), BYWAY_E_BAD_HANDLE, "a freed session");
    STATUS(byway_session_route_tags(session, call, NULL, 0, NULL, NULL, NULL), BYWAY_E_BAD_HANDLE, "also for tags");
    byway_invocation_free(call);
    byway_invokers_release(list);
}

static int router_calls, answer;

static byway_status route_even(void *user_data, const byway_router_request *request, const byway_call *call)
{
    byway_str text;
    size_t i;
    (void)user_data;
    router_calls++;
    if (byway_call_engine(call) != engine)
        return BYWAY_E_HOST;
    if (byway_router_request_attachment(request, TEXT("odd"), &text) == BYWAY_OK && text.len == 3)
        return answer;
    for (i = 0; i < request->count; i++)
        request->keep[i] = request->tags[i] % 2 == 0;
    if (byway_engine_shutdown(engine, 0, NULL) != BYWAY_E_REENTRANT)
        return BYWAY_E_STATE;
    return BYWAY_OK;
}

static void host_routers(void)
{
    byway_router_callbacks set = BYWAY_ROUTER_CALLBACKS_INIT;
    byway_invokers *list = list_of_three();
    byway_chain *chain, *other;
    byway_router *router = NULL, *again = NULL;
    byway_invocation *call = call_of("hello");
    byway_error *err = NULL;
    byway_session *session = NULL;
    const byway_choice *view = NULL;
    uint64_t found[4];
    size_t total;
    set.destroy = on_destroy;
    set.route = route_even;
    destroyed = 0;
    NEED(byway_router_new(engine, TEXT("even"), 10, BYWAY_ROUTER_EVERY_CHAIN, &set, &router, NULL));
    STATUS(byway_router_new(engine, TEXT("even"), 10, BYWAY_ROUTER_EVERY_CHAIN, &set, &again, NULL), BYWAY_E_DUPLICATE,
           "a name is taken");
    STATUS(byway_router_new(engine, TEXT("tag"), 10, BYWAY_ROUTER_BY_NAME, &set, &again, NULL), BYWAY_E_DUPLICATE,
           "so are the built-in ones");
    STATUS(byway_router_new(engine, TEXT("-x"), 10, 0, &set, &again, NULL), BYWAY_E_ARGUMENT, "a name that means 'not'");
    OK(destroyed == 3, "refused sets are ended");
    chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    other = chain_over(list, "consumer://10.0.0.9/HelloService?application=web&router=-even");
    router_calls = 0;
    ROUTED(chain, call, "102", "the host's router decides");
    OK(router_calls == 1, "and was asked once");
    ROUTED(other, call, "101 102 103", "router=-even takes it away");
    OK(router_calls == 1, "and does not ask it");
    NEED(byway_session_new(chain, &session, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    OK(byway_choice_len(view) == 1 && router_calls == 3, "its answer is not memoised");
    NEED(byway_invocation_set_attachment(call, TEXT("odd"), TEXT("yes")));
    answer = BYWAY_PASS;
    ROUTED(chain, call, "101 102 103", "PASS lets all pass");
    answer = -4242;
    STATUS(byway_chain_route_tags(chain, call, found, 4, &total, NULL, &err), BYWAY_E_HOST, "an undefined answer");
    OK(byway_error_host_code(err) == -4242 && byway_error_source(err) == 1, "is passed on");
    byway_error_free(err);
    answer = BYWAY_E_TIMEOUT;
    STATUS(byway_chain_route_tags(chain, call, found, 4, &total, NULL, NULL), BYWAY_E_TIMEOUT, "a known error");
    STATUS(byway_chain_add_router(other, router, NULL), BYWAY_E_DUPLICATE, "the chain knows it by name");
    byway_router_release(router);
    byway_session_free(session);
    OK(destroyed == 3, "the chain still holds the router");
    byway_chain_release(chain);
    byway_chain_release(other);
    OK(destroyed == 4, "the last chain ends it");
    byway_invocation_free(call);
    byway_invokers_release(list);
}

static void picks(void)
{
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello");
    byway_pick_options options = BYWAY_PICK_OPTIONS_INIT;
    byway_call_result result = BYWAY_CALL_RESULT_INIT;
    byway_session *session = NULL;
    byway_picked picked, other;
    byway_error *err = NULL;
    uint64_t up = 1 << 1, tried[] = { 101, 103 };
    char order[7] = { 0 };
    int i;
    options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    for (i = 0; i < 6; i++) {
        NEED(byway_chain_pick(chain, call, &options, &picked, NULL));
        order[i] = (char)('0' + picked.tag - 100);
    }
    OK(!strcmp(order, "323132") || !strcmp(order, "321323"), "smooth round robin by weight: %s", order);
    OK(picked.ticket == 0 && picked.available == 1, "which counts no calls");

    options.balance = BYWAY_BALANCE_LEAST_ACTIVE;
    NEED(byway_chain_pick(chain, call, &options, &picked, NULL));
    NEED(byway_session_new(chain, &session, NULL));
    NEED(byway_session_pick(session, call, &options, &other, NULL));
    OK(picked.ticket && other.ticket && picked.tag != other.tag, "least active goes elsewhere");
    STATUS(byway_chain_pick_end(chain, picked.ticket, 1, 1000), BYWAY_OK, "a ticket ends");
    STATUS(byway_chain_pick_end(chain, picked.ticket, 1, 1000), BYWAY_DONE, "once");
    STATUS(byway_chain_pick_end(chain, 0, 1, -1), BYWAY_DONE, "no ticket is no harm");
    STATUS(byway_chain_pick_end(chain, UINT64_MAX, 1, -1), BYWAY_DONE, "nor is junk");
    result.has_report = 1;
    result.report_latency_ms = 2;
    STATUS(byway_chain_pick_end_with(chain, other.ticket, &result, NULL), BYWAY_OK, "with the provider's own report");

    options.balance = 0;
    options.exclude = tried;
    options.exclude_count = 2;
    NEED(byway_chain_pick(chain, call, &options, &picked, NULL));
    OK(picked.tag == 102 && picked.row == 1, "a retry gets what was not tried");
    options.exclude_count = 0;
    options.available = &up;
    options.available_words = 1;
    STATUS(byway_chain_pick(chain, call, &options, &picked, NULL), BYWAY_E_STATE, "availability of another list");
    options.available_list = byway_invokers_generation(list);
    NEED(byway_session_pick(session, call, &options, &picked, NULL));
    OK(picked.tag == 102 && picked.available == 1, "only the available one");
    up = 0;
    NEED(byway_chain_pick(chain, call, &options, &picked, NULL));
    OK(picked.available == 0, "nobody is available, and the pick says so");
    options.available = NULL;
    options.flags = BYWAY_PICK_STICKY;
    NEED(byway_chain_pick(chain, call, &options, &picked, NULL));
    for (i = 0; i < 20; i++) {
        NEED(byway_chain_pick(chain, call, &options, &other, NULL));
        if (other.tag != picked.tag)
            break;
    }
    OK(i == 20, "a sticky pick stays");
    options.flags = 64;
    STATUS(byway_chain_pick(chain, call, &options, &picked, NULL), BYWAY_E_ENUM, "an unknown flag");
    byway_chain_release(chain);
    chain = chain_over(NULL, "consumer://10.0.0.9/HelloService?application=web");
    STATUS(byway_chain_pick(chain, call, NULL, &picked, &err), BYWAY_E_NO_INVOKER, "without providers");
    byway_error_free(err);
    byway_session_free(session);
    byway_chain_release(chain);
    byway_invocation_free(call);
    byway_invokers_release(list);
}

static void after_shutdown(void)
{
    byway_invokers *list = list_of_three();
    byway_chain *chain = chain_over(list, "consumer://10.0.0.9/HelloService?application=web");
    byway_invocation *call = call_of("hello");
    byway_session *session = NULL;
    const byway_choice *view = NULL;
    byway_choice *choice = NULL;
    NEED(byway_session_new(chain, &session, NULL));
    NEED(byway_session_route(session, call, &view, NULL));
    NEED(byway_chain_route(chain, call, &choice, NULL));
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    STATUS(byway_session_route(session, call, &view, NULL), BYWAY_E_SHUTDOWN, "a session after shutdown");
    STATUS(byway_chain_set_invokers(chain, list, NULL, NULL), BYWAY_E_SHUTDOWN, "a chain after shutdown");
    STATUS(byway_engine_set_rule(engine, TEXT("a.tag-router"), TEXT(""), NULL), BYWAY_E_SHUTDOWN, "a rule after shutdown");
    OK(byway_choice_len(choice) == 3, "a choice is a value and stays");
    byway_choice_free(choice);
    byway_session_free(session);
    byway_chain_release(chain);
    byway_invokers_release(list);
    byway_invocation_free(call);
}

int main(void)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    options.seed = 42;
    NEED(byway_engine_new(&options, &engine, NULL));
    lists();
    rules();
    events();
    host_sources();
    explanations();
    recent_calls();
    static_rules();
    calls();
    choices();
    pinned_worlds();
    sessions();
    host_routers();
    picks();
    after_shutdown();
    byway_engine_release(engine);
    return tap_done();
}
