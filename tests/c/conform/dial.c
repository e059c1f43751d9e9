/* Proxy dialogues through byway_handshake: SOCKS bytes, CONNECT bytes, whole CONNECT flows. Every input runs whole, byte
 * by byte, and cut at every place (long ones at a sample of places). */
#include "dialogues.h"

/* ---- SOCKS */

struct socks {
    const cJSON *one;
    struct bytes in;
};

static void note_output(byway_handshake *dialogue, cJSON *sent)
{
    byway_str out;
    if (byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_WRITE &&
        byway_handshake_output(dialogue, &out) == BYWAY_OK && out.len > 0) {
        char *text = hex_of((const unsigned char *)out.data, out.len);
        cJSON_AddItemToArray(sent, cJSON_CreateString(text));
        free(text);
        byway_handshake_sent(dialogue, out.len);
    }
}

static enum outcome socks_once(size_t first, size_t rest, void *data)
{
    struct socks *socks = data;
    const cJSON *one = socks->one, *options = get(one, "options"), *expect = get(one, "expect");
    const char *version = text_of(one, "version", "5"), *user = text_of(one, "user", NULL), *host;
    const char *password = text_of(one, "password", "");
    byway_dial_options given = BYWAY_DIAL_OPTIONS_INIT;
    byway_handshake *dialogue = NULL;
    byway_error *err = NULL;
    cJSON *got = cJSON_CreateObject(), *sent = cJSON_AddArrayToObject(got, "sent"), *wanted;
    int32_t kind = strcmp(version, "4") == 0    ? BYWAY_PROXY_SOCKS4
                   : strcmp(version, "4a") == 0 ? BYWAY_PROXY_SOCKS4A
                                                : BYWAY_PROXY_SOCKS5;
    size_t done = 0, limit;
    struct bytes name = {NULL, 0};
    char fault[512] = "";
    enum outcome outcome = PASS;
    if (flag_of(options, "strict") || flag_of(options, "socks_strict"))
        given.flags |= BYWAY_DIAL_SOCKS_STRICT;
    if (flag_of(options, "require_auth"))
        given.flags |= BYWAY_DIAL_SOCKS_REQUIRE_AUTH;
    if (flag_of(options, "optimistic") || flag_of(options, "socks_optimistic"))
        given.flags |= BYWAY_DIAL_SOCKS_OPTIMISTIC;
    host = text_of(one, "host", "");
    if (user != NULL)
        unmark(user, &name);
    if (byway_handshake_new_target(kind, host, BYWAY_NUL, (int32_t)number_of(one, "port", 0), (char *)name.data,
                                   name.len, password, BYWAY_NUL, &given, &dialogue,
                                   &err) != BYWAY_OK) {
        fault_of(err, fault, sizeof fault);
    } else {
        note_output(dialogue, sent);
        while (done < socks->in.len && fault[0] == '\0') {
            size_t size = piece(done, socks->in.len, first, rest), used = 0;
            while (size > 0 && byway_handshake_want(dialogue, &limit) == BYWAY_HANDSHAKE_READ) {
                size_t now = size < limit ? size : limit;
                if (byway_handshake_feed(dialogue, socks->in.data + done, now, &used, &err) != BYWAY_OK) {
                    fault_of(err, fault, sizeof fault);
                    break;
                }
                note_output(dialogue, sent);
                done += used;
                size -= used;
            }
            if (byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_DONE)
                break;
        }
        if (fault[0] == '\0' && flag_of(one, "eof") && byway_handshake_eof(dialogue, &err) != BYWAY_OK)
            fault_of(err, fault, sizeof fault);
    }
    if (fault[0] != '\0') {
        cJSON_AddStringToObject(got, "result", "error");
        cJSON_AddStringToObject(got, "error", fault);
    } else if (byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_DONE) {
        char *left = hex_of(socks->in.data + done, socks->in.len - done);
        cJSON_AddStringToObject(got, "result", "connected");
        cJSON_AddStringToObject(got, "leftover", left);
        free(left);
    } else {
        cJSON_AddStringToObject(got, "result", "pending");
    }
    byway_handshake_free(dialogue);
    free(name.data);
    /* What the proxy says it connected from is informative and not part of the C interface. */
    wanted = cJSON_Duplicate(expect, 1);
    cJSON_DeleteItemFromObject(wanted, "bound");
    if (!cJSON_Compare(got, wanted, 1)) {
        char *a = cJSON_PrintUnformatted(got), *b = cJSON_PrintUnformatted(wanted);
        outcome = fails("first piece %zu: got %s, want %s", first, a, b);
        free(a);
        free(b);
    }
    cJSON_Delete(got);
    cJSON_Delete(wanted);
    return outcome;
}

static enum outcome run_socks(const cJSON *one)
{
    struct socks socks = {NULL, {NULL, 0}};
    const cJSON *message;
    enum outcome outcome;
    socks.one = one;
    cJSON_ArrayForEach(message, get(one, "recv")) append_hex(&socks.in, message->valuestring);
    outcome = each_cut(socks.in.len, socks_once, &socks);
    free(socks.in.data);
    return outcome;
}

/* ---- CONNECT, one answer */

struct connect {
    const cJSON *one;
    struct bytes in;
};

static void by_rule(struct bytes *to, const char *rule)
{
    const char *end = strstr(rule, ", no line end");
    size_t len = end != NULL ? (size_t)(end - rule) : strlen(rule), at = 0;
    long times = 1;
    while (at < len) {
        char *after;
        if (strncmp(rule + at, "CRLF", 4) == 0) {
            append(to, "\r\n", 2);
            at += 4;
        } else if (rule[at] == '\'') {
            const char *close = strchr(rule + at + 1, '\'');
            size_t size = close != NULL ? (size_t)(close - (rule + at + 1)) : 0;
            while (times-- > 0)
                append(to, rule + at + 1, size);
            times = 1;
            at += size + 2;
        } else if (strncmp(rule + at, "HTTP/1.1 200 OK", 15) == 0) {
            append(to, rule + at, 15);
            at += 15;
        } else if (rule[at] >= '0' && rule[at] <= '9' && (times = strtol(rule + at, &after, 10), after[0] == ' ') &&
                   after[1] == 'x' && after[2] == ' ') {
            at = (size_t)(after + 3 - rule);
        } else {
            times = 1;
            at++;
        }
    }
}

static byway_handshake *connect_dialogue(const byway_dial_options *options, byway_error **err)
{
    byway_handshake *dialogue = NULL;
    (void)byway_handshake_new_target(BYWAY_PROXY_HTTP, "example.com", BYWAY_NUL, 443, NULL, 0, NULL, 0, options,
                                     &dialogue, err);
    return dialogue;
}

static enum outcome connect_once(size_t first, size_t rest, void *data)
{
    struct connect *connect = data;
    const cJSON *one = connect->one, *options = get(one, "options"), *expect = get(one, "expect");
    byway_dial_options given = BYWAY_DIAL_OPTIONS_INIT;
    byway_handshake *dialogue;
    byway_error *err = NULL;
    size_t done = 0, used;
    char fault[512] = "";
    const char *result = text_of(expect, "result", "?"), *error = text_of(expect, "error", "");
    enum outcome outcome = PASS;
    int want;
    if (flag_of(options, "strict_200"))
        given.flags |= BYWAY_DIAL_STRICT_200;
    if (flag_of(options, "reject_early_data"))
        given.flags |= BYWAY_DIAL_REJECT_EARLY_DATA;
    given.max_line = (uint32_t)number_of(options, "max_line", 0);
    given.max_header = (uint32_t)number_of(options, "max_header", 0);
    given.max_drain = (uint32_t)number_of(options, "max_drain", 0);
    dialogue = connect_dialogue(&given, &err);
    write_all(dialogue);
    while (done < connect->in.len && byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_PEEK) {
        size_t size = piece(done, connect->in.len, first, rest);
        if (byway_handshake_feed(dialogue, connect->in.data + done, size, &used, &err) != BYWAY_OK) {
            fault_of(err, fault, sizeof fault);
            break;
        }
        done += used;
    }
    if (fault[0] == '\0' && flag_of(one, "eof") && byway_handshake_eof(dialogue, &err) != BYWAY_OK)
        fault_of(err, fault, sizeof fault);
    want = byway_handshake_want(dialogue, NULL);
    if (strcmp(result, "error") == 0) {
        /* With a piece that ends at the head's end the data behind it comes too late to be refused here. */
        if (strcmp(error, "EARLY_DATA") == 0 && want == BYWAY_HANDSHAKE_DONE && done < connect->in.len)
            snprintf(fault, sizeof fault, "EARLY_DATA");
        if (strcmp(fault, error) != 0)
            outcome = fails("first piece %zu: got %s, want %s", first, fault, error);
    } else if (fault[0] != '\0') {
        outcome = fails("first piece %zu: got %s, want %s", first, fault, result);
    } else if (strcmp(result, "tunnel") == 0) {
        struct bytes left = {NULL, 0};
        append_latin1(&left, text_of(expect, "leftover", ""));
        if (want != BYWAY_HANDSHAKE_DONE || connect->in.len - done != left.len ||
            memcmp(connect->in.data + done, left.data, left.len) != 0)
            outcome = fails("first piece %zu: wants %d, %zu bytes left", first, want, connect->in.len - done);
        free(left.data);
    } else if (strcmp(result, "pending") == 0) {
        if (want != BYWAY_HANDSHAKE_PEEK)
            outcome = fails("first piece %zu: wants %d instead of more", first, want);
    } else if (strcmp(result, "auth_challenge") == 0) {
        const cJSON *challenge;
        size_t i = 0;
        byway_str text;
        int reuse;
        if (want != BYWAY_HANDSHAKE_CREDENTIALS)
            outcome = fails("first piece %zu: wants %d instead of credentials", first, want);
        cJSON_ArrayForEach(challenge, get(expect, "challenges"))
        {
            if (byway_handshake_challenge_at(dialogue, i++, &text) != BYWAY_OK ||
                strcmp(text.data, challenge->valuestring) != 0)
                outcome = fails("challenge %zu is not %s", i, challenge->valuestring);
        }
        if (outcome == PASS && byway_handshake_challenge_at(dialogue, i, &text) != BYWAY_DONE)
            outcome = fails("more than %zu challenges", i);
        if (outcome == PASS && byway_handshake_answer(dialogue, "Basic x", BYWAY_NUL, NULL) == BYWAY_OK) {
            reuse = byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_WRITE;
            if (reuse != flag_of(expect, "reuse"))
                outcome = fails("first piece %zu: reuse %d", first, reuse);
        }
    } else {
        outcome = fails("unknown expectation %s", result);
    }
    byway_handshake_free(dialogue);
    return outcome;
}

static enum outcome run_connect(const cJSON *one)
{
    struct connect connect = {NULL, {NULL, 0}};
    const char *text = text_of(one, "recv", NULL), *rule = text_of(one, "recv_rule", "");
    enum outcome outcome;
    connect.one = one;
    append(&connect.in, "", 0);
    if (text == NULL) {
        /* `N x 'text' CRLF CRLF` repeats as a whole. */
        char *after;
        long times = strtol(rule, &after, 10);
        if (times > 0 && strncmp(after, " x ", 3) == 0)
            while (times-- > 0)
                by_rule(&connect.in, after + 3);
        else
            by_rule(&connect.in, rule);
    } else {
        append_latin1(&connect.in, text);
    }
    outcome = each_cut(connect.in.len, connect_once, &connect);
    free(connect.in.data);
    return outcome;
}

static enum outcome run_connect_request(const cJSON *one)
{
    const cJSON *expect = get(one, "expect");
    const char *auth = text_of(one, "auth", NULL), *host = text_of(one, "host", ""), *agent;
    byway_dial_options given = BYWAY_DIAL_OPTIONS_INIT;
    byway_handshake *dialogue = NULL;
    byway_error *err = NULL;
    byway_str out = {"", 0};
    byway_status status;
    enum outcome outcome = PASS;
    agent = text_of(one, "ua", "test/1");
    given.user_agent.data = agent;
    given.user_agent.len = BYWAY_NUL;
    if (auth != NULL)
        given.flags |= BYWAY_DIAL_ASK_FIRST;
    status = byway_handshake_new_target(BYWAY_PROXY_HTTP, host, BYWAY_NUL, (int32_t)number_of(one, "port", 0), NULL, 0,
                                        NULL, 0, &given, &dialogue, &err);
    if (status == BYWAY_OK && auth != NULL)
        status = byway_handshake_answer(dialogue, auth, BYWAY_NUL, &err);
    if (status == BYWAY_OK)
        (void)byway_handshake_output(dialogue, &out);
    if (cJSON_IsString(expect)) {
        if (status != BYWAY_OK || out.len != strlen(expect->valuestring) ||
            memcmp(out.data, expect->valuestring, out.len) != 0)
            outcome = fails("%s: got %.*s", byway_status_name(status), (int)out.len, out.data);
    } else {
        const char *want = text_of(expect, "error", "?");
        char fault[512] = "";
        if (status == BYWAY_E_ARGUMENT)
            snprintf(fault, sizeof fault, "BAD_HEADER"); /* refused with the options already */
        else if (status != BYWAY_OK) {
            fault_of(err, fault, sizeof fault);
            err = NULL;
        }
        if (strcmp(fault, want) != 0)
            outcome = fails("got %s, want %s", fault, want);
    }
    byway_error_free(err);
    byway_handshake_free(dialogue);
    return outcome;
}

/* ---- CONNECT, whole flows */

static int header_of(const char *request, size_t len, char *out, size_t size)
{
    static const char name[] = "Proxy-Authorization: ";
    const char *at = request, *end = request + len;
    while (at < end) {
        const char *line = memchr(at, '\r', (size_t)(end - at));
        if (line == NULL)
            break;
        if (strncmp(at, name, sizeof name - 1) == 0) {
            snprintf(out, size, "%.*s", (int)(line - at), at);
            return 1;
        }
        at = line + 2;
    }
    snprintf(out, size, "no Proxy-Authorization");
    return 0;
}

static enum outcome flow_once(size_t first, size_t rest, void *data)
{
    const cJSON *one = data;
    const cJSON *connections = get(one, "connections"), *auth = get(one, "auth"), *options = get(one, "options");
    const cJSON *expect = get(one, "expect"), *script;
    const char *preemptive = text_of(NULL, "", NULL), *last = NULL, *result;
    byway_dial_options given = BYWAY_DIAL_OPTIONS_INIT;
    byway_handshake *dialogue;
    byway_error *err = NULL;
    int connection = 0, turn = 0, answers = 1, calls = 0, requests = 0, canceled = 0, over = 0;
    char fault[512] = "";
    cJSON *challenges = cJSON_CreateArray();
    enum outcome outcome = PASS;
    preemptive = cJSON_IsString(cJSON_GetArrayItem(auth, 0)) ? cJSON_GetArrayItem(auth, 0)->valuestring : NULL;
    if (preemptive == NULL || strcmp(preemptive, "none_preemptive") != 0) {
        given.flags |= BYWAY_DIAL_ASK_FIRST;
        answers = 0;
    }
    if (!flag_of(options, "stop_on_same_credentials"))
        given.flags |= BYWAY_DIAL_REPEAT_CREDENTIALS;
    given.max_tunnel_attempts = (uint32_t)number_of(options, "max_tunnel_attempts", 0);
    dialogue = connect_dialogue(&given, &err);
    while (!over && !canceled && outcome == PASS) {
        script = cJSON_GetArrayItem(connections, connection);
        switch (byway_handshake_want(dialogue, NULL)) {
        case BYWAY_HANDSHAKE_WRITE: {
            byway_str out;
            char header[256], phrase[512];
            const cJSON *item = cJSON_GetArrayItem(script, turn);
            (void)byway_handshake_output(dialogue, &out);
            header_of(out.data, out.len, header, sizeof header);
            snprintf(phrase, sizeof phrase, "CONNECT example.com:443 (%s)", header);
            if (!cJSON_IsString(item))
                outcome = fails("a request too many: %s", phrase);
            else if (strcmp(item->valuestring, "EOF") != 0) {
                if (strcmp(item->valuestring, phrase) != 0)
                    outcome = fails("got %s, want %s", phrase, item->valuestring);
                turn++;
                requests++;
            }
            byway_handshake_sent(dialogue, out.len);
            break;
        }
        case BYWAY_HANDSHAKE_PEEK: {
            const cJSON *item = cJSON_GetArrayItem(script, turn);
            if (!cJSON_IsString(item) || strcmp(item->valuestring, "EOF") == 0) {
                over = byway_handshake_eof(dialogue, &err) != BYWAY_OK;
            } else {
                const char *at = item->valuestring;
                size_t done = 0, len = strlen(at), used;
                for (turn++; done < len && !over; done += used) {
                    used = piece(done, len, first, rest);
                    over = byway_handshake_feed(dialogue, at + done, used, &used, &err) != BYWAY_OK;
                    if (used == 0)
                        break;
                }
            }
            break;
        }
        case BYWAY_HANDSHAKE_CREDENTIALS: {
            const cJSON *item = cJSON_GetArrayItem(auth, answers);
            byway_str challenge;
            if (byway_handshake_challenge_at(dialogue, 0, &challenge) == BYWAY_OK) {
                size_t at = 0;
                calls++;
                cJSON_Delete(challenges);
                challenges = cJSON_CreateArray();
                while (byway_handshake_challenge_at(dialogue, at++, &challenge) == BYWAY_OK)
                    cJSON_AddItemToArray(challenges, cJSON_CreateString(challenge.data));
            }
            if (!cJSON_IsString(item) || strcmp(item->valuestring, "repeat") != 0) {
                last = cJSON_IsString(item) ? item->valuestring : NULL;
                answers++;
            }
            canceled = last != NULL && strcmp(last, "cancel") == 0;
            if (!canceled)
                over = byway_handshake_answer(dialogue, last, last != NULL ? BYWAY_NUL : 0, &err) != BYWAY_OK;
            break;
        }
        case BYWAY_HANDSHAKE_RECONNECT:
            connection++;
            turn = 0;
            over = byway_handshake_reconnected(dialogue, &err) != BYWAY_OK;
            break;
        default:
            over = 1;
        }
    }
    if (err != NULL)
        fault_of(err, fault, sizeof fault);
    result = canceled ? "canceled" : fault[0] != '\0' ? "error" : "tunnel";
    if (outcome == PASS && strcmp(result, text_of(expect, "result", "?")) != 0)
        outcome = fails("got %s %s", result, fault);
    if (outcome == PASS && strcmp(fault, text_of(expect, "error", "")) != 0)
        outcome = fails("got %s, want %s", fault, text_of(expect, "error", ""));
    if (outcome == PASS && (int)number_of(expect, "tcp_connects", connection + 1) != connection + 1)
        outcome = fails("%d connections", connection + 1);
    if (outcome == PASS && (int)number_of(expect, "requests_sent", requests) != requests)
        outcome = fails("%d requests", requests);
    if (outcome == PASS && (int)number_of(expect, "auth_calls", calls) != calls)
        outcome = fails("asked %d times", calls);
    /* Nobody is blamed for a tunnel that opens. */
    if (outcome == PASS && get(expect, "db_failed") != NULL
        && (fault[0] != '\0') != (cJSON_GetArraySize(get(expect, "db_failed")) > 0))
        outcome = fails("%s blames otherwise", fault);
    if (outcome == PASS && get(expect, "challenges") != NULL)
        outcome = same_json(cJSON_Duplicate(challenges, 1), get(expect, "challenges"), "challenges");
    cJSON_Delete(challenges);
    byway_handshake_free(dialogue);
    return outcome;
}

static enum outcome run_connect_flow(const cJSON *one)
{
    const cJSON *connection, *turn;
    size_t longest = 0;
    cJSON_ArrayForEach(connection, get(one, "connections")) cJSON_ArrayForEach(turn, connection)
        if (strlen(turn->valuestring) > longest)
            longest = strlen(turn->valuestring);
    return each_cut(longest, flow_once, (void *)one);
}

const struct kind dial_kinds[] = {
    {"connect", "socks", run_socks},
    {"connect", "connect", run_connect},
    {"connect", "connect_request", run_connect_request},
    {"connect", "connect_flow", run_connect_flow},
    {NULL, NULL, NULL},
};
