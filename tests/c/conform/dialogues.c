/* Bytes of proxy dialogues: from JSON, in pieces, and what an error says about them. */
#include "dialogues.h"

void append(struct bytes *to, const void *data, size_t len)
{
    to->data = realloc(to->data, to->len + len + 1);
    if (to->data == NULL)
        abort();
    memcpy(to->data + to->len, data, len);
    to->len += len;
    to->data[to->len] = '\0';
}

void append_hex(struct bytes *to, const char *hex)
{
    unsigned value;
    for (; hex[0] != '\0' && sscanf(hex, "%2x", &value) == 1; hex += 2) {
        unsigned char byte = (unsigned char)value;
        append(to, &byte, 1);
    }
}

void append_latin1(struct bytes *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    for (; *at != 0; at++) {
        unsigned char byte = *at;
        if (strncmp((const char *)at, NUL_MARK, sizeof NUL_MARK - 1) == 0) {
            byte = 0;
            at += sizeof NUL_MARK - 2;
        } else if (byte >= 0xc0 && at[1] != 0) {
            byte = (unsigned char)((byte & 3) << 6 | (at[1] & 63));
            at++;
        }
        append(to, &byte, 1);
    }
}

void unmark(const char *text, struct bytes *to)
{
    const char *mark;
    append(to, "", 0);
    while ((mark = strstr(text, NUL_MARK)) != NULL) {
        append(to, text, (size_t)(mark - text));
        append(to, "", 1);
        text = mark + sizeof NUL_MARK - 1;
    }
    append(to, text, strlen(text));
}

char *hex_of(const unsigned char *data, size_t len)
{
    char *text = malloc(2 * len + 1);
    size_t i;
    if (text == NULL)
        abort();
    for (i = 0; i < len; i++)
        sprintf(text + 2 * i, "%02x", data[i]);
    text[2 * len] = '\0';
    return text;
}

/* Names of faults and how their messages begin: what an error shows. */
static const struct {
    const char *name, *message;
} FAULTS[] = {
    {"PROXY_CLOSED", "the proxy closed without an answer"},
    {"TRUNCATED", "the proxy closed inside its answer"},
    {"BAD_VERSION", "the answer is not of the expected SOCKS version"},
    {"BAD_HOST", "the host has characters"},
    {"EMPTY_HOST", "the host is empty"},
    {"LONG_HOST", "the host is longer"},
    {"LONG_USER", "the user name is longer"},
    {"LONG_PASSWORD", "the password is longer"},
    {"BAD_USER", "user or password has characters"},
    {"BAD_PORT", "port outside"},
    {"UNSUPPORTED_ADDRESS", "this protocol cannot carry"},
    {"UNRESOLVED_HOST", "SOCKS4 needs an address"},
    {"SOCKS4_REJECTED", "SOCKS4: rejected"},
    {"SOCKS4_NO_IDENTD", "SOCKS4: identd not reachable"},
    {"SOCKS4_IDENT_MISMATCH", "SOCKS4: identd names"},
    {"SOCKS4_UNKNOWN_CODE", "SOCKS4: unknown"},
    {"NO_ACCEPTABLE_METHOD", "SOCKS5: the proxy accepts no"},
    {"METHOD_NOT_OFFERED", "SOCKS5: the proxy picked"},
    {"BAD_AUTH_VERSION", "SOCKS5: wrong version"},
    {"AUTH_REJECTED", "SOCKS5: user or password refused"},
    {"REP_GENERAL_FAILURE", "SOCKS5: general failure"},
    {"REP_NOT_ALLOWED", "SOCKS5: not allowed"},
    {"REP_NET_UNREACHABLE", "SOCKS5: network unreachable"},
    {"REP_HOST_UNREACHABLE", "SOCKS5: host unreachable"},
    {"REP_REFUSED", "SOCKS5: connection refused"},
    {"REP_TTL_EXPIRED", "SOCKS5: TTL"},
    {"REP_COMMAND_NOT_SUPPORTED", "SOCKS5: command"},
    {"REP_ADDRESS_TYPE_NOT_SUPPORTED", "SOCKS5: address type not"},
    {"REP_UNASSIGNED", "SOCKS5: unassigned"},
    {"BAD_ATYP", "SOCKS5: unknown address type"},
    {"BAD_RESERVED", "SOCKS5: reserved"},
    {"BAD_STATUS_LINE", "CONNECT: not an HTTP/1 status line"},
    {"BAD_HEADER", "CONNECT: a header has forbidden"},
    {"HEADER_TOO_LARGE", "CONNECT: the answer's head is too large"},
    {"CONNECT_STATUS", "CONNECT: the proxy refuses the tunnel"},
    {"CONNECT_AUTH_REQUIRED", "CONNECT: the proxy wants"},
    {"CONNECT_AUTH_LOOP", "CONNECT: the proxy keeps"},
    {"EARLY_DATA", "CONNECT: data behind"},
};

void fault_of(byway_error *err, char *out, size_t size)
{
    byway_str message;
    const char *number;
    size_t i;
    byway_error_message(err, &message);
    snprintf(out, size, "%s", message.data);
    for (i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
        if (strncmp(message.data, FAULTS[i].message, strlen(FAULTS[i].message)) == 0) {
            number = strrchr(message.data, ' ');
            if (strcmp(FAULTS[i].name, "CONNECT_STATUS") == 0 && number != NULL)
                snprintf(out, size, "%s:%s", FAULTS[i].name, number + 1);
            else
                snprintf(out, size, "%s", FAULTS[i].name);
        }
    byway_error_free(err);
}

enum outcome each_cut(size_t len, enum outcome (*each)(size_t first, size_t rest, void *data), void *data)
{
    size_t cut, step = len > 65536 ? len / 24 : len / 600 + 1;
    enum outcome outcome = each(len, 1, data);
    if (outcome == PASS)
        outcome = each(1, 1, data);
    for (cut = 1; outcome == PASS && cut < len; cut += step)
        outcome = each(cut, len - cut, data);
    return outcome;
}

size_t piece(size_t done, size_t len, size_t first, size_t rest)
{
    size_t size = done == 0 ? first : rest;
    return size > len - done ? len - done : size > 0 ? size : 1;
}

void write_all(byway_handshake *dialogue)
{
    byway_str out;
    if (byway_handshake_want(dialogue, NULL) == BYWAY_HANDSHAKE_WRITE &&
        byway_handshake_output(dialogue, &out) == BYWAY_OK)
        byway_handshake_sent(dialogue, out.len);
}
