/* byway for C++: where a host wants to go. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_ADDRESS_HPP
#define BYWAY_ADDRESS_HPP

#include "proxy_selector.hpp"

namespace byway {

/** What an address is made from; everything is borrowed for the call. */
struct address_options {
    std::string_view host;
    int port = 0;
    bool tls = false;
    /** No proxy, and nobody is asked. */
    bool direct = false;
    /** Empty: `https` with TLS, else `http`. */
    std::string_view scheme = {};
    const byway::proxy *proxy = nullptr;
    const byway::proxy_selector *proxy_selector = nullptr;
    const byway::dns *dns = nullptr;
    /** ALPN names in order of preference. */
    texts protocols = {};
    /** Opaque identity of the host's own TLS configuration, as a number and as bytes. */
    std::uint64_t tls_identity = 0;
    std::string_view tls_identity_bytes = {};
    /** Opaque identity of whatever answers a proxy's challenges. */
    std::uint64_t authenticator = 0;
};

/** Where a host wants to go, by whatever proxy and resolver. A value. */
class address : public detail::shared<byway_address, byway_address_retain, byway_address_release> {
public:
    using shared::shared;

    static result<address> make(const engine &owner, const address_options &from)
    {
        byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
        options.scheme = str(from.scheme);
        options.host = str(from.host);
        options.port = from.port;
        options.flags = (from.tls ? BYWAY_ADDRESS_TLS : 0u) | (from.direct ? BYWAY_ADDRESS_DIRECT : 0u);
        options.proxy = from.proxy ? from.proxy->get() : nullptr;
        options.proxy_selector = from.proxy_selector ? from.proxy_selector->get() : nullptr;
        options.dns = from.dns ? from.dns->get() : nullptr;
        options.protocols = from.protocols.data();
        options.protocols_len = from.protocols.size();
        options.tls_identity = from.tls_identity;
        options.tls_identity_bytes = str(from.tls_identity_bytes);
        options.authenticator = from.authenticator;
        return detail::make<address>(
            [&](auto out, auto err) { return byway_address_new(owner.get(), &options, out, err); });
    }
    /** Canonical host, without brackets and zone; lives as long as the address. */
    std::string_view host() const noexcept
    {
        return detail::lent([&](auto out) { return byway_address_host(get(), out); });
    }
    /** URI as the proxy selector sees it; lives as long as the address. */
    std::string_view uri() const noexcept
    {
        return detail::lent([&](auto out) { return byway_address_uri(get(), out); });
    }
    int port() const noexcept { return byway_address_port(get()); }
    /** The same for equal addresses, within this process. */
    std::uint64_t hash() const noexcept { return byway_address_hash(get()); }
    /** `scheme://host:port`, with the explicit proxy. */
    result<std::string> text() const
    {
        return detail::text([&](auto out, auto err) { return byway_address_text(get(), out, err); });
    }
    /** Equal in everything but host and scheme. */
    bool equal_non_host(const address &other) const noexcept
    {
        return byway_address_equal_non_host(get(), other.get()) == 1;
    }
    friend bool operator==(const address &a, const address &b) noexcept
    {
        return byway_address_equals(a.get(), b.get()) == 1;
    }
    friend bool operator!=(const address &a, const address &b) noexcept { return !(a == b); }
};

inline result<route> route::make(const address &to, const byway::proxy &through, const byway::ip &hop,
                                 std::uint16_t hop_port)
{
    return detail::make<route>([&](auto out, auto err) {
        return byway_route_new(to.get(), through.get(), hop ? &hop.raw() : nullptr, hop_port, out, err);
    });
}

inline result<int> coalesces(route_ref live, const address &wanted, span<const route_ref> wanted_routes,
                             const peer &known)
{
    return detail::value<std::int32_t>([&](auto out, auto err) {
        return byway_route_coalesces(live.get(), wanted.get(), detail::raw(wanted_routes), wanted_routes.size(), &known,
                                     out, err);
    });
}

} // namespace byway

template <> struct std::hash<byway::address> {
    std::size_t operator()(const byway::address &of) const noexcept { return static_cast<std::size_t>(of.hash()); }
};

#endif /* BYWAY_ADDRESS_HPP */
