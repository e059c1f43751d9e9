/* byway for C++: events and who hears of them. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_LISTENER_HPP
#define BYWAY_LISTENER_HPP

#include "route.hpp"

namespace byway {

/** What a listener is told. Everything is borrowed until it returns. */
class event {
public:
    explicit event(const byway_event &raw) noexcept : raw_(raw) {}

    /** `BYWAY_EVENT_*`. */
    int kind() const noexcept { return raw_.kind; }
    /** OK, or why it failed. */
    byway_status status() const noexcept { return raw_.status; }
    std::uint64_t tag() const noexcept { return raw_.tag; }
    std::uint64_t selector_id() const noexcept { return raw_.selector_id; }
    std::chrono::nanoseconds time() const noexcept
    {
        return std::chrono::nanoseconds(static_cast<std::int64_t>(raw_.time_ns));
    }
    /** URI, name or rule key. */
    std::string_view subject() const noexcept { return view(raw_.subject); }
    route_ref route() const noexcept { return route_ref(raw_.route); }
    /** An empty one is DIRECT. */
    std::vector<proxy_ref> proxies() const
    {
        return std::vector<proxy_ref>(raw_.proxies, raw_.proxies + raw_.proxies_len);
    }
    span<const ip> ips() const noexcept { return detail::wrap(raw_.ips, raw_.ips_len); }
    std::optional<byway::error> error() const
    {
        return raw_.error ? std::optional<byway::error>(byway::error::copy(raw_.error)) : std::nullopt;
    }
    const byway_event &raw() const noexcept { return raw_; }

private:
    const byway_event &raw_;
};

/** Bits of `BYWAY_EVENT_*` kinds for a listener's mask. */
constexpr std::uint64_t events(std::initializer_list<int> kinds) noexcept
{
    std::uint64_t mask = 0;
    for (int kind : kinds)
        mask |= std::uint64_t(1) << kind;
    return mask;
}

/** Hears of events until it is removed or its last reference goes. Made by `engine::listen`. */
class listener : public detail::shared<byway_listener, byway_listener_retain, byway_listener_release> {
public:
    using shared::shared;
    void remove() noexcept { byway_listener_remove(get()); }
};

} // namespace byway

#endif /* BYWAY_LISTENER_HPP */
