/* byway for C++: who resolves names. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_DNS_HPP
#define BYWAY_DNS_HPP

#include "engine.hpp"

#include <functional>

namespace byway {

/** One HTTPS or SVCB record (RFC 9460). */
struct service_record {
    /** Empty means the name that was asked. */
    std::string_view target = {};
    std::uint16_t priority = 0;
    /** 0 when the record has none. */
    std::uint16_t port = 0;
    texts alpn = {};
    /** Encrypted ClientHello configuration list, bytes. */
    std::string_view ech = {};
    span<const ip> hints = {};
};

/** A question to a resolver, and the place for its answer. Copy it to answer after the callback has returned. */
class dns_request : public detail::shared<byway_dns_request, byway_dns_request_retain, byway_dns_request_release> {
public:
    using shared::shared;

    /** As the cancel callback names it. */
    std::uint64_t id() const noexcept { return byway_dns_request_id(get()); }
    /** Nobody waits for the answer any more. */
    bool canceled() const noexcept { return byway_dns_request_is_canceled(get()) == 1; }
    /** Adds addresses behind those already there, all or none. */
    result<void> add(span<const ip> ips)
    {
        return detail::settle(byway_dns_request_add(get(), detail::raw(ips), ips.size()));
    }
    result<void> add(const ip &one) { return add(span<const ip>(&one, 1)); }
    /** Addresses as text, separated by white space or commas. */
    result<void> add(std::string_view ips)
    {
        return detail::call([&](auto err) { return byway_dns_request_add_text(get(), ips.data(), ips.size(), err); });
    }
    result<void> add(const char *ips) { return add(std::string_view(ips)); }
    result<void> add_service(const service_record &record)
    {
        byway_service_options options = BYWAY_SERVICE_OPTIONS_INIT;
        options.target = str(record.target);
        options.priority = record.priority;
        options.port = record.port;
        options.alpn = record.alpn.data();
        options.alpn_len = record.alpn.size();
        options.ech = str(record.ech);
        options.hints = detail::raw(record.hints);
        options.hints_len = record.hints.size();
        return detail::call([&](auto err) { return byway_dns_request_add_service(get(), &options, err); });
    }
    /** Every address of this family (4 or 6) has been added. */
    result<void> family_done(int family) { return detail::settle(byway_dns_request_family_done(get(), family)); }
    /** The answer is complete. The first end wins. */
    result<void> finish() { return detail::settle(byway_dns_request_finish(get())); }
    /** The lookup failed; what was added before still counts. */
    result<void> fail(std::string_view message, byway_status code = BYWAY_E_UNKNOWN_HOST, std::int64_t host_code = 0)
    {
        return detail::settle(byway_dns_request_fail(get(), code, host_code, message.data(), message.size()));
    }
};

/** Told that nobody waits for a request (by its id) any more; must not throw. */
using canceled = std::function<void(std::uint64_t request_id)>;

namespace detail {
/** A callback may take the call it serves as its last argument, or leave it out. */
template <class F, class Request>
byway_status answer(F &answerer, Request &request, std::string_view about, const byway_call *raw)
{
    if constexpr (std::is_invocable_v<F &, Request &, std::string_view, const byway::call &>)
        return static_cast<byway_status>(answerer(request, about, byway::call(raw)));
    else
        return static_cast<byway_status>(answerer(request, about));
}
} // namespace detail

/** Who resolves names. */
class dns : public detail::shared<byway_dns, byway_dns_retain, byway_dns_release> {
public:
    using shared::shared;

    /** `lookup(dns_request &, std::string_view host[, const call &])` returns BYWAY_OK when answered, BYWAY_PENDING
     * when a copy of the request will be, BYWAY_PASS for the system's resolver, or an error. */
    template <class F> static result<dns> make(const engine &owner, F lookup, canceled on_cancel = {})
    {
        struct both {
            F lookup;
            canceled on_cancel;
        };
        byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
        set.user_data = new both{std::move(lookup), std::move(on_cancel)};
        set.destroy = detail::destroy<both>;
        set.lookup = [](void *user, byway_dns_request *request, const char *host, std::size_t len,
                        const byway_call *raw) noexcept -> byway_status {
            dns_request asked(byway_dns_request_retain(request));
            return detail::guarded(
                [&] {
                    return detail::answer(static_cast<both *>(user)->lookup, asked, {host, len}, raw);
                },
                [&](const char *what) {
                    // The request has the words then, and is over.
                    return byway_dns_request_fail(request, BYWAY_E_HOST, 0, what, BYWAY_NUL) == BYWAY_OK ? BYWAY_OK
                                                                                                         : BYWAY_E_HOST;
                });
        };
        set.on_cancel = [](void *user, std::uint64_t id) noexcept {
            if (auto &told = static_cast<both *>(user)->on_cancel)
                told(id);
        };
        return detail::make<dns>([&](auto out, auto err) { return byway_dns_new(owner.get(), &set, out, err); });
    }
    /** Asks the system (`getaddrinfo`) on byway's own threads. */
    static result<dns> system(const engine &owner)
    {
        return detail::make<dns>([&](auto out, auto err) { return byway_dns_new_system(owner.get(), out, err); });
    }
    /** Hosts-file text: lines of an address and its names. Names that are not listed do not exist. */
    static result<dns> hosts(const engine &owner, std::string_view text)
    {
        return detail::make<dns>(
            [&](auto out, auto err) { return byway_dns_new_hosts(owner.get(), text.data(), text.size(), out, err); });
    }
};

} // namespace byway

#endif /* BYWAY_DNS_HPP */
