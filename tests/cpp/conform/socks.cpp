// SOCKS dialogues. Every input runs whole, byte by byte, and cut at every place.
#include "handshakes.hpp"

namespace conform {
namespace {

void note_output(byway::handshake &dialogue, json &sent)
{
    if (dialogue.want() != BYWAY_HANDSHAKE_WRITE || dialogue.output().empty())
        return;
    sent.push_back(hex(dialogue.output()));
    write_all(dialogue);
}

json dialogue_of(const json &one, const std::string &in, std::size_t first, std::size_t rest)
{
    const json &options = get(one, "options");
    const std::string version = text(one, "version", "5"), host = text(one, "host");
    const std::string user = text(one, "user"), password = text(one, "password");
    json sent = json::array();
    byway::dial_options given;
    if (flag(options, "strict") || flag(options, "socks_strict"))
        given.flags |= BYWAY_DIAL_SOCKS_STRICT;
    if (flag(options, "require_auth"))
        given.flags |= BYWAY_DIAL_SOCKS_REQUIRE_AUTH;
    if (flag(options, "optimistic") || flag(options, "socks_optimistic"))
        given.flags |= BYWAY_DIAL_SOCKS_OPTIMISTIC;
    byway::handshake_target to;
    to.kind = version == "4" ? BYWAY_PROXY_SOCKS4 : version == "4a" ? BYWAY_PROXY_SOCKS4A : BYWAY_PROXY_SOCKS5;
    to.host = host;
    to.port = static_cast<int>(number(one, "port"));
    if (has(one, "user"))
        to.user = user;
    to.password = password;
    const auto failed = [&](const byway::error &why) {
        return json({{"sent", sent}, {"result", "error"}, {"error", fault_of(why)}});
    };
    auto made = byway::handshake::make(to, given);
    if (!made)
        return failed(made.error());
    byway::handshake &dialogue = *made;
    std::size_t done = 0, limit = 0;
    note_output(dialogue, sent);
    while (done < in.size() && dialogue.want() != BYWAY_HANDSHAKE_DONE) {
        std::size_t size = piece(done, in.size(), first, rest);
        while (size > 0 && dialogue.want(limit) == BYWAY_HANDSHAKE_READ) {
            auto used = dialogue.feed(std::string_view(in).substr(done, std::min(size, limit)));
            if (!used)
                return failed(used.error());
            note_output(dialogue, sent);
            done += *used;
            size -= *used;
        }
    }
    if (flag(one, "eof"))
        if (auto closed = dialogue.eof(); !closed)
            return failed(closed.error());
    if (dialogue.want() == BYWAY_HANDSHAKE_DONE)
        return {{"sent", sent}, {"result", "connected"}, {"leftover", hex(std::string_view(in).substr(done))}};
    return {{"sent", sent}, {"result", "pending"}};
}

void socks(const json &one)
{
    std::string in;
    for (const json &message : get(one, "recv"))
        in += unhex(message.get<std::string>());
    // What the proxy says it connected from is informative and not part of the interface.
    json want = get(one, "expect");
    want.erase("bound");
    each_cut(in.size(), [&](std::size_t first, std::size_t rest) {
        same(dialogue_of(one, in, first, rest), want, "first piece " + std::to_string(first));
    });
}

// A SOCKS5 dialogue behind the choice of a method.
byway::handshake socks5(std::optional<std::string_view> user, std::optional<std::string_view> password)
{
    byway::handshake_target to;
    to.kind = BYWAY_PROXY_SOCKS5H;
    to.host = "o.example";
    to.port = 443;
    to.user = user;
    to.password = password;
    auto dialogue = byway::handshake::make(to).value();
    write_all(dialogue);
    (void)dialogue.feed(std::string_view(user ? "\5\2" : "\5\0", 2)).value();
    return dialogue;
}

void socks5_auth(const json &one)
{
    const json &input = get(one, "input");
    const auto dialogue = socks5(text(input, "user"), text(input, "password"));
    same(hex(dialogue.output()), get(get(one, "expect"), "bytes_hex"), "bytes");
}

bool means_protocol(const std::string &want, const std::string &fault)
{
    if (want == "unexpected_eof")
        return fault == "TRUNCATED" || fault == "PROXY_CLOSED";
    return starts(want, "protocol") && starts(fault, "BAD_");
}

void socks5_reply(const json &one)
{
    const json &expect = get(one, "expect");
    const std::string in = unhex(text(get(one, "input"), "hex"));
    each_cut(in.size(), [&](std::size_t first, std::size_t rest) {
        auto dialogue = socks5({}, {});
        std::size_t done = 0;
        std::string fault;
        write_all(dialogue);
        while (fault.empty() && done < in.size() && dialogue.want() == BYWAY_HANDSHAKE_READ) {
            auto used = dialogue.feed(std::string_view(in).substr(done, piece(done, in.size(), first, rest)));
            if (used)
                done += *used;
            else
                fault = fault_of(used.error());
        }
        if (has(expect, "error"))
            need(means_protocol(text(expect, "error"), fault), "got " + fault);
        else
            need(dialogue.want() == BYWAY_HANDSHAKE_DONE &&
                     hex(std::string_view(in).substr(done)) == text(expect, "leftover_hex"),
                 "first piece " + std::to_string(first) + ": left " + hex(std::string_view(in).substr(done)) + " " +
                     fault);
    });
}

const kinds here = {
    {"connect", "socks", socks},
    {"bugs", "socks5_auth", socks5_auth},
    {"bugs", "socks5_reply", socks5_reply},
};

} // namespace
} // namespace conform
