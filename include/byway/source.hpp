/* byway for C++: where rules and provider lists come from. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_SOURCE_HPP
#define BYWAY_SOURCE_HPP

#include "chain.hpp"

namespace byway {

/** How a ZooKeeper ensemble is reached; the fields are `byway_zookeeper_options`', texts by `str`. */
struct zookeeper_options : byway_zookeeper_options {
    zookeeper_options() noexcept : byway_zookeeper_options BYWAY_ZOOKEEPER_OPTIONS_INIT {}
};

/** How a chain is bound; the fields are `byway_bind_options`', the queue by `.get()`. */
struct bind_options : byway_bind_options {
    bind_options() noexcept : byway_bind_options BYWAY_BIND_OPTIONS_INIT {}
};

/** How a source stands, and its last complaint. */
struct source_state : byway_source_state {
    source_state() noexcept : byway_source_state BYWAY_SOURCE_STATE_INIT {}
    /** Stays when things are right again. */
    std::optional<error> last_error;
};

/** One change of a memory source. */
struct source_change {
    std::string_view key;
    /** None: the key is removed. */
    std::optional<std::string_view> text;
};

/** One event of a bound chain. Everything is borrowed until the callback returns. */
class source_event {
public:
    explicit source_event(const byway_source_event &raw) noexcept : raw_(raw) {}
    /** `BYWAY_SOURCE_EVENT_*`. */
    int kind() const noexcept { return raw_.kind; }
    byway_status status() const noexcept { return raw_.status; }
    /** Worlds put in force so far. */
    std::uint64_t worlds() const noexcept { return raw_.worlds; }
    /** What was refused, or empty. */
    std::string_view subject() const noexcept { return view(raw_.subject); }
    std::optional<byway::error> error() const
    {
        return raw_.error ? std::optional<byway::error>(byway::error::copy(raw_.error)) : std::nullopt;
    }

private:
    const byway_source_event &raw_;
};

/** Where rules and provider lists come from. */
class source : public detail::shared<byway_source, byway_source_retain, byway_source_release> {
public:
    using shared::shared;

    /** One the host fills itself. */
    static result<source> memory(const engine &owner)
    {
        return detail::make<source>([&](auto out, auto err) { return byway_source_new_memory(owner.get(), out, err); });
    }
    /** A directory in Dubbo's layout, or one file; `key` says what a single file holds. */
    static result<source> file(const engine &owner, std::string_view path, std::string_view key = {})
    {
        return detail::make<source>([&](auto out, auto err) {
            return byway_source_new_file(owner.get(), path.data(), path.size(), key.data(), key.size(), out, err);
        });
    }
    /** `host:port,host:port/chroot`, or Dubbo's `zookeeper://...`. */
    static result<source> zookeeper(const engine &owner, std::string_view servers,
                                    const byway_zookeeper_options &options = zookeeper_options())
    {
        return detail::make<source>([&](auto out, auto err) {
            return byway_source_new_zookeeper(owner.get(), servers.data(), servers.size(), &options, out, err);
        });
    }
    /** Sets one key of a memory source; when it returns, bound chains route by it. */
    result<void> put(std::string_view key, std::string_view text)
    {
        return detail::call(
            [&](auto err) { return byway_source_put(get(), key.data(), key.size(), text.data(), text.size(), err); });
    }
    result<void> remove(std::string_view key)
    {
        return detail::call([&](auto err) { return byway_source_remove(get(), key.data(), key.size(), err); });
    }
    /** Several changes of a memory source as one moment. */
    result<void> apply(span<const source_change> changes)
    {
        std::vector<byway_source_change> all;
        all.reserve(changes.size());
        for (const source_change &one : changes)
            all.push_back({str(one.key), str(one.text.value_or("")), one.text ? 0 : 1, 0});
        return detail::call([&](auto err) { return byway_source_apply(get(), all.data(), all.size(), err); });
    }
    /** What it holds under a key, read now if nobody follows it. */
    result<std::string> get_text(std::string_view key, timeout wait = {}) const
    {
        return detail::text([&](auto out, auto err) {
            return byway_source_get(get(), key.data(), key.size(), detail::milliseconds(wait), out, err);
        });
    }
    result<source_state> status() const
    {
        source_state out;
        byway_error *last = nullptr;
        auto done = detail::call([&](auto err) { return byway_source_status(get(), &out, &last, err); });
        if (last) {
            out.last_error = error::copy(last);
            byway_error_free(last);
        }
        if (!done)
            return done.error();
        return out;
    }
};

template <class F, class>
result<void> chain::bind(const source &from, const bind_options &options, F on_event, timeout wait)
{
    byway_source_callbacks set = BYWAY_SOURCE_CALLBACKS_INIT;
    set.user_data = new F(std::move(on_event));
    set.destroy = detail::destroy<F>;
    set.on_event = [](void *user, const byway_source_event *what) noexcept {
        (*static_cast<F *>(user))(source_event(*what));
    };
    return detail::call([&](auto err) {
        return byway_chain_bind_source(get(), from.get(), &options, &set, detail::milliseconds(wait), err);
    });
}

inline result<void> chain::bind(const source &from, const bind_options &options, timeout wait)
{
    return detail::call([&](auto err) {
        return byway_chain_bind_source(get(), from.get(), &options, nullptr, detail::milliseconds(wait), err);
    });
}

inline result<void> chain::bind(const source &from, timeout wait) { return bind(from, bind_options(), wait); }

inline result<void> chain::unbind()
{
    return detail::call([&](auto err) { return byway_chain_bind_source(get(), nullptr, nullptr, nullptr, 0, err); });
}

} // namespace byway

#endif /* BYWAY_SOURCE_HPP */
