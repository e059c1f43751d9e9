/* What upstream's tests ask of the inside of a chain, as it shows outside: in what a chain routes and picks, in its
 * status, in explanations and in what it keeps of its calls. */
#include "chains.h"

/* ---- lists of rows: each state is what a chain with a host's routers leaves */

enum { MOST_LISTS = 8, MOST_ROWS = 64 };

/* Members of a list in its order, and which of them are left. */
struct rows {
    char name[8];
    char members[MOST_ROWS][8];
    int kept[MOST_ROWS], count;
};

struct lists {
    struct rows all[MOST_LISTS];
    int count;
};

static int place_of(const struct rows *rows, const char *member)
{
    int i;
    for (i = 0; i < rows->count; i++)
        if (strcmp(rows->members[i], member) == 0)
            return i;
    return -1;
}

static void add_row(struct rows *rows, const char *member)
{
    int at = place_of(rows, member);
    if (at < 0) {
        if (rows->count == MOST_ROWS)
            abort();
        at = rows->count++;
        snprintf(rows->members[at], sizeof rows->members[at], "%s", member);
    }
    rows->kept[at] = 1;
}

static void drop_row(struct rows *rows, const char *member)
{
    int at = place_of(rows, member);
    if (at >= 0)
        rows->kept[at] = 0;
}

/* A host's router: keeps the members of one set. `universe` says whose row is whose. */
struct sieve {
    const struct rows *universe, *set;
};

static byway_status sift(void *data, const byway_router_request *request, const byway_call *call)
{
    const struct sieve *sieve = data;
    size_t i;
    (void)call;
    for (i = 0; i < request->count; i++) {
        int at = place_of(sieve->set, sieve->universe->members[request->tags[i] - 1]);
        request->keep[i] = at >= 0 && sieve->set->kept[at];
    }
    return BYWAY_OK;
}

static void add_router(struct world *w, int priority, byway_status (*route)(void *, const byway_router_request *,
                                                                         const byway_call *),
                       void *data)
{
    byway_router_callbacks callbacks = BYWAY_ROUTER_CALLBACKS_INIT;
    byway_router *router = NULL;
    callbacks.route = route;
    callbacks.user_data = data;
    if (byway_router_new(w->engine, keepf(w, "r%d", priority), BYWAY_NUL, priority, 0, &callbacks, &router, NULL) ||
        byway_chain_add_router(w->chain, router, NULL))
        abort();
    byway_router_release(router);
}

/* A world over the members of a list and of others it has not. */
static cJSON *open_rows(struct world *w, const struct rows *rows, const struct rows *other, struct rows *universe)
{
    cJSON *urls = cJSON_CreateArray();
    int i;
    *universe = *rows;
    for (i = 0; other != NULL && i < other->count; i++)
        add_row(universe, other->members[i]);
    for (i = 0; i < universe->count; i++) {
        char url[64];
        snprintf(url, sizeof url, "dubbo://%s:1/S", universe->members[i]);
        cJSON_AddItemToArray(urls, cJSON_CreateString(url));
    }
    if (!world_open(w, BYWAY_DIALECT_BYWAY, "consumer://10.0.0.1/S", urls, NULL, NULL))
        abort();
    byway_invocation_set_method(w->call, "m", 1);
    return urls;
}

/* Who is left: of this list, and of the other one if there is one. */
static cJSON *left_of(const struct rows *rows, const struct rows *other)
{
    struct world w;
    struct rows universe;
    struct sieve sieves[2];
    byway_choice *choice = NULL;
    cJSON *left = cJSON_CreateArray(), *urls = open_rows(&w, rows, other, &universe);
    uint64_t tag;
    size_t i;
    sieves[0].universe = sieves[1].universe = &universe;
    sieves[0].set = rows;
    sieves[1].set = other;
    add_router(&w, 0, sift, &sieves[0]);
    if (other != NULL)
        add_router(&w, 1, sift, &sieves[1]);
    if (byway_chain_route(w.chain, w.call, &choice, NULL) != BYWAY_OK)
        abort();
    for (i = 0; byway_choice_tag_at(choice, i, &tag) == BYWAY_OK; i++)
        cJSON_AddItemToArray(left, cJSON_CreateString(universe.members[tag - 1]));
    if (i != byway_choice_len(choice))
        abort();
    byway_choice_free(choice);
    world_close(&w);
    cJSON_Delete(urls);
    return left;
}

/* One of those that are left; NULL when nobody is. */
static cJSON *picked_of(const struct rows *rows)
{
    struct world w;
    struct rows universe;
    struct sieve sieve;
    byway_picked picked;
    cJSON *urls = open_rows(&w, rows, NULL, &universe), *got = NULL;
    byway_status status;
    sieve.universe = &universe;
    sieve.set = rows;
    add_router(&w, 0, sift, &sieve);
    memset(&picked, 0, sizeof picked);
    status = byway_chain_pick(w.chain, w.call, NULL, &picked, NULL);
    if (status == BYWAY_OK)
        got = cJSON_CreateString(universe.members[picked.tag - 1]);
    else if (status != BYWAY_E_NO_INVOKER)
        abort();
    world_close(&w);
    cJSON_Delete(urls);
    return got;
}

static struct rows *list_named(struct lists *lists, const char *name)
{
    int i;
    for (i = 0; i < lists->count; i++)
        if (strcmp(lists->all[i].name, name) == 0)
            return &lists->all[i];
    return NULL;
}

static struct rows *new_list(struct lists *lists, const char *name)
{
    struct rows *rows = &lists->all[lists->count++];
    if (lists->count > MOST_LISTS)
        abort();
    memset(rows, 0, sizeof *rows);
    snprintf(rows->name, sizeof rows->name, "%s", name);
    return rows;
}

static void add_all(struct rows *rows, const cJSON *members)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, members) add_row(rows, member->valuestring);
}

static void drop_all(struct rows *rows, const cJSON *members)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, members) drop_row(rows, member->valuestring);
}

static cJSON *slice(const cJSON *list, int first, int last)
{
    cJSON *part = cJSON_CreateArray();
    for (; first < last && first < cJSON_GetArraySize(list); first++)
        cJSON_AddItemToArray(part, cJSON_Duplicate(cJSON_GetArrayItem(list, first), 1));
    return part;
}

/* A cursor that removes what it passes, one way and then the other. */
static enum outcome walk(struct rows *rows, int at, const cJSON *step)
{
    static const char *const wanted[] = {"after_first_half", "after_second_half"};
    cJSON *left = left_of(rows, NULL), *halves[2];
    int forward = strncmp(text_of(step, "walk", ""), "forward", 7) == 0, i;
    enum outcome outcome = PASS;
    if (!flag_of(step, "remove")) {
        cJSON_Delete(left);
        return skips("rows have no cursor");
    }
    halves[!forward] = slice(left, at, cJSON_GetArraySize(left));
    halves[forward] = slice(left, 0, at);
    for (i = 0; i < 2 && outcome == PASS; i++) {
        drop_all(rows, halves[i]);
        outcome = same_json(left_of(rows, NULL), get(step, wanted[i]), wanted[i]);
    }
    cJSON_Delete(halves[0]);
    cJSON_Delete(halves[1]);
    cJSON_Delete(left);
    return outcome;
}

/* What a step asks. `*got` stays NULL for what is not there, a place past the end among it; 0 for a step that sets have
 * no meaning for. */
static int ask(struct lists *lists, struct rows *rows, const char *op, const cJSON *argument, cJSON **got)
{
    cJSON *left = left_of(rows, NULL);
    int known = 1, size = cJSON_GetArraySize(left), at = cJSON_IsNumber(argument) ? argument->valueint : 0, i;
    const cJSON *found = NULL, *item;
    const char *text = cJSON_IsString(argument) ? argument->valuestring : "";
    if (strcmp(op, "size") == 0)
        *got = cJSON_CreateNumber(size);
    else if (strcmp(op, "is_empty") == 0)
        *got = cJSON_CreateBool(size == 0);
    else if (strcmp(op, "to_list") == 0)
        *got = cJSON_Duplicate(left, 1);
    else if (strcmp(op, "sub_list") == 0)
        *got = slice(left, at, argument->next->valueint);
    else if (strcmp(op, "get") == 0 || strcmp(op, "remove_at") == 0) {
        found = cJSON_GetArrayItem(left, at);
        if (found != NULL && op[0] == 'r')
            drop_row(rows, found->valuestring);
        *got = cJSON_Duplicate(found, 1);
    } else if (strcmp(op, "contains") == 0 || strcmp(op, "index_of") == 0) {
        i = at = 0;
        cJSON_ArrayForEach(item, left)
        {
            at++;
            if (strcmp(item->valuestring, text) == 0)
                i = at;
        }
        *got = op[0] == 'c' ? cJSON_CreateBool(i > 0) : cJSON_CreateNumber(i - 1);
    } else if (strcmp(op, "remove") == 0)
        drop_row(rows, text);
    else if (strcmp(op, "remove_all") == 0 || strcmp(op, "remove_if") == 0)
        drop_all(rows, argument);
    else if (strcmp(op, "add") == 0)
        add_row(rows, text);
    else if (strcmp(op, "add_all") == 0)
        add_all(rows, argument);
    else if (strcmp(op, "add_index") == 0)
        rows->kept[at] = 1;
    else if (strcmp(op, "add_all_bitlist") == 0) {
        cJSON *others = left_of(list_named(lists, text), NULL);
        add_all(rows, others);
        cJSON_Delete(others);
    } else if (strcmp(op, "clear") == 0)
        rows->count = 0;
    else if (strcmp(op, "and") == 0)
        *got = left_of(rows, list_named(lists, text));
    else if (strcmp(op, "clone") == 0) {
        struct rows *copy = new_list(lists, text[0] != '\0' ? text : "clone");
        memcpy(copy->members, rows->members, sizeof rows->members);
        memcpy(copy->kept, rows->kept, sizeof rows->kept);
        copy->count = rows->count;
    } else if (strcmp(op, "new_from") == 0 || strcmp(op, "new_from_empty") == 0) {
        struct rows *copy = new_list(lists, "copy");
        if (op[8] == '\0')
            add_all(copy, left);
        *got = left_of(copy, NULL);
    } else if (strcmp(op, "random_select_one") == 0)
        *got = picked_of(rows);
    else
        known = 0;
    cJSON_Delete(left);
    return known;
}

static enum outcome bit_list(const cJSON *one)
{
    /* Who came later, and over which list a set was made: nothing a set has. */
    static const char *const foreign[] = {"has_tail", "tail_list", "origin_list"};
    static struct lists lists;
    const cJSON *step;
    enum outcome outcome = PASS;
    int asked = 0;
    lists.count = 0;
    cJSON_ArrayForEach(step, get(one, "steps"))
    {
        const char *op = text_of(step, "op", "");
        const cJSON *argument = get(step, "args")->child, *wanted = get(step, "sane_expect");
        struct rows *rows = NULL;
        cJSON *got = NULL;
        size_t i;
        for (i = 0; i < 3; i++)
            if (strcmp(op, foreign[i]) == 0)
                break;
        if (i < 3)
            continue;
        if (strcmp(op, "new") == 0) {
            rows = new_list(&lists, cJSON_IsString(argument) ? argument->valuestring : "");
            add_all(rows, cJSON_IsString(argument) ? argument->next : argument);
            continue;
        }
        /* A step names its list first where the case has several. */
        if (list_named(&lists, "") == NULL && cJSON_IsString(argument)) {
            rows = list_named(&lists, argument->valuestring);
            argument = argument->next;
        } else {
            rows = list_named(&lists, "");
        }
        if (wanted == NULL)
            wanted = get(step, "fixed_expect");
        if (wanted == NULL)
            wanted = get(step, "expect");
        if (rows != NULL && strcmp(op, "list_iterator") == 0) {
            outcome = walk(rows, argument->valueint, step);
            if (outcome != PASS)
                return outcome;
            asked++;
            continue;
        }
        if (rows == NULL || !ask(&lists, rows, op, argument, &got))
            return skips("%s: sets have no such thing", op);
        asked += wanted != NULL || get(step, "throws") != NULL;
        if (wanted != NULL)
            outcome = same_json(got != NULL ? got : cJSON_CreateNull(), wanted, op);
        else {
            if (get(step, "throws") != NULL && got != NULL)
                outcome = fails("%s: there is something", op);
            cJSON_Delete(got);
        }
        if (outcome != PASS)
            return outcome;
    }
    return asked > 0 ? PASS : skips("sets have no cursors, tails or origins");
}

/* ---- chains */

static const char *consumer_of(const cJSON *one)
{
    const char *text = text_of(one, "consumer_url", "");
    return strstr(text, "://") != NULL && strchr(text, ' ') == NULL ? text : "consumer://127.0.0.1/com.demo.Service";
}

static enum outcome routed(const cJSON *one, const cJSON *rows, const cJSON *expect)
{
    struct world w;
    enum outcome outcome;
    if (!world_open(&w, dialect_of(one), consumer_of(one), rows, NULL, NULL)) {
        outcome = fails("%s", w.why);
    } else {
        cJSON *left;
        if (!world_call(&w, get(one, "invocation")))
            byway_invocation_set_method(w.call, "m", 1);
        left = world_rows(&w);
        outcome = left == NULL ? fails("%s", w.why) : same_json(ids_of(rows, left), expect, "ids");
        cJSON_Delete(left);
    }
    world_close(&w);
    return outcome;
}

/* Static configurations that count: those that are there, enabled and valid, whatever their key. */
static enum outcome delivered(const cJSON *one, const cJSON *keys)
{
    const cJSON *config;
    cJSON *got = cJSON_CreateArray(), *rows = cJSON_Parse("[\"dubbo://10.0.0.2:1/S\"]");
    enum outcome outcome = PASS;
    if (!cJSON_IsArray(get(one, "configs"))) {
        cJSON_Delete(got);
        cJSON_Delete(rows);
        return skips("described in words");
    }
    cJSON_ArrayForEach(config, get(one, "configs"))
    {
        struct world w;
        const char *key = text_of(config, "key", "");
        int of_service = strcmp(text_of(config, "scope", ""), "service") == 0;
        cJSON *rule, *left;
        char consumer[128], *text;
        if (!cJSON_IsObject(config))
            continue;
        snprintf(consumer, sizeof consumer, of_service ? "consumer://10.0.0.1/%s" : "consumer://10.0.0.1/S?application=%s",
                 key);
        if (!world_open(&w, BYWAY_DIALECT_BYWAY, consumer, rows, NULL, NULL))
            abort();
        rule = cJSON_Duplicate(config, 1);
        cJSON_AddBoolToObject(rule, "force", 1);
        cJSON_AddItemToObject(rule, "conditions", cJSON_Parse("[\"=> a=b\"]"));
        text = cJSON_PrintUnformatted(rule);
        if (byway_engine_set_rule(w.engine, keepf(&w, "%s%s.condition-router", key, of_service ? "::" : ""), BYWAY_NUL,
                                  text, BYWAY_NUL, NULL) != BYWAY_OK &&
            outcome == PASS)
            outcome = fails("%s is refused", text);
        byway_invocation_set_method(w.call, "m", 1);
        left = world_rows(&w);
        if (cJSON_GetArraySize(left) == 0)
            cJSON_AddItemToArray(got, cJSON_CreateString(key));
        cJSON_Delete(left);
        cJSON_free(text);
        cJSON_Delete(rule);
        world_close(&w);
    }
    cJSON_Delete(rows);
    if (outcome == PASS)
        return same_json(got, keys, "in force");
    cJSON_Delete(got);
    return outcome;
}

/* A host router that notes its turn and how many rows it gets. */
struct turn {
    int first_only, priority, input;
    cJSON *order;
};

static byway_status take_turn(void *data, const byway_router_request *request, const byway_call *call)
{
    struct turn *turn = data;
    size_t i;
    (void)call;
    turn->input = (int)request->count;
    cJSON_AddItemToArray(turn->order, cJSON_CreateNumber(turn->priority));
    for (i = 0; i < request->count; i++)
        request->keep[i] = !turn->first_only || i == 0;
    return BYWAY_OK;
}

/* Host routers in ascending order, each on the output of the one before. */
static enum outcome host_routers(const cJSON *one)
{
    struct world w;
    struct turn turns[16];
    const cJSON *router, *expect = get(one, "expect");
    const cJSON *list = get(one, get(one, "routers") != NULL ? "routers" : "added_priorities");
    cJSON *order = cJSON_CreateArray(), *left;
    enum outcome outcome = PASS;
    int count = 0;
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, consumer_of(one), get(one, "invokers"), NULL, NULL))
        abort();
    cJSON_ArrayForEach(router, list)
    {
        struct turn *turn = &turns[count++];
        if (count > 16)
            abort();
        turn->order = order;
        turn->input = -1;
        turn->priority = cJSON_IsNumber(router) ? router->valueint : (int)number_of(router, "priority", 0);
        turn->first_only = strcmp(text_of(router, "does", ""), "keeps the first") == 0;
        add_router(&w, turn->priority, take_turn, turn);
    }
    world_call(&w, get(one, "invocation"));
    left = world_rows(&w);
    count = 0;
    cJSON_ArrayForEach(router, list)
    {
        const cJSON *size = get(router, "input_size");
        if (size != NULL && turns[count].input != size->valueint)
            outcome = fails("%d rows come to %d", turns[count].input, turns[count].priority);
        count++;
    }
    if (outcome == PASS)
        outcome = cJSON_IsObject(expect) ? same_json(cJSON_Duplicate(order, 1), get(expect, "call_order"), "order")
                                         : same_json(ids_of(get(one, "invokers"), left), expect, "ids");
    cJSON_Delete(order);
    cJSON_Delete(left);
    world_close(&w);
    return outcome;
}

static enum outcome chain(const cJSON *one)
{
    const cJSON *expect = get(one, "expect");
    cJSON *none = cJSON_CreateArray();
    enum outcome outcome;
    if (get(expect, "call_order") != NULL || cJSON_IsArray(get(one, "routers")))
        outcome = host_routers(one);
    else if (cJSON_IsArray(expect))
        outcome = routed(one, cJSON_IsArray(get(one, "invokers")) ? get(one, "invokers") : none, expect);
    else if (get(expect, "delivered_keys") != NULL)
        outcome = delivered(one, get(expect, "delivered_keys"));
    else if (get(expect, "assert") != NULL) {
        /* One writer and four readers; every answer belongs to one list. */
        cJSON *lists = cJSON_Parse("[[\"a\",\"b\",\"c\"],[\"b\",\"c\",\"d\"],[\"e\"]]");
        outcome = replaced_while_routing(lists, 4, 1, 2000);
        cJSON_Delete(lists);
    } else if (flag_of(expect, "ok"))
        outcome = routed(one, none, none); /* a null list is an empty one */
    else
        outcome = skips("a chain has one world at a time: no call meets a list that changes under it");
    cJSON_Delete(none);
    return outcome;
}

/* dubbo-go's pools are the memo here: what is remembered belongs to the generation it was made for. */
static enum outcome cache(const cJSON *one)
{
    struct world w;
    const cJSON *expect = get(one, "expect");
    uint64_t before, later;
    cJSON *first, *again;
    enum outcome outcome;
    /* With the pool, the first generation is asked about; switched off, the one after a rebuild. */
    int want = (int)number_of(expect, "generation", 0) - !flag_of(expect, "pool_found_by_name");
    if (!world_open(&w, BYWAY_DIALECT_BYWAY, consumer_of(one), get(one, "invokers"), NULL, NULL))
        abort();
    byway_invocation_set_method(w.call, "Say", 3);
    before = byway_chain_generation(w.chain);
    first = world_rows(&w);
    again = world_rows(&w);
    outcome = byway_chain_generation(w.chain) == before ? same_json(again, first, "again") : fails("another generation");
    if (byway_chain_set_invokers(w.chain, w.list, NULL, NULL) != BYWAY_OK)
        abort();
    later = byway_chain_generation(w.chain);
    if (outcome == PASS && later - before != (uint64_t)want)
        outcome = fails("%d generations later", (int)(later - before));
    if (outcome == PASS)
        outcome = same_json(world_rows(&w), first, "over the list set again");
    cJSON_Delete(first);
    world_close(&w);
    return outcome;
}

/* ---- explanations */

static const char *const ROUTERS[][2] = {
    {"MockInvokersSelector", "mock"},       {"StandardMeshRuleRouter", "standard-mesh-rule"},
    {"TagStateRouter", "tag"},              {"ServiceStateRouter", "service"},
    {"ProviderAppStateRouter", "provider-app"}, {"AppStateRouter", "app"},
    {"AppScriptStateRouter", "script-app"},
};

/* Our name of the router whose class a line begins with. */
static const char *router_at(const char *line)
{
    size_t i;
    for (i = 0; i < sizeof ROUTERS / sizeof ROUTERS[0]; i++)
        if (strncmp(line, ROUTERS[i][0], strlen(ROUTERS[i][0])) == 0)
            return ROUTERS[i][1];
    return NULL;
}

static cJSON *text_as_json(byway_text *text)
{
    byway_str json;
    cJSON *read;
    byway_text_str(text, &json);
    read = cJSON_Parse(json.data);
    byway_text_free(text);
    return read;
}

static cJSON *explained(struct world *w, const cJSON *invocation)
{
    byway_text *text = NULL;
    if (!world_call(w, invocation))
        byway_invocation_set_method(w->call, "m", 1);
    if (byway_chain_explain(w->chain, w->call, BYWAY_FORMAT_JSON, &text, NULL) != BYWAY_OK)
        abort();
    return text_as_json(text);
}

static cJSON *router_named(const cJSON *all, const char *name)
{
    cJSON *router;
    cJSON_ArrayForEach(router, get(all, "routers")) if (strcmp(text_of(router, "name", ""), name) == 0) return router;
    return NULL;
}

static int number_behind(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at == NULL ? -1 : atoi(at + strlen(name));
}

/* A line of upstream's text says what an explanation says: how many come in, go out, and are left by the chain. */
static enum outcome snapshot_line(const cJSON *got, const char *line, int *reached)
{
    int input = number_behind(line, "(Input: "), output = number_behind(line, "(Current Node Output: ");
    int end = number_behind(line, "(Chain Node Output: ");
    const char *class_name = line + strspn(line, " [");
    const cJSON *router;
    if ((int)number_of(got, "out", -1) != end)
        return fails("the chain leaves %d: %s", (int)number_of(got, "out", -1), line);
    if (strncmp(class_name, "Parent ", 7) == 0)
        return (int)number_of(got, "in", -1) == input ? PASS : fails("%s", line);
    if (router_at(class_name) == NULL)
        return fails("unknown router in %s", line);
    router = router_named(got, router_at(class_name));
    if (router == NULL || !flag_of(router, "reached"))
        return input == output ? PASS : fails("not reached: %s", line); /* not in force: passes what it gets */
    ++*reached;
    return (int)number_of(router, "in", -1) == input && (int)number_of(router, "out", -1) == output
               ? PASS
               : fails("%d to %d: %s", (int)number_of(router, "in", -1), (int)number_of(router, "out", -1), line);
}

static int mock_leaves(struct world *w, const char *call)
{
    cJSON *invocation = cJSON_Parse(call), *got = explained(w, invocation);
    int out = (int)number_of(router_named(got, "mock"), "out", -1);
    cJSON_Delete(got);
    cJSON_Delete(invocation);
    return out;
}

/* What the operations command shows: the mock router's two groups, and the routers in order. */
static enum outcome tool_line(struct world *w, const char *line, cJSON *names)
{
    int total = number_behind(line, "Total: "), got = total;
    if (strncmp(line, "[ Mocked", 8) == 0)
        got = mock_leaves(w, "{\"method\":\"m\",\"attachments\":{\"invocation.need.mock\":\"true\"}}");
    else if (strncmp(line, "[ Normal", 8) == 0)
        got = mock_leaves(w, "{\"method\":\"m\"}");
    else if (router_at(line) != NULL) {
        cJSON_AddItemToArray(names, cJSON_CreateString(router_at(line)));
        if (total >= 0)
            got = w->count;
    }
    return got == total ? PASS : fails("%d: %s", got, line);
}

static enum outcome snapshot(const cJSON *one)
{
    struct world w;
    char *text, *line;
    int reached = 0, count = 0, tool;
    const cJSON *router;
    cJSON *got, *names = cJSON_CreateArray(), *own = cJSON_CreateArray(), *status;
    byway_text *said = NULL;
    enum outcome outcome = PASS;
    if (!world_open(&w, dialect_of(one), consumer_of(one), get(one, "invokers"), NULL, NULL))
        abort();
    text = (char *)keep(&w, text_of(get(one, "expect"), "text", ""));
    tool = strncmp(text, "[ Parent", 8) != 0;
    got = explained(&w, get(one, "invocation"));
    for (line = strtok(text, "\n"); line != NULL && outcome == PASS; line = strtok(NULL, "\n"))
        outcome = tool ? tool_line(&w, line, names) : snapshot_line(got, line, &reached);
    cJSON_ArrayForEach(router, get(got, "routers")) count += flag_of(router, "reached");
    if (outcome == PASS && !tool && count != reached)
        outcome = fails("%d routers are reached, want %d", count, reached);
    if (outcome == PASS && tool) {
        /* Affinity came later. */
        if (byway_chain_status(w.chain, &said, NULL) != BYWAY_OK)
            abort();
        status = text_as_json(said);
        cJSON_ArrayForEach(router, get(status, "routers"))
            if (strncmp(text_of(router, "name", ""), "affinity", 8) != 0)
                cJSON_AddItemToArray(own, cJSON_CreateString(text_of(router, "name", "")));
        outcome = same_json(cJSON_Duplicate(own, 1), names, "routers");
        cJSON_Delete(status);
    }
    cJSON_Delete(own);
    cJSON_Delete(names);
    cJSON_Delete(got);
    world_close(&w);
    return outcome;
}

/* Chains share no routers: what is built for one service never decides for another. */
static enum outcome sharing(const cJSON *one)
{
    static const char *const services[] = {"com.foo.A", "com.foo.B"};
    struct world w;
    cJSON *rows = cJSON_Parse("[\"dubbo://10.0.0.1:1/s?x=1\",\"dubbo://10.0.0.2:1/s?x=2\"]");
    byway_chain *chains[2];
    int own = 1, i;
    const char *want = text_of(get(one, "sane"), "walk_of_A_ends_in", ""), *got;
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, "consumer://10.0.1.1/com.foo.A?application=c", rows, NULL, NULL))
        abort();
    chains[0] = w.chain;
    if (byway_chain_new(w.engine, "consumer://10.0.1.1/com.foo.B?application=c", BYWAY_NUL, NULL, &chains[1], NULL) ||
        byway_chain_set_invokers(chains[1], w.list, NULL, NULL))
        abort();
    for (i = 0; i < 2; i++)
        byway_engine_set_rule(w.engine, keepf(&w, "%s::.condition-router", services[i]), BYWAY_NUL,
                              keepf(&w, "force: true\nconditions: ['=> x=%d']", i + 1), BYWAY_NUL, NULL);
    byway_invocation_set_method(w.call, "m", 1);
    for (i = 0; i < 2; i++) {
        uint64_t tags[4];
        size_t total = 0;
        if (byway_chain_route_tags(chains[i], w.call, tags, 4, &total, NULL, NULL) != BYWAY_OK || total != 1 ||
            tags[0] != (uint64_t)i + 1)
            own = 0;
    }
    byway_chain_release(chains[1]);
    world_close(&w);
    cJSON_Delete(rows);
    got = own ? "AppScriptStateRouter of A" : "AppScriptStateRouter of B";
    return strcmp(got, want) == 0 ? PASS : fails("ends in the %s", got);
}

static int kept_calls(byway_chain *one)
{
    byway_text *text = NULL;
    cJSON *all;
    int count;
    if (byway_chain_recent(one, BYWAY_FORMAT_JSON, &text, NULL) != BYWAY_OK)
        abort();
    all = text_as_json(text);
    count = cJSON_GetArraySize(all);
    cJSON_Delete(all);
    return count;
}

/* Upstream marks a thread between switch and response; here a service's chain keeps its calls, and no other's. */
static enum outcome switched(const cJSON *one)
{
    struct world w;
    byway_chain *other = NULL, *asked;
    cJSON *none = cJSON_CreateArray();
    const cJSON *step;
    const char *service = text_of(get(one, "invocation"), "service_key", "");
    char consumer[128];
    int over = 0, before, printed, i;
    enum outcome outcome = PASS;
    snprintf(consumer, sizeof consumer, "consumer://127.0.0.1/%s", service);
    if (!world_open(&w, BYWAY_DIALECT_DUBBO_3, consumer, none, NULL, NULL) ||
        byway_chain_new(w.engine, "consumer://127.0.0.1/Another", BYWAY_NUL, NULL, &other, NULL))
        abort();
    cJSON_ArrayForEach(step, get(one, "steps"))
    {
        const char *space = strchr(step->valuestring, ' ');
        if (space == NULL)
            over = 1;
        else if (strcmp(space + 1, service) != 0 ||
                 byway_chain_keep_recent(w.chain, step->valuestring[0] == 'e', NULL) != BYWAY_OK)
            outcome = fails("step %s", step->valuestring);
    }
    byway_invocation_set_method(w.call, "call", 4);
    asked = w.chain;
    for (i = printed = 0; i <= over; i++, asked = other) {
        size_t total;
        before = kept_calls(w.chain) + kept_calls(other);
        if (byway_chain_route_tags(asked, w.call, NULL, 0, &total, NULL, NULL) != BYWAY_OK)
            abort();
        printed = kept_calls(w.chain) + kept_calls(other) != before;
    }
    if (outcome == PASS && printed != flag_of(get(one, "expect"), "need_print"))
        outcome = fails("kept: %d", printed);
    byway_chain_release(other);
    world_close(&w);
    cJSON_Delete(none);
    return outcome;
}

/* An empty list is a state of a service, and no error. */
static enum outcome directory(const cJSON *one)
{
    const cJSON *expect = get(one, "expect_byway");
    if (expect == NULL)
        return skips("whoever calls knows who cannot be reached, and says so at a pick");
    return routed(one, get(one, "invokers"), get(expect, "list"));
}

const struct kind inside_kinds[] = {
    {"dubbo_chain", "bitlist", bit_list},
    {"dubbo_chain", "chain", chain},
    {"dubbo_chain", "chain-cache", cache},
    {"dubbo_chain", "chain-snapshot", snapshot},
    {"dubbo_chain", "chain-sharing", sharing},
    {"dubbo_chain", "snapshot-switch", switched},
    {"dubbo_chain", "directory", directory},
    {NULL, NULL, NULL},
};
