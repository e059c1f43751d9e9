/* byway for C++: who chooses proxies. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_PROXY_SELECTOR_HPP
#define BYWAY_PROXY_SELECTOR_HPP

#include "dns.hpp"

namespace byway {

/** A question to a proxy selector, and the place for its answer. Copy it to answer after the callback has returned. */
class proxy_request
    : public detail::shared<byway_proxy_request, byway_proxy_request_retain, byway_proxy_request_release> {
public:
    using shared::shared;

    /** As the cancel callback names it. */
    std::uint64_t id() const noexcept { return byway_proxy_request_id(get()); }
    /** Nobody waits for the answer any more. */
    bool canceled() const noexcept { return byway_proxy_request_is_canceled(get()) == 1; }
    /** Adds a proxy made before; an empty one is an error, DIRECT is said by `add_direct`. */
    result<void> add(proxy_ref which)
    {
        return detail::settle(byway_proxy_request_add_proxy(get(), which.get()));
    }
    result<void> add(int kind, std::string_view host, int port)
    {
        return detail::call([&](auto err) {
            return byway_proxy_request_add(get(), kind, host.data(), host.size(), port, err);
        });
    }
    result<void> add_direct() { return detail::settle(byway_proxy_request_add_direct(get())); }
    /** The list is complete. The first end wins. */
    result<void> finish() { return detail::settle(byway_proxy_request_finish(get())); }
    /** No proxies can be named. */
    result<void> fail(std::string_view message, byway_status code = BYWAY_E_PROXY_SELECTOR, std::int64_t host_code = 0)
    {
        return detail::settle(byway_proxy_request_fail(get(), code, host_code, message.data(), message.size()));
    }
};

/** A name and its value: an environment variable, a property. */
using setting = std::pair<std::string_view, std::string_view>;

/** Who chooses proxies for an address. */
class proxy_selector
    : public detail::shared<byway_proxy_selector, byway_proxy_selector_retain, byway_proxy_selector_release> {
public:
    using shared::shared;

    /** Told that a proxy which was chosen failed (`BYWAY_FAILURE_*`, the system's number); must not throw. */
    using failed = std::function<void(std::string_view uri, route_ref route, int failure, int os_errno)>;

    /** `select(proxy_request &, std::string_view uri[, const call &])` returns a status as `dns::make`'s `lookup`;
     * BYWAY_PASS is the engine's default proxy selector, else DIRECT. */
    template <class F>
    static result<proxy_selector> make(const engine &owner, F select, failed connect_failed = {}, canceled on_cancel = {})
    {
        struct all {
            F select;
            failed connect_failed;
            canceled on_cancel;
        };
        byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
        set.user_data = new all{std::move(select), std::move(connect_failed), std::move(on_cancel)};
        set.destroy = detail::destroy<all>;
        set.select = [](void *user, byway_proxy_request *request, const char *uri, std::size_t len,
                        const byway_call *raw) noexcept -> byway_status {
            proxy_request asked(byway_proxy_request_retain(request));
            return detail::guarded(
                [&] { return detail::answer(static_cast<all *>(user)->select, asked, {uri, len}, raw); },
                [&](const char *what) {
                    // The request has the words then, and is over.
                    return byway_proxy_request_fail(request, BYWAY_E_HOST, 0, what, BYWAY_NUL) == BYWAY_OK ? BYWAY_OK : BYWAY_E_HOST;
                });
        };
        set.connect_failed = [](void *user, const char *uri, std::size_t len, const byway_route *which,
                                std::int32_t failure, std::int32_t os_errno, const byway_call *) noexcept {
            if (auto &told = static_cast<all *>(user)->connect_failed)
                told(std::string_view(uri, len), route_ref(which), failure, os_errno);
        };
        set.on_cancel = [](void *user, std::uint64_t id) noexcept {
            if (auto &told = static_cast<all *>(user)->on_cancel)
                told(id);
        };
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new(owner.get(), &set, out, err); });
    }
    /** Always DIRECT. */
    static result<proxy_selector> direct(const engine &owner)
    {
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new_direct(owner.get(), out, err); });
    }
    /** Always this list, in its order; an empty proxy is DIRECT. */
    static result<proxy_selector> fixed(const engine &owner, span<const proxy> list)
    {
        std::vector<const byway_proxy *> all;
        for (const proxy &one : list)
            all.push_back(one.get());
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_fixed(owner.get(), all.data(), all.size(), out, err);
        });
    }
    /** `http_proxy`, `no_proxy` and the like from the process's environment, read once. `dialect`: `byway`, `curl`,
     * `go`, `python`, `chromium`, `node`. Must not run while another thread changes the environment. */
    static result<proxy_selector> environment(const engine &owner, std::string_view dialect = "byway")
    {
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_environment(owner.get(), nullptr, nullptr, 0, dialect.data(), dialect.size(),
                                                        out, err);
        });
    }
    /** The same from variables that are given. */
    static result<proxy_selector> environment(const engine &owner, span<const setting> variables,
                                              std::string_view dialect = "byway")
    {
        const table given(variables);
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_environment(owner.get(), given.names.data(), given.values.data(),
                                                        variables.size(), dialect.data(), dialect.size(), out, err);
        });
    }
    /** Java system properties, with the answers of the JDK's own selector. */
    static result<proxy_selector> properties(const engine &owner, span<const setting> given, bool web_sockets = true)
    {
        const table all(given);
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_properties(owner.get(), all.names.data(), all.values.data(), given.size(),
                                                       web_sockets, out, err);
        });
    }
    /** A proxy auto-configuration script; `name` (its URL or path) appears in errors. */
    static result<proxy_selector> script(const engine &owner, std::string_view name, std::string_view source)
    {
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_script(owner.get(), name.data(), name.size(), source.data(), source.size(),
                                                   out, err);
        });
    }

private:
    /* Never empty inside: no variables are something else than the process's own. */
    struct table {
        explicit table(span<const setting> given)
        {
            names.reserve(given.size() + 1);
            values.reserve(given.size() + 1);
            for (const setting &one : given) {
                names.push_back(str(one.first));
                values.push_back(str(one.second));
            }
        }
        std::vector<byway_str> names, values;
    };
};

inline result<void> engine::set_proxy_selector(const proxy_selector &chooser)
{
    return detail::call([&](auto err) { return byway_engine_set_proxy_selector(get(), chooser.get(), err); });
}

}  // namespace byway

#endif /* BYWAY_PROXY_SELECTOR_HPP */
