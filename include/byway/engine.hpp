/* byway for C++: the engine. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_ENGINE_HPP
#define BYWAY_ENGINE_HPP

#include "failure.hpp"
#include "listener.hpp"
#include "queue.hpp"

namespace byway {

class dns;
class proxy_selector;

/** What an engine is made with; the fields are `byway_engine_options`', handles by `.get()`. */
struct engine_options : byway_engine_options {
    engine_options() noexcept : byway_engine_options BYWAY_ENGINE_OPTIONS_INIT {}
};

/** Figures of an engine. */
using engine_statistics = byway_engine_statistics;
/** One failed route of a snapshot. */
using failed_route = byway_failed_route;

/** Holds what must be remembered between calls. One per client, used from every thread. */
class engine : public detail::shared<byway_engine, byway_engine_retain, byway_engine_release> {
public:
    using shared::shared;

    static result<engine> make(const byway_engine_options &options = engine_options())
    {
        return detail::make<engine>([&](auto out, auto err) { return byway_engine_new(&options, out, err); });
    }
    /** After OK no callback and no destructor of a callback runs; PENDING: call again. */
    result<void> shutdown(timeout wait = {})
    {
        return detail::call([&](auto err) { return byway_engine_shutdown(get(), detail::milliseconds(wait), err); });
    }
    /** Inbox of everything that names none of its own. */
    byway::queue queue() const noexcept { return byway::queue(byway_engine_queue(get())); }

    /** A connection over this route stands. */
    result<void> connected(route_ref which) { return detail::settle(byway_engine_connected(get(), which.get())); }
    /** An attempt over this route failed: `BYWAY_FAILURE_*`, the system's number, `BYWAY_PHASE_*`. */
    result<void> connect_failed(route_ref which, int failure, int os_errno = 0, int phase = BYWAY_PHASE_TCP)
    {
        return detail::call(
            [&](auto err) { return byway_engine_connect_failed(get(), which.get(), failure, phase, os_errno, err); });
    }
    /** Whether this route goes behind the others, because it failed before. */
    bool should_postpone(route_ref which) const noexcept
    {
        std::int32_t out = 0;
        return byway_engine_should_postpone(get(), which.get(), &out) == BYWAY_OK && out != 0;
    }
    /** May a failed call be retried on another route? `BYWAY_RECOVER_*`, the first reason against it. */
    result<int> recover(const byway_failed_call &call) const
    {
        return detail::value<std::int32_t>(
            [&](auto out, auto err) { return byway_engine_recover(get(), &call, out, err); });
    }
    /** Another network (interface, VPN): failed routes and cached names are forgotten. Returns the generation. */
    result<std::uint64_t> network_changed()
    {
        return detail::value<std::uint64_t>([&](auto out, auto) { return byway_engine_network_changed(get(), out); });
    }
    /** Who answers when a proxy selector passes; an empty one takes it back: DIRECT. */
    result<void> set_proxy_selector(const proxy_selector &chooser);

    /** Which proxies a URL has, outside any connection; an empty one is DIRECT. `names` resolves what a script wants to
     * know, none: the system. `explanation` gets the list with the reasons, as JSON. */
    result<std::vector<proxy>> proxies_for_url(const proxy_selector &chooser, std::string_view url, timeout wait = {},
                                           const dns *names = nullptr, std::string *explanation = nullptr) const;
    /** The proxies that failed lately and are tried last for a while, as JSON. */
    result<std::string> bad_proxies() const
    {
        return detail::text([&](auto out, auto err) { return byway_engine_bad_proxies(get(), out, err); });
    }
    /** A proxy failed that was tried outside this library: it goes behind the others for a while. */
    result<void> mark_proxy(const proxy &failed, int failure = BYWAY_FAILURE_IO, int os_errno = 0);
    /** All are tried in their configured order again. */
    result<void> forget_bad_proxies()
    {
        return detail::call([&](auto err) { return byway_engine_forget_bad_proxies(get(), err); });
    }

    /** Failed routes, oldest first. */
    result<std::vector<failed_route>> database() const
    {
        std::vector<failed_route> all;
        const byway_status status = detail::fill(all, [&](auto *out, std::size_t cap, std::size_t *total) {
            return byway_engine_database_snapshot(get(), out, sizeof(failed_route), cap, total);
        });
        if (status < 0)
            return error(status);
        return all;
    }
    /** The route database as JSON, to be kept over a restart. */
    result<std::string> database_export() const
    {
        return detail::text([&](auto out, auto err) { return byway_engine_database_export(get(), out, err); });
    }
    /** Adds what an export holds; returns the number of entries in the text. */
    result<std::size_t> database_import(std::string_view json)
    {
        return detail::value<std::size_t>(
            [&](auto n, auto err) { return byway_engine_database_import(get(), json.data(), json.size(), n, err); });
    }
    result<engine_statistics> statistics() const
    {
        engine_statistics out = BYWAY_ENGINE_STATISTICS_INIT;
        const byway_status status = byway_engine_stats(get(), &out);
        if (status < 0)
            return error(status);
        return out;
    }

    /** Sets the text of the rule with this key, whether or not a chain wants it yet. */
    result<void> set_rule(std::string_view key, std::string_view text)
    {
        return detail::call([&](auto err) {
            return byway_engine_set_rule(get(), key.data(), key.size(), text.data(), text.size(), err);
        });
    }
    result<void> remove_rule(std::string_view key)
    {
        return detail::call([&](auto err) { return byway_engine_remove_rule(get(), key.data(), key.size(), err); });
    }
    /** `on_event(const event &)` must not throw; `mask` as `events({BYWAY_EVENT_...})` makes it. Whoever polls `inbox`
     * (none: the engine's queue) hears of rules and chains. */
    template <class F>
    result<listener> listen(F on_event, std::uint64_t mask = UINT64_MAX, const byway::queue &inbox = {})
    {
        byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
        set.user_data = new F(std::move(on_event));
        set.destroy = detail::destroy<F>;
        set.mask = mask;
        set.queue = inbox.get();
        set.on_event = [](void *user, const byway_event *what) noexcept { (*static_cast<F *>(user))(event(*what)); };
        return detail::make<listener>(
            [&](auto out, auto err) { return byway_engine_add_listener(get(), &set, out, err); });
    }
};

/** What a callback serves; valid until it returns. */
class call {
public:
    explicit call(const byway_call *raw) noexcept : raw_(raw) {}
    /** Empty when the host has released it. */
    byway::engine engine() const noexcept
    {
        return byway::engine(byway_engine_retain(const_cast<byway_engine *>(byway_call_engine(raw_))));
    }
    /** The host's number of the operation, 0 for none. */
    std::uint64_t tag() const noexcept { return byway_call_tag(raw_); }
    /** The operation's number, for example a selector's. */
    std::uint64_t id() const noexcept { return byway_call_id(raw_); }
    /** Until the operation gives up. */
    timeout deadline() const noexcept { return detail::deadline(byway_call_deadline_ms(raw_)); }
    const byway_call *raw() const noexcept { return raw_; }

private:
    const byway_call *raw_;
};

} // namespace byway

#endif /* BYWAY_ENGINE_HPP */
