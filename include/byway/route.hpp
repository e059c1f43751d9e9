/* byway for C++: routes. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_ROUTE_HPP
#define BYWAY_ROUTE_HPP

#include "proxy.hpp"

namespace byway {

class address;

/** An address and a port. */
struct endpoint {
    byway::ip ip;
    std::uint16_t port = 0;
};

/** What a proxy or TLS is told: the canonical host, and the address where the target is one. */
struct target {
    std::string_view name;
    byway::ip ip;
    std::uint16_t port = 0;
};

/** HTTPS/SVCB metadata of a name; bytes without a NUL. */
struct service {
    std::string_view ech;
    std::uint16_t port = 0;
    std::vector<std::string_view> alpn;
    std::vector<ip> hints;
};

/** What the host knows of the peer of a live connection; `flags` are `BYWAY_PEER_*`. */
struct peer : byway_peer {
    explicit peer(std::uint32_t known = 0) noexcept : byway_peer BYWAY_PEER_INIT { flags = known; }
};

namespace detail {
/** What can be asked of a route, owned or lent. */
template <class Base> class route_getters : public Base {
public:
    using Base::Base;

    /** Fills a `sockaddr_in` or `sockaddr_in6` for `connect(2)`; returns its length. */
    result<std::size_t> sockaddr(void *out, std::size_t cap) const
    {
        return value<std::size_t>([&](auto len, auto) { return byway_route_sockaddr(this->get(), out, cap, len); });
    }
    /** What `connect(2)` gets; no address for an unresolved hop. */
    endpoint hop() const noexcept
    {
        endpoint out;
        byway_route_hop(this->get(), &out.ip.raw(), &out.port);
        return out;
    }
    /** What the proxy or TLS is told; the name lives as long as the route. */
    byway::target target() const noexcept
    {
        byway::target out;
        byway_str name = {nullptr, 0};
        byway_route_target(this->get(), &name, &out.ip.raw(), &out.port);
        out.name = view(name);
        return out;
    }
    /** OkHttp's `socketAddress`: the hop; behind SOCKS the unresolved origin and its port. */
    endpoint socket_address() const noexcept
    {
        endpoint out;
        byway_route_socket_address(this->get(), &out.ip.raw(), &out.port);
        return out;
    }
    /** The proxy it goes through; empty for DIRECT. */
    byway::proxy proxy() const noexcept
    {
        byway_proxy *out = nullptr;
        byway_route_proxy(this->get(), &out, nullptr);
        return byway::proxy(out);
    }
    /** `BYWAY_PROXY_*`. */
    int proxy_kind() const noexcept { return byway_route_proxy_kind(this->get()); }
    /** Whether an HTTP proxy must first be asked for a tunnel. */
    bool requires_tunnel() const noexcept { return byway_route_requires_tunnel(this->get()) == 1; }
    /** `BYWAY_ROUTE_*`. */
    std::uint32_t flags() const noexcept { return byway_route_flags(this->get()); }
    /** Whether it failed before and was put behind the others. */
    bool postponed() const noexcept { return (flags() & BYWAY_ROUTE_POSTPONED) != 0; }
    /** HTTPS/SVCB metadata, if the resolver gave some; lives as long as the route. */
    std::optional<byway::service> service() const
    {
        byway::service out;
        byway_str bytes = {nullptr, 0};
        if (byway_route_service(this->get(), &bytes, &out.port) != BYWAY_OK)
            return std::nullopt;
        out.ech = view(bytes);
        while (byway_route_service_alpn_at(this->get(), out.alpn.size(), &bytes) == BYWAY_OK)
            out.alpn.push_back(view(bytes));
        detail::fill(out.hints, [&](ip *to, std::size_t cap, std::size_t *total) {
            return byway_route_service_hints(this->get(), reinterpret_cast<byway_ip *>(to), sizeof(ip), cap, total);
        });
        return out;
    }
    /** The same for equal routes, within this process. */
    std::uint64_t hash() const noexcept { return byway_route_hash(this->get()); }
    /** `HOST[:PORT] at IP:PORT` or `HOST[:PORT] via proxy IP:PORT`. */
    result<std::string> text() const
    {
        return detail::text([&](auto out, auto err) { return byway_route_text(this->get(), out, err); });
    }
};
} // namespace detail

/** A route somebody else owns: valid until what lent it goes; `keep` makes one's own. */
class route_ref : public detail::route_getters<detail::borrowed<const byway_route>> {
public:
    using route_getters::route_getters;
    friend bool operator==(route_ref a, route_ref b) noexcept { return byway_route_equals(a.get(), b.get()) == 1; }
    friend bool operator!=(route_ref a, route_ref b) noexcept { return !(a == b); }
};

/** One way to an address. A value: pins no engine, resolver or callback. */
class route : public detail::route_getters<detail::shared<byway_route, byway_route_retain, byway_route_release>> {
public:
    using route_getters::route_getters;

    /** For hosts that keep routes of their own; an empty proxy is DIRECT, no address an unresolved hop. */
    static result<route> make(const address &to, const byway::proxy &through, const byway::ip &hop,
                              std::uint16_t hop_port);
    /** One more reference to a borrowed route. */
    static route keep(route_ref lent) noexcept { return route(byway_route_retain(lent.get())); }

    operator route_ref() const noexcept { return route_ref(get()); }
    friend bool operator==(const route &a, const route &b) noexcept { return route_ref(a) == route_ref(b); }
    friend bool operator!=(const route &a, const route &b) noexcept { return !(a == b); }
};

/** One more reference to a lent route. */
inline route keep(route_ref lent) noexcept { return route::keep(lent); }

/** May a live connection made over `live` serve `wanted`, whose own routes are `wanted_routes`? 0 when it may, else
 * `BYWAY_NO_COALESCING_*`. */
result<int> coalesces(route_ref live, const address &wanted, span<const route_ref> wanted_routes, const peer &known);

namespace detail {
static_assert(sizeof(route_ref) == sizeof(const byway_route *) && std::is_standard_layout_v<route_ref>,
              "rows of both are the same memory");
inline const byway_route *const *raw(span<const route_ref> routes) noexcept
{
    return reinterpret_cast<const byway_route *const *>(routes.data());
}
} // namespace detail

} // namespace byway

template <> struct std::hash<byway::route> {
    std::size_t operator()(const byway::route &of) const noexcept { return static_cast<std::size_t>(of.hash()); }
};

#endif /* BYWAY_ROUTE_HPP */
