/* byway for C++: proxy dialogues without a socket. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_HANDSHAKE_HPP
#define BYWAY_HANDSHAKE_HPP

#include "dial.hpp"

namespace byway {

/** Where a dialogue is to lead, for hosts that keep proxies of their own. */
struct handshake_target {
    /** `BYWAY_PROXY_*` but not DIRECT. */
    int kind = BYWAY_PROXY_HTTP;
    std::string_view host = {};
    int port = 0;
    std::optional<std::string_view> user = {};
    std::optional<std::string_view> password = {};
};

/** A SOCKS or CONNECT dialogue, bytes in and bytes out. */
class handshake : public detail::unique<byway_handshake, byway_handshake_free> {
public:
    using unique::unique;

    /** The dialogue a route needs; the route is not needed any more. */
    static result<handshake> make(route_ref over, const byway_dial_options &options = dial_options())
    {
        return detail::make<handshake>(
            [&](auto out, auto err) { return byway_handshake_new(over.get(), &options, out, err); });
    }
    static result<handshake> make(const handshake_target &to, const byway_dial_options &options = dial_options())
    {
        const std::string_view user = to.user.value_or(""), password = to.password.value_or("");
        return detail::make<handshake>([&](auto out, auto err) {
            return byway_handshake_new_target(
                to.kind, to.host.data(), to.host.size(), to.port, to.user ? present(user) : nullptr, user.size(),
                to.password ? present(password) : nullptr, password.size(), &options, out, err);
        });
    }
    /** `BYWAY_HANDSHAKE_*`. */
    int want() const noexcept { return byway_handshake_want(get(), nullptr); }
    /** The same, with the number of bytes that may be read for `BYWAY_HANDSHAKE_READ`. */
    int want(std::size_t &limit) const noexcept { return byway_handshake_want(get(), &limit); }
    /** The bytes to write now, valid until the next call; they may contain credentials. */
    std::string_view output() const noexcept
    {
        return detail::lent([&](auto out) { return byway_handshake_output(get(), out); });
    }
    /** The first `count` bytes of `output` were written. */
    result<void> sent(std::size_t count) { return detail::settle(byway_handshake_sent(get(), count)); }
    /** Takes bytes that arrived; returns how many belong to the dialogue. */
    result<std::size_t> feed(std::string_view bytes)
    {
        return detail::value<std::size_t>(
            [&](auto used, auto err) { return byway_handshake_feed(get(), bytes.data(), bytes.size(), used, err); });
    }
    /** The proxy closed. */
    result<void> eof()
    {
        return detail::call([&](auto err) { return byway_handshake_eof(get(), err); });
    }
    /** One challenge of the proxy, by position. */
    std::optional<std::string_view> challenge_at(std::size_t index) const noexcept
    {
        byway_str out = {nullptr, 0};
        if (byway_handshake_challenge_at(get(), index, &out) != BYWAY_OK)
            return std::nullopt;
        return view(out);
    }
    /** The whole value of `Proxy-Authorization`; none ends the dialogue. */
    result<void> answer(std::optional<std::string_view> value)
    {
        const std::string_view text = value.value_or("");
        return detail::call(
            [&](auto err) { return byway_handshake_answer(get(), value ? present(text) : nullptr, text.size(), err); });
    }
    /** A new connection to the same hop stands. */
    result<void> reconnected()
    {
        return detail::call([&](auto err) { return byway_handshake_reconnected(get(), err); });
    }

private:
    static const char *present(std::string_view text) noexcept { return text.data() ? text.data() : ""; }
};

} // namespace byway

#endif /* BYWAY_HANDSHAKE_HPP */
