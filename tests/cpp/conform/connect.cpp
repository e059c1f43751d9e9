// HTTP CONNECT: requests, answers cut at every place, whole flows.
#include "handshakes.hpp"

#include <algorithm>
#include <cctype>

namespace conform {
namespace {

// Answers that a case describes instead of showing: `400 x 'text' CRLF CRLF`.
std::string by_rule(std::string_view rule)
{
    std::string all;
    long times = 1;
    rule = rule.substr(0, rule.find(", no line end"));
    for (std::size_t at = 0; at < rule.size();) {
        const std::string_view rest = rule.substr(at);
        if (starts(rest, "CRLF")) {
            all += "\r\n";
            at += 4;
        } else if (rest[0] == '\'') {
            const auto close = rest.find('\'', 1);
            const std::string_view quoted = rest.substr(1, close == rest.npos ? 0 : close - 1);
            while (times-- > 0)
                all += quoted;
            times = 1;
            at += quoted.size() + 2;
        } else if (starts(rest, "HTTP/1.1 200 OK")) {
            all += "HTTP/1.1 200 OK";
            at += 15;
        } else {
            std::size_t digits = 0;
            while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits])))
                ++digits;
            const bool counted = digits > 0 && starts(rest.substr(digits), " x ");
            times = counted ? std::stol(std::string(rest.substr(0, digits))) : 1;
            at += counted ? digits + 3 : 1;
        }
    }
    return all;
}

std::string answer_of(const json &one)
{
    if (has(one, "recv"))
        return latin1(text(one, "recv"));
    // `N x 'text' CRLF CRLF` repeats as a whole.
    const std::string rule = text(one, "recv_rule");
    char *after = nullptr;
    long times = std::strtol(rule.c_str(), &after, 10);
    if (times <= 0 || !starts(after, " x "))
        return by_rule(rule);
    std::string all;
    while (times-- > 0)
        all += by_rule(after + 3);
    return all;
}

byway::handshake_target target_of(std::string_view host, int port)
{
    byway::handshake_target to;
    to.host = host;
    to.port = port;
    return to;
}

void check_challenge(byway::handshake &dialogue, const json &expect, const std::string &where)
{
    need(dialogue.want() == BYWAY_HANDSHAKE_CREDENTIALS, where + "no credentials are wanted");
    std::size_t i = 0;
    for (const json &challenge : get(expect, "challenges"))
        need(dialogue.challenge_at(i++) == challenge.get<std::string>(), where + "another challenge");
    need(!dialogue.challenge_at(i), where + "more challenges");
    if (dialogue.answer("Basic x"))
        same(dialogue.want() == BYWAY_HANDSHAKE_WRITE, flag(expect, "reuse"), where + "reuse");
}

void connect_once(const json &one, const std::string &in, std::size_t first, std::size_t rest)
{
    const json &options = get(one, "options"), &expect = get(one, "expect");
    const std::string result = text(expect, "result"), where = "first piece " + std::to_string(first) + ": ";
    byway::dial_options given;
    given.flags = (flag(options, "strict_200") ? BYWAY_DIAL_STRICT_200 : 0u) |
                  (flag(options, "reject_early_data") ? BYWAY_DIAL_REJECT_EARLY_DATA : 0u);
    given.max_line = static_cast<std::uint32_t>(number(options, "max_line"));
    given.max_header = static_cast<std::uint32_t>(number(options, "max_header"));
    given.max_drain = static_cast<std::uint32_t>(number(options, "max_drain"));
    auto dialogue = byway::handshake::make(target_of("example.com", 443), given).value();
    std::size_t done = 0;
    std::string fault;
    write_all(dialogue);
    while (fault.empty() && done < in.size() && dialogue.want() == BYWAY_HANDSHAKE_PEEK) {
        auto used = dialogue.feed(std::string_view(in).substr(done, piece(done, in.size(), first, rest)));
        if (used)
            done += *used;
        else
            fault = fault_of(used.error());
    }
    if (fault.empty() && flag(one, "eof"))
        if (auto closed = dialogue.eof(); !closed)
            fault = fault_of(closed.error());
    const int want = dialogue.want();
    if (result == "error") {
        // With a piece that ends at the head's end the data behind it comes too late to be refused here.
        if (text(expect, "error") == "EARLY_DATA" && want == BYWAY_HANDSHAKE_DONE && done < in.size())
            fault = "EARLY_DATA";
        same(fault, get(expect, "error"), where + "error");
        return;
    }
    need(fault.empty(), where + "got " + fault + ", want " + result);
    if (result == "tunnel")
        need(want == BYWAY_HANDSHAKE_DONE && in.substr(done) == latin1(text(expect, "leftover")),
             where + std::to_string(in.size() - done) + " bytes left");
    else if (result == "pending")
        need(want == BYWAY_HANDSHAKE_PEEK, where + "wants no more");
    else if (result == "auth_challenge")
        check_challenge(dialogue, expect, where);
    else
        fail("unknown expectation " + result);
}

void connect(const json &one)
{
    const std::string in = answer_of(one);
    each_cut(in.size(), [&](std::size_t first, std::size_t rest) { connect_once(one, in, first, rest); });
}

void connect_request(const json &one)
{
    const json &expect = get(one, "expect");
    const std::string agent = text(one, "ua", "test/1"), host = text(one, "host"), auth = text(one, "auth");
    byway::dial_options given;
    given.user_agent = byway::str(agent);
    given.flags = has(one, "auth") ? BYWAY_DIAL_ASK_FIRST : 0;
    auto made = byway::handshake::make(target_of(host, static_cast<int>(number(one, "port"))), given);
    byway::result<void> done = BYWAY_OK;
    if (!made)
        done = made.error();
    else if (has(one, "auth"))
        done = made->answer(auth);
    if (expect.is_string()) {
        done.value();
        same(std::string(made->output()), expect, "request");
    } else {
        // A user agent that is none is refused with the options already.
        const std::string got = done                                    ? ""
                              : done.error().code() == BYWAY_E_ARGUMENT ? "BAD_HEADER"
                                                                        : fault_of(done.error());
        same(got, get(expect, "error"), "error");
    }
}

// The credentials of a request, or that there are none.
std::string credentials_of(std::string_view request)
{
    const auto at = request.find("\r\nProxy-Authorization: ");
    if (at == request.npos)
        return "no Proxy-Authorization";
    const auto line = request.substr(at + 2);
    return std::string(line.substr(0, line.find('\r')));
}

// Plays the proxy and whoever has the credentials.
struct flow {
    explicit flow(const json &one) : connections(get(one, "connections")), auth(get(one, "auth")) {}

    const json &connections, &auth;
    byway::handshake dialogue;
    std::size_t connection = 0, turn = 0, answers = 1;
    int calls = 0, requests = 0;
    bool canceled = false;
    std::optional<std::string> last;

    std::string at_turn() const
    {
        if (connection >= connections.size() || turn >= connections[connection].size())
            return "";
        return connections[connection][turn].get<std::string>();
    }
    void request()
    {
        const std::string got = "CONNECT example.com:443 (" + credentials_of(dialogue.output()) + ")";
        need(!at_turn().empty(), "a request too many: " + got);
        if (at_turn() != "EOF") {
            need(at_turn() == got, "got " + got + ", want " + at_turn());
            ++turn;
            ++requests;
        }
        write_all(dialogue);
    }
    byway::result<void> answer()
    {
        const std::string text = at_turn();
        if (text.empty() || text == "EOF")
            return dialogue.eof();
        ++turn;
        for (const char byte : text)
            if (auto used = dialogue.feed(std::string_view(&byte, 1)); !used)
                return used.error();
        return BYWAY_OK;
    }
    byway::result<void> credentials()
    {
        if (dialogue.challenge_at(0))
            ++calls;
        const json item = answers < auth.size() ? auth[answers] : json();
        if (item != "repeat") {
            last = item.is_string() ? std::optional<std::string>(item.get<std::string>()) : std::nullopt;
            ++answers;
        }
        canceled = last == "cancel";
        if (canceled)
            return BYWAY_OK;
        return dialogue.answer(last ? std::optional<std::string_view>(*last) : std::nullopt);
    }
    // How it ends: nothing, or the error.
    byway::result<void> play()
    {
        byway::result<void> done = BYWAY_OK;
        while (done && !canceled) {
            switch (dialogue.want()) {
            case BYWAY_HANDSHAKE_WRITE:
                request();
                break;
            case BYWAY_HANDSHAKE_PEEK:
                done = answer();
                break;
            case BYWAY_HANDSHAKE_CREDENTIALS:
                done = credentials();
                break;
            case BYWAY_HANDSHAKE_RECONNECT:
                ++connection;
                turn = 0;
                done = dialogue.reconnected();
                break;
            default:
                return done;
            }
        }
        return done;
    }
};

void connect_flow(const json &one)
{
    const json &options = get(one, "options"), &expect = get(one, "expect"), &auth = get(one, "auth");
    byway::dial_options given;
    const bool preemptive = auth.empty() || auth[0] != "none_preemptive";
    given.flags = (preemptive ? BYWAY_DIAL_ASK_FIRST : 0u) |
                  (flag(options, "stop_on_same_credentials") ? 0u : BYWAY_DIAL_REPEAT_CREDENTIALS);
    given.max_tunnel_attempts = static_cast<std::uint32_t>(number(options, "max_tunnel_attempts"));
    flow flow(one);
    flow.answers = preemptive ? 0 : 1;
    flow.dialogue = byway::handshake::make(target_of("example.com", 443), given).value();
    const auto done = flow.play();
    const std::string fault = done ? "" : fault_of(done.error());
    same(flow.canceled ? "canceled" : done ? "tunnel" : "error", get(expect, "result"), "result " + fault);
    same(fault, text(expect, "error"), "error");
    const std::pair<const char *, int> counts[] = {{"tcp_connects", static_cast<int>(flow.connection) + 1},
                                                   {"requests_sent", flow.requests},
                                                   {"auth_calls", flow.calls}};
    for (const auto &[name, count] : counts)
        if (has(expect, name))
            same(count, get(expect, name), name);
}

// What an error of the bug log means among ours.
bool means(const std::string &want, const std::string &fault)
{
    if (want == "unexpected_eof")
        return fault == "TRUNCATED" || fault == "PROXY_CLOSED";
    if (starts(want, "protocol"))
        return starts(fault, "BAD_");
    if (contains(want, "too_long"))
        return starts(fault, "LONG_");
    return std::equal(want.begin(), want.end(), fault.begin(), fault.end(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

void reply_once(const json &one, const std::string &in, std::size_t first, std::size_t rest)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    const std::string credentials = text(input, "credentials");
    const auto colon = credentials.find(':');
    byway::dial_options given;
    given.flags = BYWAY_DIAL_NO_PREEMPTIVE_AUTH;
    auto to = target_of("o.example", 443);
    if (colon != credentials.npos) {
        to.user = std::string_view(credentials).substr(0, colon);
        to.password = std::string_view(credentials).substr(colon + 1);
    }
    std::size_t done = 0;
    std::string fault;
    auto made = byway::handshake::make(to, given);
    if (!made)
        fault = fault_of(made.error());
    byway::handshake dialogue = made ? std::move(*made) : byway::handshake();
    while (fault.empty() && done < in.size()) {
        write_all(dialogue);
        if (dialogue.want() != BYWAY_HANDSHAKE_PEEK)
            break;
        auto used = dialogue.feed(std::string_view(in).substr(done, piece(done, in.size(), first, rest)));
        if (used)
            done += *used;
        else
            fault = fault_of(used.error());
    }
    if (fault.empty() && flag(input, "eof"))
        if (auto closed = dialogue.eof(); !closed)
            fault = fault_of(closed.error());
    const int want = dialogue.want();
    int connections = 1;
    if (has(expect, "error")) {
        need(means(text(expect, "error"), fault), "got " + fault);
        return;
    }
    need(fault.empty(), "got " + fault);
    if (has(expect, "tunnel"))
        same(want == BYWAY_HANDSHAKE_DONE, get(expect, "tunnel"), "tunnel");
    if (has(expect, "leftover"))
        same(in.substr(done) == latin1(text(expect, "leftover")), true, "leftover");
    if (has(expect, "action")) {
        same(text(expect, "action"), "reconnect_with_credentials", "action");
        need(want == BYWAY_HANDSHAKE_RECONNECT, "no new connection is wanted");
        dialogue.reconnected().value();
        need(contains(dialogue.output(), "Proxy-Authorization: Basic "), "no credentials on it");
    } else if (want == BYWAY_HANDSHAKE_RECONNECT)
        ++connections;
    if (has(expect, "connections"))
        same(connections, get(expect, "connections"), "connections");
}

void connect_reply(const json &one)
{
    std::string in;
    for (const json &chunk : get(get(one, "input"), "chunks"))
        in += latin1(chunk.get<std::string>());
    each_cut(in.size(), [&](std::size_t first, std::size_t rest) { reply_once(one, in, first, rest); });
}

void reported_request(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    std::vector<std::pair<std::string, std::string>> texts;
    std::vector<byway_header> headers;
    for (const auto &[name, value] : get(input, "request_headers").items())
        texts.emplace_back(name, value.get<std::string>());
    for (const auto &[name, value] : texts)
        headers.push_back({byway::str(name), byway::str(value)});
    byway::dial_options given;
    given.set_headers(headers);
    const std::string host = text(input, "host");
    auto made = byway::handshake::make(target_of(host, static_cast<int>(number(input, "port"))), given);
    if (!made) {
        need(means(text(expect, "error"), fault_of(made.error())), "got " + fault_of(made.error()));
        return;
    }
    const std::string out(made->output());
    for (const auto &[key, want] : expect.items()) {
        if (key == "request_line")
            need(starts(out, want.get<std::string>() + "\r\n"), "got " + out);
        else if (key == "in_connect")
            same(contains(out, texts[0].first + ": " + texts[0].second + "\r\n"), want, key);
        else if (key == "in_tunnel")
            same(out.substr(out.size() - 4) != "\r\n\r\n", want, key);
        else
            fail("unknown expectation " + key);
    }
}

const kinds here = {
    {"connect", "connect", connect},
    {"connect", "connect_request", connect_request},
    {"connect", "connect_flow", connect_flow},
    {"bugs", "connect_reply", connect_reply},
    {"bugs", "connect_request", reported_request},
};

} // namespace
} // namespace conform
