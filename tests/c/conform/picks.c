/* Load balancing, stickiness and second choices, through picks of a chain. */
#include "chains.h"
#include <math.h>
#include <pthread.h>

static int balance_of(const cJSON *one)
{
    static const char *const names[] = { "random",          "roundrobin", "leastactive", "shortestresponse",
                                         "consistenthash", "adaptive" };
    const char *name = text_of(one, "algorithm", "");
    int i;
    for (i = 0; i < 6; i++)
        if (strcmp(names[i], name) == 0)
            return i + 1;
    return 0;
}

/* A chain over the case's invokers that picks by the case's algorithm. A generic call is unwrapped as hosts do. */
static int pick_open(struct world *w, const cJSON *one, int dialect, byway_pick_options *options)
{
    static const byway_pick_options plain = BYWAY_PICK_OPTIONS_INIT;
    const cJSON *call = get(one, "invocation"), *arguments = get(call, "arguments"), *item;
    const char *consumer = get(one, "availablecheck") != NULL && !flag_of(one, "availablecheck")
                               ? "consumer://127.0.0.1/S?router=-default&cluster.availablecheck=false"
                               : "consumer://127.0.0.1/S?router=-default";
    *options = plain;
    options->balance = balance_of(one);
    if (!world_open(w, dialect, consumer, get(one, "invokers"), NULL, NULL))
        return 0;
    if (strncmp(text_of(call, "method", ""), "$invoke", 7) == 0 && cJSON_GetArraySize(arguments) == 3) {
        /* Behind the method and the types come the method's own arguments. */
        byway_str texts[16] = { { "", 0 }, { "", 0 } };
        size_t count = 2;
        texts[0].data = arguments->child->valuestring;
        texts[0].len = BYWAY_NUL;
        cJSON_ArrayForEach(item, cJSON_GetArrayItem(arguments, 2)) if (count < 16)
        {
            texts[count].data = keep(w, item->valuestring);
            texts[count++].len = BYWAY_NUL;
        }
        byway_invocation_set_method(w->call, text_of(call, "method", ""), BYWAY_NUL);
        byway_invocation_set_arguments(w->call, texts, count);
    } else if (!world_call(w, call)) {
        byway_invocation_set_method(w->call, "m", 1);
    }
    return 1;
}

static byway_picked pick(struct world *w, const byway_pick_options *options)
{
    byway_picked picked;
    byway_status status = byway_chain_pick(w->chain, w->call, options, &picked, NULL);
    if (status) {
        picked.tag = 1;
        picked.row = 0;
        picked.ticket = 0;
        snprintf(w->why, sizeof w->why, "pick: %s", byway_status_name(status));
    }
    return picked;
}

static const char *id_at(const struct world *w, uint64_t row)
{
    return text_of(cJSON_GetArrayItem(w->rows, (int)row), "id", "?");
}

/* Some cases call the third provider by the letter of its upstream variable (`E` for protocol `test5`). */
static int row_of(const struct world *w, const char *id)
{
    const cJSON *row;
    int number = 0;
    char protocol[16];
    cJSON_ArrayForEach(row, w->rows)
    {
        if (strcmp(text_of(row, "id", ""), id) == 0)
            return number;
        number++;
    }
    snprintf(protocol, sizeof protocol, "test%d://", id[0] - 'A' + 1);
    number = 0;
    cJSON_ArrayForEach(row, w->rows)
    {
        if (strncmp(text_of(row, "url", ""), protocol, strlen(protocol)) == 0)
            return number;
        number++;
    }
    return 0;
}

/* Begins a call on one provider: the only one that is available. */
static byway_picked begin_on(struct world *w, byway_pick_options options, int row)
{
    uint64_t bits = (uint64_t)1 << row;
    options.available = &bits;
    options.available_words = 1;
    options.available_list = byway_invokers_generation(w->list);
    return pick(w, &options);
}

static void count(struct world *w, const byway_pick_options *options, int runs, int *counts)
{
    int i;
    for (i = 0; i < runs; i++) {
        byway_picked picked = pick(w, options);
        byway_chain_pick_end(w->chain, picked.ticket, 0, 0);
        counts[picked.row]++;
    }
}

static enum outcome sequence(struct world *w, const byway_pick_options *options, const cJSON *expect)
{
    const char *letters = text_of(expect, "sequence", NULL);
    const cJSON *want;
    if (letters != NULL) {
        for (; *letters != '\0'; letters++) {
            const char *id = id_at(w, pick(w, options).row);
            if (id[0] != *letters)
                return fails("got %s where %s is left", id, letters);
        }
        return PASS;
    }
    cJSON_ArrayForEach(want, expect)
    {
        const char *id = id_at(w, pick(w, options).row);
        if (strcmp(id, want->valuestring) != 0)
            return fails("got %s, want %s", id, want->valuestring);
    }
    return PASS;
}

struct turns {
    struct world *w;
    const byway_pick_options *options;
    int runs, counts[64];
};

static void *take_turns(void *argument)
{
    struct turns *t = argument;
    byway_invocation *call = NULL;
    int i;
    byway_invocation_new(&call, NULL);
    byway_invocation_set_method(call, "test", BYWAY_NUL);
    for (i = 0; i < t->runs; i++) {
        byway_picked picked;
        if (byway_chain_pick(t->w->chain, call, t->options, &picked, NULL) == BYWAY_OK)
            t->counts[picked.row]++;
    }
    byway_invocation_free(call);
    return NULL;
}

static void count_on_threads(struct world *w, const byway_pick_options *options, int runs, int threads, int *counts)
{
    static struct turns turns[16];
    pthread_t ids[16];
    int i, row;
    memset(turns, 0, sizeof turns);
    for (i = 0; i < threads; i++) {
        turns[i].w = w;
        turns[i].options = options;
        turns[i].runs = runs / threads;
        if (pthread_create(&ids[i], NULL, take_turns, &turns[i]))
            abort();
    }
    for (i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        for (row = 0; row < 64; row++)
            counts[row] += turns[i].counts[row];
    }
}

static double weight_of(const struct world *w, int row)
{
    const char *at = strstr(text_of(cJSON_GetArrayItem(w->rows, row), "url", ""), "weight=");
    return at == NULL ? 100 : atof(at + 7);
}

static enum outcome adaptive(struct world *w, const byway_pick_options *options, const cJSON *metrics, int runs)
{
    const cJSON *of_row[64] = { NULL }, *one;
    int counts[64] = { 0 }, i, row, worst = 0, fewest = 0;
    double total = 0;
    cJSON_ArrayForEach(one, metrics) of_row[row_of(w, one->string)] = one;
    for (i = 0; i < runs; i++) {
        byway_call_result result = BYWAY_CALL_RESULT_INIT;
        byway_picked picked = pick(w, options);
        one = of_row[picked.row];
        counts[picked.row]++;
        result.ok = !flag_of(one, "error");
        result.has_report = 1;
        result.report_time_ms = i;
        result.report_load = number_of(one, "load", 0);
        result.report_latency_ms = number_of(one, "rt", 0);
        if (byway_chain_pick_end_with(w->chain, picked.ticket, &result, NULL) != BYWAY_OK)
            return fails("a ticket that does not end");
    }
    for (row = 0; row < w->count; row++)
        total += weight_of(w, row);
    for (row = 0; row < w->count; row++) {
        double unit = floor(runs / total), ewma = 25 + number_of(of_row[row], "rt", 0) / 2;
        if (fabs(counts[row] / (weight_of(w, row) * ewma) - unit) >= 2 * unit)
            return fails("row %d got %d", row, counts[row]);
        if (number_of(of_row[row], "load", 0) > number_of(of_row[worst], "load", 0))
            worst = row;
        if (counts[row] < counts[fewest])
            fewest = row;
    }
    return worst == fewest ? PASS : fails("row %d gets the fewest calls, row %d has the highest load", fewest, worst);
}

static enum outcome asserted(struct world *w, const cJSON *one, const byway_pick_options *options, const char *words)
{
    const cJSON *expect = get(one, "expect");
    int runs = (int)number_of(expect, "runs", 0), threads = (int)number_of(expect, "threads", 1);
    int counts[64] = { 0 }, row, sum = 0;
    double total = 0, average;
    if (strncmp(words, "same invoker as the plain call", 30) == 0) {
        cJSON *plain = cJSON_Duplicate(one, 1), *call = cJSON_CreateObject();
        const cJSON *arguments = get(get(one, "invocation"), "arguments");
        byway_pick_options other;
        struct world second;
        uint64_t first = pick(w, options).row, again = 99;
        cJSON_AddItemToObject(call, "method", cJSON_Duplicate(arguments->child, 1));
        cJSON_AddItemToObject(call, "arguments", cJSON_Duplicate(cJSON_GetArrayItem(arguments, 2), 1));
        cJSON_ReplaceItemInObjectCaseSensitive(plain, "invocation", call);
        if (pick_open(&second, plain, BYWAY_DIALECT_DUBBO_3, &other))
            again = pick(&second, &other).row;
        world_close(&second);
        cJSON_Delete(plain);
        return first == again ? PASS : fails("row %d, then %d", (int)first, (int)again);
    }
    if (strcmp(words, "every invoker is hit") == 0) {
        int number;
        for (number = 0; number < 1000; number++) {
            byway_str texts[3] = { { NULL, BYWAY_NUL }, { "arg2", BYWAY_NUL }, { "arg3", BYWAY_NUL } };
            char text[16];
            uint64_t home;
            int again;
            snprintf(text, sizeof text, "arg%d", number);
            texts[0].data = text;
            byway_invocation_set_method(w->call, "method1", BYWAY_NUL);
            byway_invocation_set_arguments(w->call, texts, 3);
            home = pick(w, options).row;
            counts[home]++;
            for (again = 0; again < 4; again++)
                if (pick(w, options).row != home)
                    return fails("%s goes to two providers", text);
        }
        for (row = 0; row < w->count; row++)
            if (counts[row] == 0)
                return fails("row %d is never hit", row);
        return PASS;
    }
    if (strstr(words, "window") != NULL) {
        /* One slow answer, then a new window in which it no longer counts. */
        byway_picked slow = begin_on(w, *options, w->count - 1);
        byway_chain_pick_end(w->chain, slow.ticket, 1, 5000000000LL);
        world_now_ns += 30001000000u;
    }
    if (threads > 1)
        count_on_threads(w, options, runs, threads, counts);
    else
        count(w, options, runs, counts);
    for (row = 0; row < w->count; row++)
        total += weight_of(w, row);
    average = (double)runs / w->count;
    for (row = 0; row < w->count; row++) {
        double fair = floor(runs / total) * weight_of(w, row);
        int good = 0;
        if (strcmp(words, "sum is 10000") == 0)
            good = 1;
        else if (strncmp(words, "within 100% of average", 22) == 0)
            good = counts[row] > 0 && fabs(counts[row] - average) <= average;
        else if (strncmp(words, "each count differs", 18) == 0)
            good = fabs(counts[row] - average) < 1;
        else if (strncmp(words, "count per invoker within 10", 27) == 0)
            good = fabs(counts[row] - fair) <= 10;
        else if (strstr(words, "share by weight") != NULL)
            good = counts[row] > 0 && fabs(counts[row] / weight_of(w, row) - runs / total) < 2 * runs / total;
        if (!good)
            return fails("row %d got %d: %s", row, counts[row], words);
        sum += counts[row];
    }
    return sum == runs ? PASS : fails("%d of %d", sum, runs);
}

static enum outcome shares(struct world *w, const cJSON *one, const byway_pick_options *options)
{
    const cJSON *expect = get(one, "expect"), *item;
    int runs = (int)number_of(expect, "runs", 0), counts[64] = { 0 }, row;
    double share[64];
    const char *ratio = text_of(expect, "ratio", NULL);
    for (row = 0; row < 64; row++)
        share[row] = 0;
    count(w, options, runs, counts);
    if (cJSON_IsObject(get(expect, "counts"))) {
        cJSON_ArrayForEach(item, get(expect, "counts")) if (counts[row_of(w, item->string)] != item->valueint)
            return fails("%s got %d", item->string, counts[row_of(w, item->string)]);
        return PASS;
    }
    cJSON_ArrayForEach(item, get(expect, "observed"))
    {
        /* Observed counts are themselves one draw; they stand for the nearest simple share. */
        double seen = item->valuedouble / runs, even = 1.0 / cJSON_GetArraySize(get(expect, "observed"));
        share[row_of(w, item->string)] = fabs(seen - even) < 0.05 ? even : seen;
    }
    cJSON_ArrayForEach(item, get(expect, "share")) share[row_of(w, item->string)] = item->valuedouble;
    if (ratio != NULL) {
        double left = atof(strstr(ratio, " about ") + 7), right = atof(strrchr(ratio, ':') + 1);
        char a[2] = { ratio[0], 0 }, b[2] = { ratio[2], 0 };
        share[row_of(w, a)] = left / (left + right);
        share[row_of(w, b)] = right / (left + right);
    }
    for (row = 0; row < w->count; row++) {
        double mean = share[row] * runs;
        if (fabs(counts[row] - mean) > 5 * sqrt(runs * share[row] * (1 - share[row])))
            return fails("row %d got %d of %d, share %g", row, counts[row], runs, share[row]);
    }
    return PASS;
}

static enum outcome balance_as(const cJSON *one, int dialect)
{
    struct world w;
    byway_pick_options options;
    enum outcome outcome = PASS;
    const cJSON *expect = get(one, "expect"), *item;
    if (!pick_open(&w, one, dialect, &options)) {
        outcome = fails("%s", w.why);
    } else if (dialect == BYWAY_DIALECT_BYWAY) {
        const cJSON *sane = get(one, "sane");
        int counts[64] = { 0 }, runs = 0, row;
        cJSON_ArrayForEach(item, sane) runs += item->valueint;
        count(&w, &options, runs, counts);
        cJSON_ArrayForEach(item, sane)
        {
            row = row_of(&w, item->string);
            if (counts[row] != item->valueint)
                outcome = fails("[byway] %s got %d", item->string, counts[row]);
        }
    } else {
        cJSON_ArrayForEach(item, get(one, "active"))
        {
            int calls;
            for (calls = 0; calls < item->valueint; calls++)
                begin_on(&w, options, row_of(&w, item->string));
        }
        cJSON_ArrayForEach(item, get(one, "stats"))
        {
            int ms, active;
            if (sscanf(item->valuestring, "one success of %d ms and %d active", &ms, &active) != 2) {
                outcome = fails("statistics not understood: %s", item->valuestring);
                break;
            }
            byway_chain_pick_end(w.chain, begin_on(&w, options, row_of(&w, item->string)).ticket, 1, ms * 1000000LL);
            for (; active > 0; active--)
                begin_on(&w, options, row_of(&w, item->string));
        }
        if (outcome != PASS)
            ;
        else if (cJSON_IsArray(expect) || cJSON_IsString(get(expect, "sequence")))
            outcome = sequence(&w, &options, expect);
        else if (cJSON_IsObject(get(one, "provider_metrics")))
            outcome = adaptive(&w, &options, get(one, "provider_metrics"), (int)number_of(expect, "runs", 0));
        else if (cJSON_IsString(get(expect, "assert")))
            outcome = asserted(&w, one, &options, text_of(expect, "assert", ""));
        else
            outcome = shares(&w, one, &options);
    }
    if (outcome == PASS && w.why[0] != '\0')
        outcome = fails("%s", w.why);
    world_close(&w);
    return outcome;
}

static enum outcome balance(const cJSON *one)
{
    enum outcome outcome = balance_as(one, BYWAY_DIALECT_DUBBO_3);
    if (outcome == PASS && cJSON_IsObject(get(one, "sane")))
        outcome = balance_as(one, BYWAY_DIALECT_BYWAY);
    return outcome;
}

static enum outcome sticky(const cJSON *one)
{
    struct world w;
    byway_pick_options options;
    enum outcome outcome;
    const cJSON *expect = get(one, "expect");
    if (!pick_open(&w, one, BYWAY_DIALECT_DUBBO_3, &options)) {
        outcome = fails("%s", w.why);
    } else {
        options.balance = BYWAY_BALANCE_ROUND_ROBIN;
        if (cJSON_IsArray(get(expect, "five_selects"))) {
            outcome = sequence(&w, &options, get(expect, "five_selects"));
        } else {
            uint64_t stuck = pick(&w, &options).tag, again = pick(&w, &options).tag;
            options.exclude = &stuck;
            options.exclude_count = 1;
            outcome = again == stuck && pick(&w, &options).tag != stuck ? PASS : fails("it does not stay, or not leave");
        }
    }
    world_close(&w);
    return outcome;
}

static enum outcome choose(const cJSON *one)
{
    struct world w;
    byway_pick_options options;
    enum outcome outcome = PASS;
    const cJSON *expect = get(one, "expect"), *item;
    uint64_t bits = 0, exclude[64];
    size_t excluded = 0;
    int row = 0, i, counts[64] = { 0 };
    if (!pick_open(&w, one, BYWAY_DIALECT_DUBBO_3, &options)) {
        outcome = fails("%s", w.why);
        world_close(&w);
        return outcome;
    }
    cJSON_ArrayForEach(item, w.rows)
    {
        if (!cJSON_IsFalse(get(item, "available")))
            bits |= (uint64_t)1 << row;
        row++;
    }
    cJSON_ArrayForEach(item, get(one, "selected")) exclude[excluded++] = (uint64_t)row_of(&w, item->valuestring) + 1;
    /* A tag that is in no list. */
    if (excluded == 1 && strcmp(id_at(&w, exclude[0] - 1), get(one, "selected")->child->valuestring) != 0)
        exclude[0] = 999;
    /* Upstream's tests that name no algorithm drive a round robin or a stub that returns the first. */
    if (options.balance == 0)
        options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    options.available = &bits;
    options.available_words = 1;
    options.available_list = byway_invokers_generation(w.list);
    options.exclude = exclude;
    options.exclude_count = excluded;
    if (cJSON_IsArray(expect)) {
        outcome = sequence(&w, &options, expect);
    } else if (cJSON_IsNumber(get(expect, "runs"))) {
        count(&w, &options, (int)number_of(expect, "runs", 0), counts);
        if (counts[1] + counts[3] != 1000 || counts[1] <= 200 || counts[3] <= 200)
            outcome = fails("i2 %d, i4 %d", counts[1], counts[3]);
    } else {
        for (i = 0; i < 100 && outcome == PASS; i++) {
            byway_picked picked = pick(&w, &options);
            const cJSON *any = get(expect, "any_of");
            int good = any == NULL && (bits >> picked.row & 1);
            byway_chain_pick_end(w.chain, picked.ticket, 1, 1000000);
            cJSON_ArrayForEach(item, any) good |= strcmp(item->valuestring, id_at(&w, picked.row)) == 0;
            if (!good)
                outcome = fails("got %s", id_at(&w, picked.row));
        }
    }
    world_close(&w);
    return outcome;
}

const struct kind pick_kinds[] = {
    { "dubbo_chain", "lb", balance },
    { "dubbo_chain", "sticky", sticky },
    { "dubbo_chain", "cluster-select", choose },
    { NULL, NULL, NULL },
};
