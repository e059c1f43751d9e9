/*
 * Which provider serves this call?
 *
 * A service has providers on two ports. A rule sends calls of `hello` to port 20880 and calls of `hello2` to port
 * 20882; everything else may go anywhere. The program sets the rule, routes three calls, has each answer explained,
 * picks one provider for a call, and asks beforehand what a change of the rule would do.
 *
 * Build and run: make demo
 */
#include "byway.h"
#include <stdio.h>
#include <stdlib.h>

/*
 * Every byway function that can fail takes a place for an error object: it says what went wrong, and where. Arguments
 * are evaluated in any order, so the place is passed here too, not what is in it.
 */
static void check(byway_status status, byway_error **place, const char *what)
{
    byway_error *err = place != NULL ? *place : NULL;
    byway_str message;
    if (status >= 0)
        return;
    byway_error_message(err, &message);
    fprintf(stderr, "%s: %s: %.*s\n", what, byway_status_name(status), (int)message.len, message.data);
    if (byway_error_line(err))
        fprintf(stderr, "line %u, column %u\n", (unsigned)byway_error_line(err), (unsigned)byway_error_column(err));
    byway_error_free(err);
    exit(1);
}

static void show(byway_text *text)
{
    byway_str lines;
    byway_text_str(text, &lines);
    fputs(lines.data, stdout);
    byway_text_free(text);
}

/* Providers as a registry lists them: Dubbo URLs. The tag is the host's own number for each, often a pointer. */
static const byway_str providers[] = {
    { "dubbo://10.20.3.1:20880/HelloService?application=shop&region=hangzhou", BYWAY_NUL },
    { "dubbo://10.20.3.2:20880/HelloService?application=shop&region=beijing", BYWAY_NUL },
    { "dubbo://10.20.3.3:20882/HelloService?application=shop&region=hangzhou", BYWAY_NUL },
    { "dubbo://10.20.3.4:20882/HelloService?application=shop&region=beijing", BYWAY_NUL },
};
static const uint64_t tags[] = { 1, 2, 3, 4 };

static const char rule[] =
    "configVersion: v3.0\n"
    "scope: service\n"
    "key: HelloService\n"
    "force: true\n"
    "conditions:\n"
    "  - method=hello=>address=*:20880\n"
    "  - method=hello2=>address=*:20882\n";

/* The same rule with a slip of the pen: nobody listens on port 20889. */
static const char slip[] =
    "configVersion: v3.0\n"
    "force: true\n"
    "conditions:\n"
    "  - method=hello=>address=*:20880\n"
    "  - method=hello2=>address=*:20889\n";

int main(void)
{
    static const char *const methods[] = { "hello", "hello2", "goodbye" };
    byway_error *err = NULL;
    byway_engine *engine;
    byway_invokers *list;
    byway_chain *chain;
    byway_session *session;
    byway_invocation *call;
    const byway_choice *choice;
    const byway_invocation *calls[1];
    byway_picked picked;
    byway_text *key, *text;
    byway_str name;
    size_t i, n;
    uint64_t tag;

    /* One engine a process, one chain a service that is called, one session a thread that calls it. */
    check(byway_engine_new(NULL, &engine, &err), &err, "engine");
    check(byway_invokers_new(engine, providers, tags, 4, 0, NULL, &list, &err), &err, "providers");
    check(byway_chain_new(engine, "consumer://10.20.1.9/HelloService?application=web", BYWAY_NUL, NULL, &chain, &err),
          &err, "chain");
    check(byway_chain_set_invokers(chain, list, NULL, &err), &err, "set_invokers");
    check(byway_session_new(chain, &session, &err), &err, "session");
    check(byway_invocation_new(&call, &err), &err, "invocation");

    /* A rule is set by its key, here the service's. Chains follow at once; calls under way see one world or the other. */
    check(byway_rule_key(BYWAY_DIALECT_BYWAY, BYWAY_RULE_CONDITION, NULL, 0, "HelloService", BYWAY_NUL, NULL, 0, NULL,
                         0, &key, &err),
          &err, "rule_key");
    byway_text_str(key, &name);
    check(byway_engine_set_rule(engine, name.data, name.len, rule, BYWAY_NUL, &err), &err, "set_rule");
    printf("rule %s\n%s\n", name.data, rule);

    for (i = 0; i < 3; i++) {
        check(byway_invocation_set_method(call, methods[i], BYWAY_NUL), NULL, "set_method");
        check(byway_session_route(session, call, &choice, &err), &err, "route");
        printf("%s may be served by:", methods[i]);
        for (n = 0; n < byway_choice_len(choice); n++)
            if (byway_choice_tag_at(choice, n, &tag) == BYWAY_OK)
                printf(" %llu", (unsigned long long)tag);
        printf("\n");
        check(byway_chain_explain(chain, call, BYWAY_FORMAT_TEXT, &text, &err), &err, "explain");
        show(text);
        printf("\n");
    }

    /* Route and pick in one call. A ticket of an algorithm that counts calls is given back when the call has ended. */
    check(byway_invocation_set_method(call, "hello", BYWAY_NUL), NULL, "set_method");
    check(byway_session_pick(session, call, NULL, &picked, &err), &err, "pick");
    printf("picked for hello: %s\n", picked.tag <= 2 ? "one on port 20880" : "one on the wrong port");
    byway_chain_pick_end(chain, picked.ticket, 1, -1);

    /* Would the other text do what its author means? First by itself, then for a call. */
    check(byway_rule_check(BYWAY_DIALECT_BYWAY, BYWAY_RULE_CONDITION, slip, BYWAY_NUL, list, BYWAY_FORMAT_TEXT, &text,
                           &err),
          &err, "rule_check");
    printf("\nabout the rule with the slip:\n");
    show(text);
    check(byway_invocation_set_method(call, "hello2", BYWAY_NUL), NULL, "set_method");
    calls[0] = call;
    check(byway_chain_diff(chain, name.data, name.len, slip, BYWAY_NUL, calls, 1, BYWAY_FORMAT_JSON, &text, &err), &err,
          "diff");
    printf("it would change for hello2:\n");
    show(text);
    printf("\n");

    byway_text_free(key);
    byway_invocation_free(call);
    byway_session_free(session);
    byway_chain_release(chain);
    byway_invokers_release(list);
    check(byway_engine_shutdown(engine, 1000, &err), &err, "shutdown");
    byway_engine_release(engine);
    return 0;
}
