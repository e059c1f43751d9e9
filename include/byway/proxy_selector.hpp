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
    result<void> add(proxy_ref which) { return detail::settle(byway_proxy_request_add_proxy(get(), which.get())); }
    result<void> add(int kind, std::string_view host, int port)
    {
        return detail::call(
            [&](auto err) { return byway_proxy_request_add(get(), kind, host.data(), host.size(), port, err); });
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

/** A list of hosts that are not proxied; the fields are `byway_bypass_options`', texts by `str`. */
struct bypass_options : byway_bypass_options {
    explicit bypass_options(std::string_view hosts = {}, std::int32_t written = BYWAY_BYPASS_BROWSER) noexcept
        : byway_bypass_options BYWAY_BYPASS_OPTIONS_INIT
    {
        list = str(hosts);
        style = written;
    }
};

/** A proxy auto-configuration script; the fields are `byway_pac_options`', texts by `str`, the resolver by `.get()`. */
struct pac_options : byway_pac_options {
    pac_options() noexcept : byway_pac_options BYWAY_PAC_OPTIONS_INIT {}
    /** This machine's addresses, for `myIpAddress`. Borrowed. */
    void set_my_addresses(span<const ip> own) noexcept
    {
        my_addresses = detail::raw(own);
        my_addresses_len = own.size();
    }
};

namespace detail {
/** Names and values as the library takes them. Never without memory: no variables are something else than the process's
 * own. */
struct settings {
    explicit settings(span<const setting> given)
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
} // namespace detail

/** Where the system's proxy settings are found; the fields are `byway_system_options`', texts by `str`. */
struct system_options : byway_system_options {
    system_options() noexcept : byway_system_options BYWAY_SYSTEM_OPTIONS_INIT {}
    /** Variables in place of the process's own. */
    void set_environment(span<const setting> variables) { environment_.emplace(variables); }
    /** As the library takes it; lives as long as this. */
    byway_system_options raw() const noexcept
    {
        byway_system_options all = *this;
        if (environment_) {
            all.names = environment_->names.data();
            all.values = environment_->values.data();
            all.n = environment_->names.size();
        }
        return all;
    }

private:
    std::optional<detail::settings> environment_;
};

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
    static result<proxy_selector> make(const engine &owner, F select, failed connect_failed = {},
                                       canceled on_cancel = {})
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
                [&] {
                    return detail::answer(static_cast<all *>(user)->select, asked, {uri, len}, raw);
                },
                [&](const char *what) {
                    // The request has the words then, and is over.
                    return byway_proxy_request_fail(request, BYWAY_E_HOST, 0, what, BYWAY_NUL) == BYWAY_OK
                             ? BYWAY_OK
                             : BYWAY_E_HOST;
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
            return byway_proxy_selector_new_environment(owner.get(), nullptr, nullptr, 0, dialect.data(),
                                                        dialect.size(), out, err);
        });
    }
    /** The same from variables that are given. */
    static result<proxy_selector> environment(const engine &owner, span<const setting> variables,
                                              std::string_view dialect = "byway")
    {
        const detail::settings given(variables);
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_environment(owner.get(), given.names.data(), given.values.data(),
                                                        variables.size(), dialect.data(), dialect.size(), out, err);
        });
    }
    /** Java system properties, with the answers of the JDK's own selector. `web_sockets`: ws and wss are asked as http
     * and https, as the JDK does from 2026 on; otherwise they are DIRECT. */
    static result<proxy_selector> properties(const engine &owner, span<const setting> given, bool web_sockets = false)
    {
        const detail::settings all(given);
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
    /** A script: its text, a file that is read here, or what `fetch` brings when the first question comes. */
    static result<proxy_selector> pac(const engine &owner, const byway_pac_options &options)
    {
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new_pac(owner.get(), &options, nullptr, out, err); });
    }
    /** `fetch(proxy_selector &self, std::string_view url[, const call &])`, the URL being empty when the script is to
     * be discovered: BYWAY_OK after `self.set_script`, BYWAY_PENDING when a copy of `self` will be told later, or an
     * error. */
    template <class F> static result<proxy_selector> pac(const engine &owner, const byway_pac_options &options, F fetch)
    {
        const byway_pac_callbacks set = fetcher(std::move(fetch));
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new_pac(owner.get(), &options, &set, out, err); });
    }
    /** The system's settings: the environment, GNOME, KDE, `/etc/sysconfig/proxy`; read here, and again by `refresh`.
     */
    static result<proxy_selector> system(const engine &owner, const system_options &options = system_options())
    {
        const byway_system_options raw = options.raw();
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new_system(owner.get(), &raw, nullptr, out, err); });
    }
    /** The same with a `fetch` as `pac`'s for scripts the settings name. */
    template <class F> static result<proxy_selector> system(const engine &owner, const system_options &options, F fetch)
    {
        const byway_system_options raw = options.raw();
        const byway_pac_callbacks set = fetcher(std::move(fetch));
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new_system(owner.get(), &raw, &set, out, err); });
    }
    /** The values of `ProxyServer` and `ProxyOverride` of Windows. */
    static result<proxy_selector> windows(const engine &owner, std::string_view server, std::string_view bypass = {})
    {
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_windows(owner.get(), server.data(), server.size(), bypass.data(),
                                                    bypass.size(), out, err);
        });
    }
    /** DIRECT for the hosts of a list, for all others what `inner` says. */
    static result<proxy_selector> bypass(const engine &owner, const byway_bypass_options &options,
                                         const proxy_selector &inner)
    {
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_bypass(owner.get(), &options, inner.get(), out, err);
        });
    }
    /** By the URL's scheme; an empty selector is DIRECT. */
    static result<proxy_selector> per_scheme(const engine &owner,
                                             span<const std::pair<std::string_view, proxy_selector>> schemes,
                                             const proxy_selector &otherwise = {})
    {
        const inner_ones all(schemes);
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_per_scheme(owner.get(), all.names.data(), all.selectors.data(),
                                                       schemes.size(), otherwise.get(), out, err);
        });
    }
    /** By the first pattern (`*.corp;10.0.0.0/8`) that covers the target; an empty selector is DIRECT, but without
     * `otherwise` what nothing covers is an error. */
    static result<proxy_selector> rules(const engine &owner,
                                        span<const std::pair<std::string_view, proxy_selector>> patterns,
                                        const proxy_selector &otherwise = {})
    {
        const inner_ones all(patterns);
        return detail::make<proxy_selector>([&](auto out, auto err) {
            return byway_proxy_selector_new_rules(owner.get(), all.names.data(), all.selectors.data(), patterns.size(),
                                                  otherwise.get(), out, err);
        });
    }

    /** What is to be known about its configuration, one sentence a line. */
    result<std::string> diagnostics() const
    {
        return detail::text([&](auto out, auto err) { return byway_proxy_selector_diagnostics(get(), out, err); });
    }
    /** Hands a script in: the answer to `fetch`, or a newer text at any time. Any thread. */
    result<void> set_script(std::string_view source, std::string_view charset = {})
    {
        return detail::call([&](auto err) {
            return byway_proxy_selector_set_script(get(), source.data(), source.size(), charset.data(), charset.size(),
                                                   err);
        });
    }
    /** The script could not be fetched. Any thread. */
    result<void> script_failed(std::string_view message, byway_status code = BYWAY_E_HOST, std::int64_t host_code = 0)
    {
        return detail::settle(
            byway_proxy_selector_script_failed(get(), code, host_code, message.data(), message.size()));
    }
    /** URL of the script behind it; empty when it is to be discovered, none when there is no script. */
    std::optional<std::string> script_url() const
    {
        byway_text *url = nullptr;
        if (byway_proxy_selector_script_url(get(), &url, nullptr) != BYWAY_OK)
            return std::nullopt;
        return detail::take(url);
    }
    /** Reads what it, and the selectors inside it, are made from again; on an error the old state stays in force. */
    result<void> refresh()
    {
        return detail::call([&](auto err) { return byway_proxy_selector_refresh(get(), err); });
    }
    /** Reads the system's settings from elsewhere from now on. */
    result<void> set_system(const system_options &options)
    {
        const byway_system_options raw = options.raw();
        return detail::call([&](auto err) { return byway_proxy_selector_set_system(get(), &raw, err); });
    }

private:
    struct inner_ones {
        explicit inner_ones(span<const std::pair<std::string_view, proxy_selector>> row)
        {
            for (const auto &one : row) {
                names.push_back(str(one.first));
                selectors.push_back(one.second.get());
            }
        }
        std::vector<byway_str> names;
        std::vector<const byway_proxy_selector *> selectors;
    };

    template <class F> static byway_pac_callbacks fetcher(F fetch)
    {
        byway_pac_callbacks set = BYWAY_PAC_CALLBACKS_INIT;
        set.user_data = new F(std::move(fetch));
        set.destroy = detail::destroy<F>;
        set.fetch = [](void *user, byway_proxy_selector *asking, const char *url, std::size_t len,
                       const byway_call *raw) noexcept -> byway_status {
            proxy_selector self(byway_proxy_selector_retain(asking));
            return detail::guarded(
                [&] {
                    return detail::answer(*static_cast<F *>(user), self, {url, len}, raw);
                },
                [&](const char *what) {
                    return byway_proxy_selector_script_failed(asking, BYWAY_E_HOST, 0, what, BYWAY_NUL) == BYWAY_OK
                             ? BYWAY_OK
                             : BYWAY_E_HOST;
                });
        };
        return set;
    }
};

inline result<void> engine::mark_proxy(const proxy &failed, int failure, int os_errno)
{
    return detail::call([&](auto err) { return byway_engine_mark_proxy(get(), failed.get(), failure, os_errno, err); });
}

inline result<void> engine::set_proxy_selector(const proxy_selector &chooser)
{
    return detail::call([&](auto err) { return byway_engine_set_proxy_selector(get(), chooser.get(), err); });
}

inline result<std::vector<proxy>> engine::proxies_for_url(const proxy_selector &chooser, std::string_view url, timeout wait,
                                                      const dns *names, std::string *explanation) const
{
    std::vector<byway_proxy *> raw(16);
    for (;;) {
        byway_text *text = nullptr;
        std::size_t total = 0;
        auto done = detail::call([&](auto err) {
            return byway_engine_proxies_for_url(get(), chooser.get(), url.data(), url.size(),
                                                names ? names->get() : nullptr, detail::milliseconds(wait), raw.data(),
                                                raw.size(), &total, explanation ? &text : nullptr, err);
        });
        if (explanation)
            *explanation = detail::take(text);
        if (!done)
            return done.error();
        std::vector<proxy> all;
        for (std::size_t i = 0; i < total && i < raw.size(); ++i)
            all.emplace_back(raw[i]);
        if (total <= raw.size())
            return all;
        raw.assign(total, nullptr);
    }
}

} // namespace byway

#endif /* BYWAY_PROXY_SELECTOR_HPP */
