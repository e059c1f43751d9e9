/* byway for C++: proxies. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_PROXY_HPP
#define BYWAY_PROXY_HPP

#include "ip.hpp"

namespace byway {

namespace detail {
/** What can be asked of a proxy, owned or lent. An empty one is DIRECT. */
template <class Base> class proxy_getters : public Base {
public:
    using Base::Base;

    /** `BYWAY_PROXY_*`. */
    int kind() const noexcept { return byway_proxy_kind(this->get()); }
    /** Canonical host without brackets; empty for DIRECT. */
    std::string_view host() const noexcept
    {
        return lent([&](auto out) { return byway_proxy_host(this->get(), out); });
    }
    int port() const noexcept { return byway_proxy_port(this->get()); }
    /** The one address used, when it was made resolved or its host is a literal. */
    byway::ip ip() const noexcept
    {
        byway::ip out;
        return byway_proxy_ip(this->get(), &out.raw()) == BYWAY_OK ? out : byway::ip();
    }
    /** `kind://host:port`, without credentials. */
    std::string text() const
    {
        auto shown = detail::text([&](auto out, auto err) { return byway_proxy_text(this->get(), out, err); });
        return shown ? std::move(*shown) : std::string();
    }
};
} // namespace detail

/** A proxy somebody else owns: valid until what lent it goes. */
class proxy_ref : public detail::proxy_getters<detail::borrowed<const byway_proxy>> {
public:
    using proxy_getters::proxy_getters;
};

/** A proxy: kind, place, credentials. An empty one is DIRECT. */
class proxy : public detail::proxy_getters<detail::shared<byway_proxy, byway_proxy_retain, byway_proxy_release>> {
public:
    using proxy_getters::proxy_getters;

    static result<proxy> make(int kind, std::string_view host, int port)
    {
        return detail::make<proxy>(
            [&](auto out, auto err) { return byway_proxy_new(kind, host.data(), host.size(), port, out, err); });
    }
    /** Already resolved: this address is used and no other; `host` is only text. */
    static result<proxy> resolved(int kind, std::string_view host, const byway::ip &at, int port)
    {
        return detail::make<proxy>([&](auto out, auto err) {
            return byway_proxy_new_resolved(kind, host.data(), host.size(), &at.raw(), port, out, err);
        });
    }
    /** The same with credentials, which go to this proxy only and are shown nowhere. */
    result<proxy> with_credentials(std::optional<std::string_view> user, std::optional<std::string_view> password) const
    {
        const byway_str who = user ? str(*user) : byway_str{nullptr, 0};
        const byway_str how = password ? str(*password) : byway_str{nullptr, 0};
        return detail::make<proxy>([&](auto out, auto err) {
            return byway_proxy_with_credentials(get(), present(who, user), who.len, present(how, password), how.len,
                                                out, err);
        });
    }
    operator proxy_ref() const noexcept { return proxy_ref(get()); }
    /** Kind, place and user name; the password does not count. */
    friend bool operator==(const proxy &a, const proxy &b) noexcept
    {
        return byway_proxy_equals(a.get(), b.get()) == 1;
    }
    friend bool operator!=(const proxy &a, const proxy &b) noexcept { return !(a == b); }

private:
    /* An empty text is an empty one, and not none. */
    static const char *present(const byway_str &text, const std::optional<std::string_view> &given) noexcept
    {
        return given && !text.data ? "" : text.data;
    }
};

/** One more reference to a lent proxy. */
inline proxy keep(proxy_ref lent) noexcept { return proxy(byway_proxy_retain(const_cast<byway_proxy *>(lent.get()))); }

} // namespace byway

#endif /* BYWAY_PROXY_HPP */
