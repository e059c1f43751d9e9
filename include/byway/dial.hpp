/* byway for C++: from routes to a connected socket. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_DIAL_HPP
#define BYWAY_DIAL_HPP

#include "selector.hpp"

namespace byway {

/** What a dial is made with; the fields are `byway_dial_options`', texts by `str`. */
struct dial_options : byway_dial_options {
    dial_options() noexcept : byway_dial_options BYWAY_DIAL_OPTIONS_INIT {}
    /** Headers for the proxy alone; borrowed until the dial or handshake is made. */
    void set_headers(span<const byway_header> row) noexcept
    {
        headers = row.data();
        header_count = row.size();
    }
};

/** A connected socket and the route it leads over. Whoever takes it closes it. */
struct connected {
    int fd = -1;
    byway::route route;
    /** For `dial::confirm` and `dial::resume`. */
    std::uint32_t attempt = 0;
    /** `BYWAY_CONNECTED_*`. */
    std::uint32_t flags = 0;
};

/** One descriptor to watch. */
using pollfd = byway_pollfd;
/** Something that happened, for hosts that keep state per descriptor. */
using dial_event = byway_dial_event;
/** One failed attempt. */
using dial_failure = byway_dial_failure;

/** A proxy's challenges, and the place for credentials; may be copied to answer later, while the dial lives. */
class challenge {
public:
    challenge(byway_dial *of, std::uint32_t attempt) noexcept : dial_(of), attempt_(attempt) {}
    std::uint32_t attempt() const noexcept { return attempt_; }
    /** The whole value of `Proxy-Authorization`. Any thread. */
    result<void> authenticate(std::string_view value) const
    {
        return detail::settle(byway_dial_authenticate(dial_, attempt_, value.data(), value.size()));
    }
    /** There are none: the attempt ends. */
    result<void> refuse() const { return detail::settle(byway_dial_authenticate(dial_, attempt_, nullptr, 0)); }

private:
    byway_dial *dial_;
    std::uint32_t attempt_;
};

/** Host code a dial calls on the thread that steps it. What is not set is built in. */
struct dial_hooks {
    /** Opens a stream socket; BYWAY_PASS: as usual. An error skips the route. */
    std::function<byway_status(int family, int protocol, route_ref route, int &fd)> open_socket;
    /** Sets further options before `connect(2)`. An error skips the route. */
    std::function<byway_status(int fd, route_ref route)> configure;
    /** Closes a socket; BYWAY_PASS: as usual. */
    std::function<byway_status(int fd)> close_socket;
    /** Credentials for an HTTP proxy: BYWAY_OK when `authenticate` was called, BYWAY_PENDING when it will be. */
    std::function<byway_status(const challenge &answer, route_ref route, span<const std::string_view> challenges)>
        proxy_auth;
};

/** One operation: races routes, speaks to proxies, hands over one connected socket. Driven by `run`, or by an event
 * loop with `fd` and `step`. */
class dial : public detail::unique<byway_dial, byway_dial_free> {
public:
    using unique::unique;

    /** Over the routes of a selector, which belongs to the dial until that is gone. */
    static result<dial> make(const engine &owner, selector &over, const byway_dial_options &options = dial_options(),
                             dial_hooks hooks = {})
    {
        const callbacks set(std::move(hooks));
        return detail::make<dial>(
            [&](auto out, auto err) { return byway_dial_new(owner.get(), over.get(), &options, set.get(), out, err); });
    }
    /** Over the routes of one Selection that are still before its cursor. */
    static result<dial> make(const engine &owner, selection &over, const byway_dial_options &options = dial_options(),
                             dial_hooks hooks = {})
    {
        const callbacks set(std::move(hooks));
        return detail::make<dial>([&](auto out, auto err) {
            return byway_dial_new_selection(owner.get(), over.get(), &options, set.get(), out, err);
        });
    }
    /** Over routes the host has kept, in this order. */
    static result<dial> make(const engine &owner, span<const route_ref> routes,
                             const byway_dial_options &options = dial_options(), dial_hooks hooks = {})
    {
        const callbacks set(std::move(hooks));
        return detail::make<dial>([&](auto out, auto err) {
            return byway_dial_new_routes(owner.get(), detail::raw(routes), routes.size(), &options, set.get(), out,
                                         err);
        });
    }

    /** Waits for a socket. Without a wait it may have none yet: then `fd` is -1. */
    result<connected> run(timeout wait = {})
    {
        return fill([&](auto out, auto err) { return byway_dial_run(get(), detail::milliseconds(wait), out, err); });
    }
    /** Readable when a step is due or a socket can be taken; the dial's own. */
    result<int> fd() const
    {
        return detail::value<std::int32_t>([&](auto out, auto err) { return byway_dial_fd(get(), out, err); });
    }
    /** Does what is due; OK: `take`, PENDING: go on watching. */
    result<void> step(span<const pollfd> ready = {})
    {
        return detail::call([&](auto err) { return byway_dial_step(get(), ready.data(), ready.size(), err); });
    }
    /** As `step` on a clock of the host's own, milliseconds since the first step. For tests and simulations. */
    result<void> step_at(std::chrono::milliseconds now, span<const pollfd> ready = {})
    {
        return detail::call([&](auto err) {
            return byway_dial_step_at(get(), static_cast<std::uint64_t>(now.count()), ready.data(), ready.size(), err);
        });
    }
    /** Until a step is due; none when only a descriptor can say. */
    timeout deadline() const noexcept
    {
        std::int64_t ms = -1;
        byway_dial_deadline_ms(get(), &ms);
        return detail::deadline(ms);
    }
    /** Every descriptor to watch now; `generation` changes with the set. */
    result<std::vector<pollfd>> pollset(std::uint64_t *generation = nullptr) const
    {
        std::vector<pollfd> all;
        auto done = detail::call([&](auto err) {
            return detail::fill(all, [&](auto *out, std::size_t cap, std::size_t *total) {
                return byway_dial_pollset(get(), out, sizeof(pollfd), cap, total, generation, err);
            });
        });
        if (!done)
            return done.error();
        return all;
    }
    /** The oldest event not fetched yet. None are kept without `BYWAY_DIAL_EVENTS`. */
    std::optional<dial_event> next_event()
    {
        dial_event out = {};
        if (byway_dial_next_event(get(), &out) != BYWAY_OK)
            return std::nullopt;
        return out;
    }
    /** Moves the connected socket out, once. */
    result<connected> take()
    {
        return fill([&](auto out, auto err) { return byway_dial_take(get(), out, err); });
    }
    /** The host is content with this attempt's socket, usually after TLS. */
    result<void> confirm(std::uint32_t attempt)
    {
        return detail::call([&](auto err) { return byway_dial_confirm(get(), attempt, err); });
    }
    /** The host could not use this attempt's socket (`BYWAY_RESUME_*`): go on, first with `follow_up` if there is one.
     */
    result<void> resume(std::uint32_t attempt, int reason, route_ref follow_up = {})
    {
        return detail::call([&](auto err) { return byway_dial_resume(get(), attempt, reason, follow_up.get(), err); });
    }
    /** Cancels for good. Any thread, also a signal handler. */
    void cancel() noexcept { byway_dial_cancel(get()); }
    /** The failed attempts so far. */
    std::vector<dial_failure> failures() const
    {
        std::vector<dial_failure> all;
        detail::fill(all, [&](auto *out, std::size_t cap, std::size_t *total) {
            return byway_dial_failures(get(), out, sizeof(dial_failure), cap, total);
        });
        return all;
    }
    /** The route of a failed attempt, by its position in `failures`; empty when no Selection could be made. */
    byway::route failure_route(std::size_t index) const noexcept
    {
        byway_route *out = nullptr;
        byway_dial_failure_route(get(), index, &out);
        return byway::route(out);
    }
    /** The waterfall, `BYWAY_FORMAT_*`. */
    result<std::string> explain(int format = BYWAY_FORMAT_TEXT) const
    {
        return detail::text([&](auto out, auto err) { return byway_dial_explain(get(), format, out, err); });
    }

private:
    template <class Call> result<connected> fill(Call &&run)
    {
        byway_connected out = {-1, 0, nullptr, 0, 0};
        auto done = detail::call([&](auto err) { return run(&out, err); });
        if (!done)
            return done.error();
        return connected{out.fd, byway::route(out.route), out.attempt, out.flags};
    }

    /* The set of a dial's hooks; nothing when there are none. */
    class callbacks {
    public:
        explicit callbacks(dial_hooks &&hooks)
        {
            if (!hooks.open_socket && !hooks.configure && !hooks.close_socket && !hooks.proxy_auth)
                return;
            any_ = true;
            auto *kept = new dial_hooks(std::move(hooks));
            set_.user_data = kept;
            set_.destroy = detail::destroy<dial_hooks>;
            if (kept->open_socket)
                set_.open_socket = [](void *user, std::int32_t family, std::int32_t protocol, const byway_route *over,
                                      std::int32_t *fd, const byway_call *) noexcept -> byway_status {
                    return detail::guarded([&] {
                        int opened = -1;
                        const byway_status status =
                            static_cast<dial_hooks *>(user)->open_socket(family, protocol, route_ref(over), opened);
                        *fd = opened;
                        return status;
                    });
                };
            if (kept->configure)
                set_.configure = [](void *user, std::int32_t fd, const byway_route *over,
                                    const byway_call *) noexcept -> byway_status {
                    return detail::guarded(
                        [&] { return static_cast<dial_hooks *>(user)->configure(fd, route_ref(over)); });
                };
            if (kept->close_socket)
                set_.close_socket = [](void *user, std::int32_t fd, const byway_call *) noexcept -> byway_status {
                    return detail::guarded([&] { return static_cast<dial_hooks *>(user)->close_socket(fd); });
                };
            if (kept->proxy_auth)
                set_.proxy_auth = [](void *user, byway_dial *of, std::uint32_t attempt, const byway_route *over,
                                     const byway_str *texts, std::size_t count,
                                     const byway_call *) noexcept -> byway_status {
                    return detail::guarded([&] {
                        std::vector<std::string_view> values;
                        for (std::size_t i = 0; i < count; ++i)
                            values.push_back(view(texts[i]));
                        return static_cast<dial_hooks *>(user)->proxy_auth(challenge(of, attempt), route_ref(over),
                                                                           span<const std::string_view>(values));
                    });
                };
        }
        const byway_dial_callbacks *get() const noexcept { return any_ ? &set_ : nullptr; }

    private:
        byway_dial_callbacks set_ = BYWAY_DIAL_CALLBACKS_INIT;
        bool any_ = false;
    };
};

} // namespace byway

#endif /* BYWAY_DIAL_HPP */
