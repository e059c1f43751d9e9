/* Proxy dialogues through byway_handshake, told in the words of the bug log. Every input runs
 * whole, byte by byte, and cut at every place. */
#include "dialogues.h"
#include <strings.h>

/* ---- the bug log: answers and requests in the reporters' words */

/* What an error of the log means among ours. */
static int means(const char *want, const char *fault)
{
    if (strcmp(want, "unexpected_eof") == 0)
        return strcmp(fault, "TRUNCATED") == 0 || strcmp(fault, "PROXY_CLOSED") == 0;
    if (strncmp(want, "protocol", 8) == 0)
        return strncmp(fault, "BAD_", 4) == 0;
    if (strstr(want, "too_long") != NULL)
        return strncmp(fault, "LONG_", 5) == 0;
    return strcasecmp(want, fault) == 0;
}

struct answer {
    const cJSON *one;
    struct bytes in;
};

static enum outcome answer_once(size_t first, size_t rest, void *data)
{
    struct answer *answer = data;
    const cJSON *input = get(answer->one, "input"), *expect = get(answer->one, "expect");
    const char *credentials = text_of(input, "credentials", NULL), *error = text_of(expect, "error", NULL);
    const char *colon = credentials != NULL ? strchr(credentials, ':') : NULL;
    byway_dial_options given = BYWAY_DIAL_OPTIONS_INIT;
    byway_handshake *dialogue = NULL;
    byway_error *err = NULL;
    size_t done = 0, used;
    int want, connections = 1;
    char fault[512] = "";
    enum outcome outcome = PASS;
    struct bytes left = {NULL, 0};
    given.flags = BYWAY_DIAL_NO_PREEMPTIVE_AUTH;
    if (byway_handshake_new_target(BYWAY_PROXY_HTTP, "o.example", BYWAY_NUL, 443, colon ? credentials : NULL,
                                   colon ? (size_t)(colon - credentials) : 0, colon ? colon + 1 : NULL,
                                   colon ? BYWAY_NUL : 0, &given, &dialogue, &err) != BYWAY_OK)
        fault_of(err, fault, sizeof fault);
    while (fault[0] == '\0' && done < answer->in.len) {
        write_all(dialogue);
        if (byway_handshake_want(dialogue, NULL) != BYWAY_HANDSHAKE_PEEK)
            break;
        if (byway_handshake_feed(dialogue, answer->in.data + done, piece(done, answer->in.len, first, rest), &used,
                                 &err) != BYWAY_OK)
            fault_of(err, fault, sizeof fault);
        done += used;
    }
    if (fault[0] == '\0' && flag_of(input, "eof") && byway_handshake_eof(dialogue, &err) != BYWAY_OK)
        fault_of(err, fault, sizeof fault);
    want = byway_handshake_want(dialogue, NULL);
    append_latin1(&left, text_of(expect, "leftover", ""));
    if (error != NULL) {
        if (!means(error, fault))
            outcome = fails("got %s, want %s", fault, error);
    } else if (fault[0] != '\0') {
        outcome = fails("got %s", fault);
    } else if (get(expect, "tunnel") != NULL && (want == BYWAY_HANDSHAKE_DONE) != flag_of(expect, "tunnel")) {
        outcome = fails("wants %d", want);
    } else if (get(expect, "leftover") != NULL &&
               (answer->in.len - done != left.len || memcmp(answer->in.data + done, left.data, left.len) != 0)) {
        outcome = fails("%zu bytes left", answer->in.len - done);
    } else if (get(expect, "action") != NULL && strcmp(text_of(expect, "action", ""), "reconnect_with_credentials") != 0) {
        outcome = fails("unknown action");
    } else if (get(expect, "action") != NULL) {
        byway_str out = {"", 0};
        if (want != BYWAY_HANDSHAKE_RECONNECT || byway_handshake_reconnected(dialogue, NULL) != BYWAY_OK ||
            byway_handshake_output(dialogue, &out) != BYWAY_OK || strstr(out.data, "Proxy-Authorization: Basic ") == NULL)
            outcome = fails("wants %d", want);
    } else if (want == BYWAY_HANDSHAKE_RECONNECT) {
        connections++;
    }
    if (outcome == PASS && (int)number_of(expect, "connections", connections) != connections)
        outcome = fails("%d connections", connections);
    free(left.data);
    byway_handshake_free(dialogue);
    return outcome;
}

static enum outcome run_connect_reply(const cJSON *one)
{
    struct answer answer = {NULL, {NULL, 0}};
    const cJSON *chunk;
    enum outcome outcome;
    answer.one = one;
    append(&answer.in, "", 0);
    cJSON_ArrayForEach(chunk, get(get(one, "input"), "chunks")) append_latin1(&answer.in, chunk->valuestring);
    outcome = each_cut(answer.in.len, answer_once, &answer);
    free(answer.in.data);
    return outcome;
}

static enum outcome run_reported_request(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *expect = get(one, "expect"), *item;
    byway_dial_options given = BYWAY_DIAL_OPTIONS_INIT;
    byway_header headers[8];
    byway_handshake *dialogue = NULL;
    byway_str out = {"", 0};
    byway_error *err = NULL;
    char fault[512] = "", line[512];
    enum outcome outcome = PASS;
    given.headers = headers;
    cJSON_ArrayForEach(item, get(input, "request_headers"))
    {
        headers[given.header_count].name.data = item->string;
        headers[given.header_count].value.data = item->valuestring;
        headers[given.header_count].name.len = headers[given.header_count].value.len = BYWAY_NUL;
        given.header_count++;
    }
    if (byway_handshake_new_target(BYWAY_PROXY_HTTP, text_of(input, "host", ""), BYWAY_NUL,
                                   (int32_t)number_of(input, "port", 0), NULL, 0, NULL, 0, &given, &dialogue,
                                   &err) != BYWAY_OK) {
        fault_of(err, fault, sizeof fault);
        return means(text_of(expect, "error", ""), fault) ? PASS : fails("got %s", fault);
    }
    (void)byway_handshake_output(dialogue, &out);
    cJSON_ArrayForEach(item, expect)
    {
        if (strcmp(item->string, "request_line") == 0) {
            snprintf(line, sizeof line, "%s\r\n", item->valuestring);
            if (strncmp(out.data, line, strlen(line)) != 0)
                outcome = fails("got %.60s", out.data);
        } else if (strcmp(item->string, "in_connect") == 0) {
            snprintf(line, sizeof line, "%s: %s\r\n", headers[0].name.data, headers[0].value.data);
            if ((strstr(out.data, line) != NULL) != cJSON_IsTrue(item))
                outcome = fails("in_connect");
        } else if (strcmp(item->string, "in_tunnel") == 0) {
            if ((memcmp(out.data + out.len - 4, "\r\n\r\n", 4) != 0) != cJSON_IsTrue(item))
                outcome = fails("in_tunnel");
        } else {
            outcome = fails("unknown expectation %s", item->string);
        }
    }
    byway_handshake_free(dialogue);
    return outcome;
}

static byway_handshake *socks5(const char *user, const char *password)
{
    byway_handshake *dialogue = NULL;
    size_t used;
    (void)byway_handshake_new_target(BYWAY_PROXY_SOCKS5H, "o.example", BYWAY_NUL, 443, user, user ? BYWAY_NUL : 0,
                                     password, password ? BYWAY_NUL : 0, NULL, &dialogue, NULL);
    write_all(dialogue);
    (void)byway_handshake_feed(dialogue, user ? "\5\2" : "\5\0", 2, &used, NULL);
    return dialogue;
}

static enum outcome run_socks5_auth(const cJSON *one)
{
    const cJSON *input = get(one, "input");
    byway_handshake *dialogue = socks5(text_of(input, "user", ""), text_of(input, "password", ""));
    byway_str out = {"", 0};
    char *text;
    enum outcome outcome = PASS;
    (void)byway_handshake_output(dialogue, &out);
    text = hex_of((const unsigned char *)out.data, out.len);
    if (strcmp(text, text_of(get(one, "expect"), "bytes_hex", "?")) != 0)
        outcome = fails("got %s", text);
    free(text);
    byway_handshake_free(dialogue);
    return outcome;
}

static enum outcome reply_once(size_t first, size_t rest, void *data)
{
    struct answer *answer = data;
    const cJSON *expect = get(answer->one, "expect");
    byway_handshake *dialogue = socks5(NULL, NULL);
    size_t done = 0, used = 0;
    char *left, fault[512] = "";
    byway_error *err = NULL;
    enum outcome outcome = PASS;
    write_all(dialogue);
    while (fault[0] == '\0' && done < answer->in.len &&
           byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_READ) {
        if (byway_handshake_feed(dialogue, answer->in.data + done, piece(done, answer->in.len, first, rest), &used,
                                 &err) != BYWAY_OK)
            fault_of(err, fault, sizeof fault);
        done += used;
    }
    left = hex_of(answer->in.data + done, answer->in.len - done);
    if (get(expect, "error") != NULL ? !means(text_of(expect, "error", ""), fault)
                                     : byway_handshake_want(dialogue, NULL) != BYWAY_HANDSHAKE_DONE ||
                                           strcmp(left, text_of(expect, "leftover_hex", "")) != 0)
        outcome = fails("first piece %zu: left %s %s", first, left, fault);
    free(left);
    byway_handshake_free(dialogue);
    return outcome;
}

static enum outcome run_socks5_reply(const cJSON *one)
{
    struct answer answer = {NULL, {NULL, 0}};
    enum outcome outcome;
    answer.one = one;
    append_hex(&answer.in, text_of(get(one, "input"), "hex", ""));
    outcome = each_cut(answer.in.len, reply_once, &answer);
    free(answer.in.data);
    return outcome;
}

const struct kind dial_report_kinds[] = {
    {"bugs", "connect_reply", run_connect_reply},
    {"bugs", "connect_request", run_reported_request},
    {"bugs", "socks5_auth", run_socks5_auth},
    {"bugs", "socks5_reply", run_socks5_reply},
    {NULL, NULL, NULL},
};
