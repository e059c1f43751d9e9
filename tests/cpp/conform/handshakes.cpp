#include "handshakes.hpp"

#include <algorithm>

namespace conform {

std::string unhex(std::string_view hex)
{
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    return bytes;
}

std::string hex(std::string_view bytes)
{
    static const char digits[] = "0123456789abcdef";
    std::string all;
    for (unsigned char byte : bytes)
        all += {digits[byte >> 4], digits[byte & 15]};
    return all;
}

std::string latin1(const std::string &utf8)
{
    std::string bytes;
    for (std::size_t i = 0; i < utf8.size(); ++i) {
        auto byte = static_cast<unsigned char>(utf8[i]);
        if (byte >= 0xc0 && i + 1 < utf8.size())
            byte = static_cast<unsigned char>((byte & 3) << 6 | (static_cast<unsigned char>(utf8[++i]) & 63));
        bytes += static_cast<char>(byte);
    }
    return bytes;
}

std::string fault_of(const byway::error &error)
{
    // How the messages begin: what an error shows.
    static const std::pair<const char *, const char *> faults[] = {
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
    const std::string message(error.message());
    for (const auto &[name, beginning] : faults)
        if (starts(message, beginning))
            return name == std::string("CONNECT_STATUS") ? name + (":" + message.substr(message.rfind(' ') + 1)) : name;
    return message;
}

void each_cut(std::size_t len, const std::function<void(std::size_t first, std::size_t rest)> &each)
{
    const std::size_t step = len > 65536 ? len / 24 : len / 600 + 1;
    each(len, 1);
    each(1, 1);
    for (std::size_t cut = 1; cut < len; cut += step)
        each(cut, len - cut);
}

std::size_t piece(std::size_t done, std::size_t len, std::size_t first, std::size_t rest)
{
    return std::min(std::max<std::size_t>(done == 0 ? first : rest, 1), len - done);
}

void write_all(byway::handshake &dialogue)
{
    if (dialogue.want() == BYWAY_HANDSHAKE_WRITE)
        dialogue.sent(dialogue.output().size()).value();
}

} // namespace conform
