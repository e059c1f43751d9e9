/* byway for C++: IP addresses, hosts, address filters. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_IP_HPP
#define BYWAY_IP_HPP

#include "handle.hpp"

#include <cstring>

namespace byway {

/** One IP address, or none. */
class ip {
public:
    /** No address. */
    constexpr ip() noexcept = default;
    constexpr ip(const byway_ip &raw) noexcept : raw_(raw) {}

    /** An IP literal without brackets; a numeric `%zone` becomes the scope id. */
    static result<ip> parse(std::string_view text)
    {
        return detail::value<ip>(
            [&](ip *out, auto err) { return byway_ip_parse(text.data(), text.size(), &out->raw_, err); });
    }
    static constexpr ip v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) noexcept
    {
        byway_ip raw = {};
        raw.bytes[0] = a;
        raw.bytes[1] = b;
        raw.bytes[2] = c;
        raw.bytes[3] = d;
        raw.family = 4;
        return raw;
    }

    /** 4, 6, or 0 for none. */
    constexpr int family() const noexcept { return raw_.family; }
    constexpr explicit operator bool() const noexcept { return raw_.family != 0; }
    constexpr std::uint32_t scope_id() const noexcept { return raw_.scope_id; }
    /** Network byte order. */
    span<const std::uint8_t> bytes() const noexcept
    {
        return {raw_.bytes, raw_.family == 4 ? std::size_t(4) : raw_.family == 6 ? std::size_t(16) : std::size_t(0)};
    }
    /** RFC 5952 text; empty for none. */
    std::string text() const
    {
        auto shown = detail::text([&](auto out, auto err) { return byway_ip_text(&raw_, out, err); });
        return shown ? std::move(*shown) : std::string();
    }
    constexpr const byway_ip &raw() const noexcept { return raw_; }
    byway_ip &raw() noexcept { return raw_; }

    friend bool operator==(const ip &a, const ip &b) noexcept
    {
        return a.raw_.family == b.raw_.family && a.raw_.scope_id == b.raw_.scope_id &&
               std::memcmp(a.raw_.bytes, b.raw_.bytes, sizeof a.raw_.bytes) == 0;
    }
    friend bool operator!=(const ip &a, const ip &b) noexcept { return !(a == b); }

private:
    byway_ip raw_ = {};
};

static_assert(sizeof(ip) == sizeof(byway_ip) && std::is_standard_layout_v<ip> && std::is_trivially_copyable_v<ip>,
              "rows of both are the same memory");

namespace detail {
inline const byway_ip *raw(span<const ip> ips) noexcept { return reinterpret_cast<const byway_ip *>(ips.data()); }
inline byway_ip *raw(span<ip> ips) noexcept { return reinterpret_cast<byway_ip *>(ips.data()); }
inline span<const ip> wrap(const byway_ip *ips, std::size_t n) noexcept
{
    return {reinterpret_cast<const ip *>(ips), n};
}
} // namespace detail

/** Puts addresses in the order in which they are to be tried, in place: families alternate, `first_family_count` of
 * the first one (`BYWAY_FIRST_FAMILY_*`) first. */
inline result<void> order(span<ip> ips, int first_family = BYWAY_FIRST_FAMILY_V6, std::uint32_t first_family_count = 1)
{
    return detail::call(
        [&](auto err) { return byway_ip_order(detail::raw(ips), ips.size(), first_family, first_family_count, err); });
}

/** The canonical form of a host name or IP literal, without brackets and zone. */
inline result<std::string> canonical_host(std::string_view host, int compat = BYWAY_COMPAT_BYWAY)
{
    return detail::text(
        [&](auto out, auto err) { return byway_host_canonical(compat, host.data(), host.size(), out, err); });
}
/** Whether a host is taken for an IP literal, which nobody resolves. */
inline bool is_literal(std::string_view host, int compat = BYWAY_COMPAT_BYWAY) noexcept
{
    return byway_host_is_literal(compat, host.data(), host.size()) == 1;
}

/** Says which addresses may be connected to. */
class filter : public detail::shared<byway_filter, byway_filter_retain, byway_filter_release> {
public:
    using shared::shared;

    /** One rule a line: `allow NETWORK`, `deny NETWORK`, `allow all`, `deny all`, `public`. */
    static result<filter> make(std::string_view rules)
    {
        return detail::make<filter>(
            [&](auto out, auto err) { return byway_filter_new(rules.data(), rules.size(), out, err); });
    }
    /** Only addresses of the public internet. */
    static result<filter> public_only()
    {
        return detail::make<filter>([](auto out, auto err) { return byway_filter_new_public(out, err); });
    }
    /** False when the address must not be connected to, or is none. */
    bool allows(const ip &address) const noexcept
    {
        std::int32_t denied = 1;
        return byway_filter_check(get(), &address.raw(), &denied) == BYWAY_OK && denied == 0;
    }
};

} // namespace byway

#endif /* BYWAY_IP_HPP */
