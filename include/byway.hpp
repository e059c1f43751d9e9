/*
 * byway for C++17 and later: owners for the handles of byway.h, lambdas for its callbacks, results for its statuses.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shared handles copy (one more reference) and move; exclusive ones only move. Every call that can fail returns
 * `byway::result<T>`. Who prefers exceptions asks for `.value()`, which throws `byway::exception`; without exceptions
 * (`-fno-exceptions`) `.value()` on a failure ends the program, so ask first.
 *
 * A callback that throws counts as failed; what it threw is in `error::thrown()` of the call that led to it, and
 * `.value()` throws it on.
 */
#ifndef BYWAY_HPP
#define BYWAY_HPP

#include "byway.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#if defined(__cpp_exceptions)
#define BYWAY_HAS_EXCEPTIONS 1
#else
#define BYWAY_HAS_EXCEPTIONS 0
#endif

namespace byway {

inline std::string_view view(byway_str text) noexcept { return {text.data ? text.data : "", text.len}; }
inline byway_str str(std::string_view text) noexcept { return {text.data(), text.size()}; }

/** What a callback threw on this thread, until the call that led to it takes it. */
inline std::exception_ptr &thrown_here() noexcept
{
    static thread_local std::exception_ptr pending;
    return pending;
}

/** Why a call failed: everything `byway_error` knows, as values. */
class error {
public:
    error() = default;
    explicit error(byway_status code) : code_(code), message_(byway_status_message(code)) {}

    /** Reads and frees an error object; without one only the status is known. */
    static error take(byway_status status, byway_error *object)
    {
        error made = object ? read(object) : error(status);
        byway_error_free(object);
        made.thrown_ = std::exchange(thrown_here(), nullptr);
        return made;
    }

    byway_status code() const noexcept { return code_; }
    const char *name() const noexcept { return byway_status_name(code_); }
    const std::string &message() const noexcept { return message_; }
    const std::string &subject() const noexcept { return subject_; }
    std::int64_t offset() const noexcept { return offset_; }
    std::uint32_t line() const noexcept { return line_; }
    std::uint32_t column() const noexcept { return column_; }
    int os_errno() const noexcept { return os_errno_; }
    std::int64_t host_code() const noexcept { return host_code_; }
    const std::vector<error> &causes() const noexcept { return causes_; }
    /** What a callback threw, if that was it. */
    const std::exception_ptr &thrown() const noexcept { return thrown_; }

    /** One line for people. */
    std::string what() const
    {
        std::string out = subject_.empty() ? std::string() : subject_ + ": ";
        if (line_ != 0)
            out += "line " + std::to_string(line_) + ", column " + std::to_string(column_) + ": ";
        return out + message_;
    }

private:
    static error read(const byway_error *object)
    {
        error made;
        byway_str text;
        made.code_ = byway_error_code(object);
        byway_error_message(object, &text);
        made.message_ = view(text);
        byway_error_subject(object, &text);
        made.subject_ = view(text);
        made.offset_ = byway_error_offset(object);
        made.line_ = byway_error_line(object);
        made.column_ = byway_error_column(object);
        made.os_errno_ = byway_error_os_errno(object);
        made.host_code_ = byway_error_host_code(object);
        for (std::size_t i = 0; i < byway_error_cause_count(object); ++i)
            made.causes_.push_back(read(byway_error_cause_at(object, i)));
        return made;
    }

    byway_status code_ = BYWAY_OK;
    std::string message_, subject_;
    std::int64_t offset_ = -1, host_code_ = 0;
    std::uint32_t line_ = 0, column_ = 0;
    int os_errno_ = 0;
    std::vector<error> causes_;
    std::exception_ptr thrown_;
};

#if BYWAY_HAS_EXCEPTIONS
/** What `.value()` throws. */
class exception : public std::exception {
public:
    explicit exception(byway::error why) : why_(std::move(why)), text_(why_.what()) {}
    const char *what() const noexcept override { return text_.c_str(); }
    const byway::error &error() const noexcept { return why_; }

private:
    byway::error why_;
    std::string text_;
};
#endif

namespace detail {
[[noreturn]] inline void raise(const error &why)
{
#if BYWAY_HAS_EXCEPTIONS
    if (why.thrown())
        std::rethrow_exception(why.thrown());
    throw exception(why);
#else
    (void)why;
    std::abort();
#endif
}
}  // namespace detail

/** A value, or why there is none. */
template <class T> class [[nodiscard]] result {
public:
    result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    result(byway::error why) : state_(std::in_place_index<1>, std::move(why)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    const byway::error &error() const { return std::get<1>(state_); }

    T &value() &
    {
        if (!has_value())
            detail::raise(error());
        return *std::get_if<0>(&state_);
    }
    T value() && { return std::move(static_cast<result &>(*this).value()); }
    T &operator*() noexcept { return *std::get_if<0>(&state_); }
    T *operator->() noexcept { return std::get_if<0>(&state_); }

private:
    std::variant<T, byway::error> state_;
};

/** Success, or why not; `status()` tells OK, DONE and PENDING apart. */
template <> class [[nodiscard]] result<void> {
public:
    result(byway_status status) : status_(status) {}
    result(byway::error why) : status_(why.code()), why_(std::move(why)) {}

    byway_status status() const noexcept { return status_; }
    bool has_value() const noexcept { return status_ >= 0; }
    explicit operator bool() const noexcept { return has_value(); }
    const byway::error &error() const { return why_; }
    void value() const
    {
        if (!has_value())
            detail::raise(why_);
    }

private:
    byway_status status_;
    byway::error why_;
};

namespace detail {

/** Runs a call with a place for its error. */
template <class Call> result<void> call(Call &&run)
{
    byway_error *object = nullptr;
    byway_status status = run(&object);
    if (status < 0)
        return error::take(status, object);
    return status;
}

inline result<void> plain(byway_status status)
{
    if (status < 0)
        return error::take(status, nullptr);
    return status;
}

/** Runs a call that gives a handle. */
template <class Owner, class Call> result<Owner> make(Call &&run)
{
    typename Owner::pointer out = nullptr;
    byway_error *object = nullptr;
    byway_status status = run(&out, &object);
    if (status < 0)
        return error::take(status, object);
    return Owner(out);
}

/** Runs a call that gives a text. */
template <class Call> result<std::string> text(Call &&run)
{
    byway_text *out = nullptr;
    byway_error *object = nullptr;
    byway_status status = run(&out, &object);
    if (status < 0)
        return error::take(status, object);
    byway_str shown;
    byway_text_str(out, &shown);
    std::string copy(view(shown));
    byway_text_free(out);
    return copy;
}

/** A reference to a shared handle. */
template <class T, auto Retain, auto Release> class shared {
public:
    using pointer = T *;
    shared() = default;
    /** Takes one reference over. */
    explicit shared(T *owned) noexcept : handle_(owned) {}
    shared(const shared &other) noexcept : handle_(other.handle_ ? Retain(other.handle_) : nullptr) {}
    shared(shared &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    shared &operator=(shared other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~shared() { Release(handle_); }
    T *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    T *handle_ = nullptr;
};

/** The owner of an exclusive handle. */
template <class T, auto Free> class unique {
public:
    using pointer = T *;
    unique() = default;
    explicit unique(T *owned) noexcept : handle_(owned) {}
    unique(const unique &) = delete;
    unique &operator=(const unique &) = delete;
    unique(unique &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    unique &operator=(unique &&other) noexcept
    {
        if (this != &other) {
            Free(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~unique() { Free(handle_); }
    T *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    T *handle_ = nullptr;
};

/** Runs host code so that nothing crosses into the library. */
template <class R, class Body> R guarded(R otherwise, Body &&body) noexcept
{
#if BYWAY_HAS_EXCEPTIONS
    try {
        return body();
    } catch (...) {
        thrown_here() = std::current_exception();
        return otherwise;
    }
#else
    (void)otherwise;
    return body();
#endif
}

template <class F> void destroy(void *user_data) noexcept { delete static_cast<F *>(user_data); }

inline std::int64_t milliseconds(std::optional<std::chrono::milliseconds> timeout) noexcept
{
    return timeout ? static_cast<std::int64_t>(timeout->count()) : -1;
}

}  // namespace detail

/** Time limits; none means the engine's default. */
using timeout = std::optional<std::chrono::milliseconds>;

class queue : public detail::shared<byway_queue, byway_queue_retain, byway_queue_release> {
public:
    using shared::shared;

    static result<queue> make(const byway_queue_options *options = nullptr)
    {
        return detail::make<queue>([&](auto out, auto err) { return byway_queue_new(options, out, err); });
    }
    result<int> fd() const
    {
        std::int32_t out = -1;
        byway_status status = byway_queue_fd(get(), &out);
        if (status < 0)
            return error::take(status, nullptr);
        return static_cast<int>(out);
    }
    /** Runs queued callbacks and appends the records that were there. */
    result<void> poll(std::vector<byway_completion> &records, timeout wait = std::chrono::milliseconds(0))
    {
        byway_completion room[64];
        std::size_t n = 0;
        auto done = detail::call([&](auto err) {
            return byway_queue_poll(get(), detail::milliseconds(wait), room, sizeof room[0], 64, &n, err);
        });
        records.insert(records.end(), room, room + n);
        return done;
    }
    result<void> wakeup() { return detail::plain(byway_queue_wakeup(get())); }
};

class route : public detail::shared<byway_route, byway_route_retain, byway_route_release> {
public:
    using shared::shared;

    /** One more reference to a borrowed route. */
    static route keep(const byway_route *borrowed) noexcept { return route(byway_route_retain(borrowed)); }

    /** Fills a `sockaddr` for `connect(2)`; returns its length. */
    result<std::size_t> sockaddr(void *out, std::size_t cap) const
    {
        std::size_t len = 0;
        byway_status status = byway_route_sockaddr(get(), out, cap, &len);
        if (status < 0)
            return error::take(status, nullptr);
        return len;
    }
    int proxy_kind() const noexcept { return byway_route_proxy_kind(get()); }
    bool requires_tunnel() const noexcept { return byway_route_requires_tunnel(get()) == 1; }
    bool postponed() const noexcept { return (byway_route_flags(get()) & BYWAY_ROUTE_POSTPONED) != 0; }
    result<std::string> text() const
    {
        return detail::text([&](auto out, auto err) { return byway_route_text(get(), out, err); });
    }
    friend bool operator==(const route &a, const route &b) noexcept { return byway_route_equals(a.get(), b.get()) == 1; }
    friend bool operator!=(const route &a, const route &b) noexcept { return !(a == b); }
};

class filter : public detail::shared<byway_filter, byway_filter_retain, byway_filter_release> {
public:
    using shared::shared;

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
};

class proxy : public detail::shared<byway_proxy, byway_proxy_retain, byway_proxy_release> {
public:
    using shared::shared;

    static result<proxy> make(int kind, std::string_view host, int port)
    {
        return detail::make<proxy>(
            [&](auto out, auto err) { return byway_proxy_new(kind, host.data(), host.size(), port, out, err); });
    }
    result<proxy> with_credentials(std::string_view user, std::string_view password) const
    {
        return detail::make<proxy>([&](auto out, auto err) {
            return byway_proxy_with_credentials(get(), user.data(), user.size(), password.data(), password.size(), out,
                                                err);
        });
    }
    int kind() const noexcept { return byway_proxy_kind(get()); }
    int port() const noexcept { return byway_proxy_port(get()); }
    std::string host() const
    {
        byway_str out = {nullptr, 0};
        byway_proxy_host(get(), &out);
        return std::string(view(out));
    }
};

/** What a listener is told; valid until it returns. */
using event = byway_event;

class listener : public detail::shared<byway_listener, byway_listener_retain, byway_listener_release> {
public:
    using shared::shared;
    void remove() { byway_listener_remove(get()); }
};

class engine : public detail::shared<byway_engine, byway_engine_retain, byway_engine_release> {
public:
    using shared::shared;

    static result<engine> make(const byway_engine_options *options = nullptr)
    {
        return detail::make<engine>([&](auto out, auto err) { return byway_engine_new(options, out, err); });
    }
    /** After OK no callback and no destructor of a callback runs; PENDING: call again. */
    result<void> shutdown(timeout wait = {})
    {
        return detail::call([&](auto err) { return byway_engine_shutdown(get(), detail::milliseconds(wait), err); });
    }
    result<void> connected(const route &which) { return detail::plain(byway_engine_connected(get(), which.get())); }
    result<void> connect_failed(const route &which, int failure, int os_errno = 0, int phase = BYWAY_PHASE_TCP)
    {
        return detail::call([&](auto err) {
            return byway_engine_connect_failed(get(), which.get(), failure, phase, os_errno, err);
        });
    }
    bool should_postpone(const route &which) const noexcept
    {
        std::int32_t out = 0;
        return byway_engine_should_postpone(get(), which.get(), &out) == BYWAY_OK && out != 0;
    }
    result<std::uint64_t> network_changed()
    {
        std::uint64_t generation = 0;
        byway_status status = byway_engine_network_changed(get(), &generation);
        if (status < 0)
            return error::take(status, nullptr);
        return generation;
    }
    result<std::string> export_database() const
    {
        return detail::text([&](auto out, auto err) { return byway_engine_database_export(get(), out, err); });
    }
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
    /** `on_event(const event &)`; `mask` has bit `1 << BYWAY_EVENT_*` for each kind wanted. */
    template <class F> result<listener> listen(F on_event, std::uint64_t mask = UINT64_MAX)
    {
        byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
        set.user_data = new F(std::move(on_event));
        set.destroy = detail::destroy<F>;
        set.mask = mask;
        set.on_event = [](void *user, const byway_event *what) noexcept {
            detail::guarded(0, [&] { return (*static_cast<F *>(user))(*what), 0; });
        };
        return detail::make<listener>([&](auto out, auto err) { return byway_engine_add_listener(get(), &set, out, err); });
    }
};

/** A question to a resolver, and the place for its answer. Copy it to answer after the callback has returned. */
class dns_request : public detail::shared<byway_dns_request, byway_dns_request_retain, byway_dns_request_release> {
public:
    using shared::shared;

    bool canceled() const noexcept { return byway_dns_request_is_canceled(get()) == 1; }
    /** Addresses as text, separated by spaces. */
    result<void> add(std::string_view ips)
    {
        return detail::call(
            [&](auto err) { return byway_dns_request_add_text(get(), ips.data(), ips.size(), err); });
    }
    result<void> finish() { return detail::plain(byway_dns_request_finish(get())); }
    result<void> fail(std::string_view message, byway_status code = BYWAY_E_UNKNOWN_HOST, std::int64_t host_code = 0)
    {
        return detail::plain(byway_dns_request_fail(get(), code, host_code, message.data(), message.size()));
    }
};

class dns : public detail::shared<byway_dns, byway_dns_retain, byway_dns_release> {
public:
    using shared::shared;

    /** `lookup(dns_request &, std::string_view host)` returns BYWAY_OK when answered, BYWAY_PENDING when a copy of the
     * request will be, BYWAY_PASS for the system's resolver, or an error. */
    template <class F> static result<dns> make(const engine &owner, F lookup)
    {
        byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
        set.user_data = new F(std::move(lookup));
        set.destroy = detail::destroy<F>;
        set.lookup = [](void *user, byway_dns_request *request, const char *host, std::size_t len,
                        const byway_call *) noexcept -> byway_status {
            return detail::guarded(BYWAY_E_HOST, [&]() -> byway_status {
                dns_request asked(byway_dns_request_retain(request));
                return (*static_cast<F *>(user))(asked, std::string_view(host, len));
            });
        };
        return detail::make<dns>([&](auto out, auto err) { return byway_dns_new(owner.get(), &set, out, err); });
    }
    static result<dns> system(const engine &owner)
    {
        return detail::make<dns>([&](auto out, auto err) { return byway_dns_new_system(owner.get(), out, err); });
    }
    static result<dns> hosts(const engine &owner, std::string_view text)
    {
        return detail::make<dns>(
            [&](auto out, auto err) { return byway_dns_new_hosts(owner.get(), text.data(), text.size(), out, err); });
    }
};

class proxy_request
    : public detail::shared<byway_proxy_request, byway_proxy_request_retain, byway_proxy_request_release> {
public:
    using shared::shared;

    result<void> add(const proxy &which) { return detail::plain(byway_proxy_request_add_proxy(get(), which.get())); }
    result<void> add(int kind, std::string_view host, int port)
    {
        return detail::call([&](auto err) {
            return byway_proxy_request_add(get(), kind, host.data(), host.size(), port, err);
        });
    }
    result<void> add_direct() { return detail::plain(byway_proxy_request_add_direct(get())); }
    result<void> finish() { return detail::plain(byway_proxy_request_finish(get())); }
    result<void> fail(std::string_view message, byway_status code = BYWAY_E_PROXY_SELECTOR)
    {
        return detail::plain(byway_proxy_request_fail(get(), code, 0, message.data(), message.size()));
    }
};

class proxy_selector
    : public detail::shared<byway_proxy_selector, byway_proxy_selector_retain, byway_proxy_selector_release> {
public:
    using shared::shared;

    /** Told of failures of what was chosen. */
    using failed = std::function<void(std::string_view uri, const byway_route *route, int failure)>;

    /** `select(proxy_request &, std::string_view uri)` returns a status as `dns::make`'s `lookup`. */
    template <class F> static result<proxy_selector> make(const engine &owner, F select, failed connect_failed = {})
    {
        using Both = std::pair<F, failed>;
        byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
        set.user_data = new Both(std::move(select), std::move(connect_failed));
        set.destroy = detail::destroy<Both>;
        set.select = [](void *user, byway_proxy_request *request, const char *uri, std::size_t len,
                        const byway_call *) noexcept -> byway_status {
            return detail::guarded(BYWAY_E_HOST, [&]() -> byway_status {
                proxy_request asked(byway_proxy_request_retain(request));
                return static_cast<Both *>(user)->first(asked, std::string_view(uri, len));
            });
        };
        set.connect_failed = [](void *user, const char *uri, std::size_t len, const byway_route *which,
                                std::int32_t failure, std::int32_t, const byway_call *) noexcept {
            auto &told = static_cast<Both *>(user)->second;
            if (told)
                detail::guarded(0, [&] { return told(std::string_view(uri, len), which, failure), 0; });
        };
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new(owner.get(), &set, out, err); });
    }
    static result<proxy_selector> direct(const engine &owner)
    {
        return detail::make<proxy_selector>(
            [&](auto out, auto err) { return byway_proxy_selector_new_direct(owner.get(), out, err); });
    }
};

/** What an address is made from. */
struct address_options {
    std::string_view host;
    int port = 0;
    bool tls = false;
    std::string_view scheme = {};
    const byway::proxy *proxy = nullptr;
    const byway::proxy_selector *proxy_selector = nullptr;
    const byway::dns *dns = nullptr;
    std::uint64_t tls_identity = 0;
};

class address : public detail::shared<byway_address, byway_address_retain, byway_address_release> {
public:
    using shared::shared;

    static result<address> make(const engine &owner, const address_options &from)
    {
        byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
        options.scheme = str(from.scheme);
        options.host = str(from.host);
        options.port = from.port;
        options.flags = from.tls ? BYWAY_ADDRESS_TLS : 0;
        options.proxy = from.proxy ? from.proxy->get() : nullptr;
        options.proxy_selector = from.proxy_selector ? from.proxy_selector->get() : nullptr;
        options.dns = from.dns ? from.dns->get() : nullptr;
        options.tls_identity = from.tls_identity;
        return detail::make<address>(
            [&](auto out, auto err) { return byway_address_new(owner.get(), &options, out, err); });
    }
    std::string host() const
    {
        byway_str out = {nullptr, 0};
        byway_address_host(get(), &out);
        return std::string(view(out));
    }
    int port() const noexcept { return byway_address_port(get()); }
    friend bool operator==(const address &a, const address &b) noexcept
    {
        return byway_address_equals(a.get(), b.get()) == 1;
    }
};

/** Routes to try now; iterates over borrowed routes, `route::keep` keeps one. */
class selection : public detail::unique<byway_selection, byway_selection_free> {
public:
    using unique::unique;

    std::size_t size() const noexcept { return byway_selection_len(get()); }
    const byway_route *operator[](std::size_t i) const noexcept { return byway_selection_at(get(), i); }

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = route;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = route;
        iterator(const selection *of, std::size_t at) noexcept : of_(of), at_(at) {}
        route operator*() const noexcept { return route::keep((*of_)[at_]); }
        iterator &operator++() noexcept { return ++at_, *this; }
        friend bool operator==(iterator a, iterator b) noexcept { return a.at_ == b.at_; }
        friend bool operator!=(iterator a, iterator b) noexcept { return a.at_ != b.at_; }

    private:
        const selection *of_;
        std::size_t at_;
    };
    iterator begin() const noexcept { return {this, 0}; }
    iterator end() const noexcept { return {this, size()}; }
};

class selector : public detail::unique<byway_selector, byway_selector_free> {
public:
    using unique::unique;

    static result<selector> make(const engine &owner, const address &where,
                                 const byway_selector_options *options = nullptr)
    {
        return detail::make<selector>(
            [&](auto out, auto err) { return byway_selector_new(owner.get(), where.get(), options, out, err); });
    }
    /** The next Selection; an empty owner when nothing is left. */
    result<selection> next(timeout wait = {})
    {
        return detail::make<selection>([&](auto out, auto err) {
            return byway_selector_next(get(), detail::milliseconds(wait), out, err);
        });
    }
    /** As `next` without waiting; `pending` says that a record will come. */
    result<selection> poll(bool &pending)
    {
        pending = false;
        return detail::make<selection>([&](auto out, auto err) {
            byway_status status = byway_selector_poll_next(get(), out, err);
            pending = status == BYWAY_PENDING;
            return status;
        });
    }
    bool may_have_next() const noexcept { return byway_selector_may_have_next(get()) == 1; }
    void cancel() noexcept { byway_selector_cancel(get()); }
    result<std::string> explain(int format = BYWAY_EXPLAIN_TEXT) const
    {
        return detail::text([&](auto out, auto err) { return byway_selector_explain(get(), format, out, err); });
    }
};

/** A connected socket and the route it leads over. Whoever takes it closes it. */
struct connected {
    int fd = -1;
    byway::route route;
    std::uint32_t attempt = 0;
    std::uint32_t flags = 0;
};

class dial : public detail::unique<byway_dial, byway_dial_free> {
public:
    using unique::unique;

    /** The selector belongs to the dial until that is gone. */
    static result<dial> make(const engine &owner, selector &over, const byway_dial_options *options = nullptr)
    {
        return detail::make<dial>(
            [&](auto out, auto err) { return byway_dial_new(owner.get(), over.get(), options, nullptr, out, err); });
    }
    /** Waits for a socket. */
    result<connected> run(timeout wait = {})
    {
        byway_connected out;
        byway_error *object = nullptr;
        byway_status status = byway_dial_run(get(), detail::milliseconds(wait), &out, &object);
        if (status < 0)
            return error::take(status, object);
        return connected{out.fd, byway::route(out.route), out.attempt, out.flags};
    }
    result<int> fd() const
    {
        std::int32_t out = -1;
        auto done = detail::call([&](auto err) { return byway_dial_fd(get(), &out, err); });
        if (!done)
            return done.error();
        return static_cast<int>(out);
    }
    /** Does what is due; OK: `take`, PENDING: watch `fd`. */
    result<void> step()
    {
        return detail::call([&](auto err) { return byway_dial_step(get(), nullptr, 0, err); });
    }
    result<connected> take()
    {
        byway_connected out;
        byway_error *object = nullptr;
        byway_status status = byway_dial_take(get(), &out, &object);
        if (status < 0)
            return error::take(status, object);
        return connected{out.fd, byway::route(out.route), out.attempt, out.flags};
    }
    void cancel() noexcept { byway_dial_cancel(get()); }
    result<std::string> explain(int format = BYWAY_EXPLAIN_TEXT) const
    {
        return detail::text([&](auto out, auto err) { return byway_dial_explain(get(), format, out, err); });
    }
};

class invokers : public detail::shared<byway_invokers, byway_invokers_retain, byway_invokers_release> {
public:
    using shared::shared;

    /** `tags` empty: the row is the number. */
    static result<invokers> make(const engine &owner, const std::vector<std::string> &urls,
                                 const std::vector<std::uint64_t> &tags = {}, std::uint32_t flags = 0)
    {
        std::vector<byway_str> texts;
        texts.reserve(urls.size());
        for (const auto &url : urls)
            texts.push_back(str(url));
        if (!tags.empty() && tags.size() != urls.size())
            return error(BYWAY_E_ARGUMENT);
        return detail::make<invokers>([&](auto out, auto err) {
            return byway_invokers_new(owner.get(), texts.data(), tags.empty() ? nullptr : tags.data(), texts.size(),
                                      flags, nullptr, out, err);
        });
    }
    std::size_t size() const noexcept { return byway_invokers_len(get()); }
};

/** A call. The texts it was given are borrowed: they must live as long as it is used. */
class invocation : public detail::unique<byway_invocation, byway_invocation_free> {
public:
    using unique::unique;

    static result<invocation> make(std::string_view method = {})
    {
        auto made = detail::make<invocation>([](auto out, auto err) { return byway_invocation_new(out, err); });
        if (made && !method.empty())
            byway_invocation_set_method(made->get(), method.data(), method.size());
        return made;
    }
    result<void> method(std::string_view name)
    {
        return detail::plain(byway_invocation_set_method(get(), name.data(), name.size()));
    }
    result<void> attachment(std::string_view key, std::string_view value)
    {
        return detail::plain(
            byway_invocation_set_attachment(get(), key.data(), key.size(), value.data(), value.size()));
    }
};

class choice : public detail::unique<byway_choice, byway_choice_free> {
public:
    using unique::unique;

    std::vector<std::uint64_t> tags() const
    {
        std::vector<std::uint64_t> out(byway_choice_len(get()));
        std::size_t total = 0;
        byway_choice_tags(get(), out.data(), out.size(), &total);
        return out;
    }
};

class chain : public detail::shared<byway_chain, byway_chain_retain, byway_chain_release> {
public:
    using shared::shared;

    static result<chain> make(const engine &owner, std::string_view consumer_url,
                              const byway_chain_options *options = nullptr)
    {
        return detail::make<chain>([&](auto out, auto err) {
            return byway_chain_new(owner.get(), consumer_url.data(), consumer_url.size(), options, out, err);
        });
    }
    result<void> set_invokers(const invokers &list)
    {
        return detail::call([&](auto err) { return byway_chain_set_invokers(get(), list.get(), nullptr, err); });
    }
    result<choice> route(const invocation &call) const
    {
        return detail::make<choice>([&](auto out, auto err) { return byway_chain_route(get(), call.get(), out, err); });
    }
    result<byway_picked> pick(const invocation &call, const byway_pick_options *options = nullptr)
    {
        byway_picked out;
        auto done = detail::call([&](auto err) { return byway_chain_pick(get(), call.get(), options, &out, err); });
        if (!done)
            return done.error();
        return out;
    }
    result<void> pick_end(const byway_picked &picked, bool ok, std::chrono::nanoseconds latency)
    {
        return detail::plain(byway_chain_pick_end(get(), picked.ticket, ok ? 1 : 0, latency.count()));
    }
    result<std::string> explain(const invocation &call, int format = BYWAY_EXPLAIN_TEXT) const
    {
        return detail::text(
            [&](auto out, auto err) { return byway_chain_explain(get(), call.get(), format, out, err); });
    }
};

/** Belongs to the thread that made it. */
class session : public detail::unique<byway_session, byway_session_free> {
public:
    using unique::unique;

    static result<session> make(const chain &over)
    {
        return detail::make<session>([&](auto out, auto err) { return byway_session_new(over.get(), out, err); });
    }
    /** Shows the result until the session's next call. */
    result<const byway_choice *> route(const invocation &call)
    {
        const byway_choice *out = nullptr;
        auto done = detail::call([&](auto err) { return byway_session_route(get(), call.get(), &out, err); });
        if (!done)
            return done.error();
        return out;
    }
};

}  // namespace byway

#endif /* BYWAY_HPP */
