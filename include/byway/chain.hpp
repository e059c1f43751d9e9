/* byway for C++: router chains, their results, sessions. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_CHAIN_HPP
#define BYWAY_CHAIN_HPP

#include "invocation.hpp"
#include "rule.hpp"

namespace byway {

class source;
class source_event;
struct bind_options;

/** How a chain differs from what its engine says; the fields are `byway_chain_options`'. */
struct chain_options : byway_chain_options {
    chain_options() noexcept : byway_chain_options BYWAY_CHAIN_OPTIONS_INIT {}
};

/** What is asked of a pick; the fields are `byway_pick_options`'. */
struct pick_options : byway_pick_options {
    pick_options() noexcept : byway_pick_options BYWAY_PICK_OPTIONS_INIT {}
    /** One bit a row of `list`, lowest first: 1 = can be called. Borrowed. */
    void set_available(span<const std::uint64_t> words, const invokers &list) noexcept
    {
        available = words.data();
        available_words = words.size();
        available_list = list.generation();
    }
    /** Tags tried before. Borrowed. */
    void set_exclude(span<const std::uint64_t> tags) noexcept
    {
        exclude = tags.data();
        exclude_count = tags.size();
    }
};

/** The provider picked. */
using picked = byway_picked;

/** How a picked call went; the fields are `byway_call_result`'. */
struct call_result : byway_call_result {
    call_result() noexcept : byway_call_result BYWAY_CALL_RESULT_INIT {}
};

namespace detail {
/** What can be asked of a choice, owned or lent. */
template <class Base> class choice_getters : public Base {
public:
    using Base::Base;

    /** How many providers may serve the call. */
    std::size_t size() const noexcept { return byway_choice_len(this->get()); }
    bool empty() const noexcept { return size() == 0; }
    /** The tag of one of them, in list order. */
    std::optional<std::uint64_t> tag(std::size_t index) const noexcept
    {
        std::uint64_t out = 0;
        return byway_choice_tag_at(this->get(), index, &out) == BYWAY_OK ? std::optional<std::uint64_t>(out)
                                                                         : std::nullopt;
    }
    /** Copies as many tags as there is room for; returns how many there are. */
    std::size_t tags(span<std::uint64_t> out) const noexcept
    {
        std::size_t total = 0;
        byway_choice_tags(this->get(), out.data(), out.size(), &total);
        return total;
    }
    std::vector<std::uint64_t> tags() const
    {
        std::vector<std::uint64_t> out(size());
        tags(span<std::uint64_t>(out));
        return out;
    }
    /** The list the providers were chosen from. */
    result<byway::invokers> invokers() const
    {
        return detail::make<byway::invokers>(
            [&](auto out, auto err) { return byway_choice_invokers(this->get(), out, err); });
    }
    /** Number of the world that answered. */
    std::uint64_t generation() const noexcept { return byway_choice_generation(this->get()); }
    /** Name of the router that left no provider; empty when there are some, or were none to begin with. */
    std::string emptied_by() const
    {
        auto name = text([&](auto out, auto err) { return byway_choice_emptied_by(this->get(), out, err); });
        return name ? std::move(*name) : std::string();
    }
};
} // namespace detail

/** A session's result: shows it until the session's next call. */
class choice_ref : public detail::choice_getters<detail::borrowed<const byway_choice>> {
public:
    using choice_getters::choice_getters;
};

/** A routing result; pins the list it was chosen from. */
class choice : public detail::choice_getters<detail::unique<byway_choice, byway_choice_free>> {
public:
    using choice_getters::choice_getters;
};

/** How many providers may serve a call, and the number of the world that answered. */
struct routed {
    std::size_t total = 0;
    std::uint64_t generation = 0;
};

/** Routers over one provider list for one consumer. */
class chain : public detail::shared<byway_chain, byway_chain_retain, byway_chain_release> {
public:
    using shared::shared;

    static result<chain> make(const engine &owner, std::string_view consumer_url,
                              const byway_chain_options &options = chain_options())
    {
        return detail::make<chain>([&](auto out, auto err) {
            return byway_chain_new(owner.get(), consumer_url.data(), consumer_url.size(), &options, out, err);
        });
    }
    /** Gives the chain another provider list; returns the number of a world that has it. */
    result<std::uint64_t> set_invokers(const byway::invokers &list)
    {
        return detail::value<std::uint64_t>(
            [&](auto generation, auto err) { return byway_chain_set_invokers(get(), list.get(), generation, err); });
    }
    /** The provider list calls route over now. */
    result<byway::invokers> invokers() const
    {
        return detail::make<byway::invokers>([&](auto out, auto err) { return byway_chain_invokers(get(), out, err); });
    }
    result<void> add_router(const router &own)
    {
        return detail::call([&](auto err) { return byway_chain_add_router(get(), own.get(), err); });
    }
    /** Replaces the static rules by those in these URLs (`condition://`, `script://`, `file://`); none takes all away.
     */
    result<void> set_rule_urls(const texts &urls)
    {
        return detail::call([&](auto err) { return byway_chain_set_rule_urls(get(), urls.data(), urls.size(), err); });
    }

    result<choice> route(const invocation &call) const
    {
        return detail::make<choice>([&](auto out, auto err) { return byway_chain_route(get(), call.get(), out, err); });
    }
    /** Routes and copies as many tags as there is room for. */
    result<routed> route_tags(const invocation &call, span<std::uint64_t> tags) const
    {
        return detail::value<routed>([&](auto out, auto err) {
            return byway_chain_route_tags(get(), call.get(), tags.data(), tags.size(), &out->total, &out->generation,
                                          err);
        });
    }
    /** Routes many calls over one world: `totals[i]` gets how many may serve call `i`, `tags[i * cap]` on its tags.
     * `tags` has room for `calls.size() * cap`. Returns the world's number. */
    result<std::uint64_t> route_many(span<const invocation> calls, span<std::uint64_t> tags, std::size_t cap,
                                     span<std::size_t> totals) const
    {
        if (totals.size() < calls.size() || tags.size() < calls.size() * cap)
            return error(BYWAY_E_ARGUMENT, "tags", "too little room for these calls");
        const auto all = pointers(calls);
        return detail::value<std::uint64_t>([&](auto generation, auto err) {
            return byway_chain_route_many(get(), all.data(), all.size(), cap ? tags.data() : nullptr, cap,
                                          totals.data(), generation, err);
        });
    }
    /** Routes and picks one provider. */
    result<picked> pick(const invocation &call, const byway_pick_options &options = pick_options()) const
    {
        return detail::value<picked>(
            [&](auto out, auto err) { return byway_chain_pick(get(), call.get(), &options, out, err); });
    }
    /** Ends a picked call; without a latency it is measured from the pick. */
    result<void> pick_end(const picked &which, bool ok, std::optional<std::chrono::nanoseconds> latency = {}) const
    {
        return detail::settle(byway_chain_pick_end(get(), which.ticket, ok ? 1 : 0,
                                                   latency ? static_cast<std::int64_t>(latency->count()) : -1));
    }
    /** The same, with what the provider reported about itself. */
    result<void> pick_end(const picked &which, const call_result &how) const
    {
        return detail::call([&](auto err) { return byway_chain_pick_end_with(get(), which.ticket, &how, err); });
    }

    /** Keys of the rules the chain wants, one a line. */
    result<std::string> keys() const
    {
        return detail::text([&](auto out, auto err) { return byway_chain_keys(get(), out, err); });
    }
    /** How each router stands, as JSON. */
    result<std::string> status() const
    {
        return detail::text([&](auto out, auto err) { return byway_chain_status(get(), out, err); });
    }
    /** Number of the current world. */
    std::uint64_t generation() const noexcept { return byway_chain_generation(get()); }
    /** A number for `invocation::method_id`. */
    result<std::uint32_t> intern_method(std::string_view name) const
    {
        return detail::value<std::uint32_t>(
            [&](auto id, auto err) { return byway_chain_intern_method(get(), name.data(), name.size(), id, err); });
    }
    /** Routes a call and says why; `BYWAY_FORMAT_*`. */
    result<std::string> explain(const invocation &call, int format = BYWAY_FORMAT_TEXT) const
    {
        return detail::text(
            [&](auto out, auto err) { return byway_chain_explain(get(), call.get(), format, out, err); });
    }
    /** What a rule text would change for these calls, `BYWAY_FORMAT_*`; no text means without the rule. Nothing is
     * set. */
    result<std::string> diff(std::string_view key, std::optional<std::string_view> text, span<const invocation> calls,
                             int format = BYWAY_FORMAT_TEXT) const
    {
        const auto all = pointers(calls);
        const std::string_view given = text.value_or("");
        return detail::text([&](auto out, auto err) {
            return byway_chain_diff(get(), key.data(), key.size(), text ? (given.data() ? given.data() : "") : nullptr,
                                    given.size(), all.data(), all.size(), format, out, err);
        });
    }
    /** Keeps the last 32 calls from now on, or no longer. */
    result<void> keep_recent(bool on)
    {
        return detail::call([&](auto err) { return byway_chain_keep_recent(get(), on, err); });
    }
    /** The last 32 calls, each explained. */
    result<std::string> recent(int format = BYWAY_FORMAT_TEXT) const
    {
        return detail::text([&](auto out, auto err) { return byway_chain_recent(get(), format, out, err); });
    }

    /** Follows a source: its rules, and unless `BYWAY_BIND_RULES_ONLY` its providers. OK, or PENDING when the first
     * state has not come in time. `on_event(const source_event &)` must not throw. */
    template <class F, class = std::enable_if_t<std::is_invocable_v<F &, const source_event &>>>
    result<void> bind(const source &from, const bind_options &options, F on_event, timeout wait = {});
    result<void> bind(const source &from, const bind_options &options, timeout wait = {});
    result<void> bind(const source &from, timeout wait = {});
    /** Follows nobody any more; what the source gave is taken back. */
    result<void> unbind();
    /** Ends every `bind` that is waiting on this chain now: `BYWAY_E_CANCELED`, and nothing has changed. Any thread. */
    void cancel_bind() noexcept { byway_chain_cancel_bind(get()); }
    /** How the bound source stands, as JSON. */
    result<std::string> bind_status() const
    {
        return detail::text([&](auto out, auto err) { return byway_chain_bind_status(get(), out, err); });
    }

private:
    static std::vector<const byway_invocation *> pointers(span<const invocation> calls)
    {
        std::vector<const byway_invocation *> all;
        all.reserve(calls.size());
        for (const invocation &one : calls)
            all.push_back(one.get());
        return all;
    }
};

/** Routes calls of one chain on one thread; belongs to the thread that made or adopted it. */
class session : public detail::unique<byway_session, byway_session_free> {
public:
    using unique::unique;

    static result<session> make(const chain &over)
    {
        return detail::make<session>([&](auto out, auto err) { return byway_session_new(over.get(), out, err); });
    }
    /** Shows the result until the session's next call. */
    result<choice_ref> route(const invocation &call)
    {
        const byway_choice *out = nullptr;
        byway_error *object = nullptr;
        const byway_status status = byway_session_route(get(), call.get(), &out, &object);
        if (status < 0)
            return error::take(status, object);
        if (detail::thrown::pending())
            (void)detail::thrown::take();
        return choice_ref(out);
    }
    /** Routes and copies as many tags as there is room for. */
    result<routed> route_tags(const invocation &call, span<std::uint64_t> tags)
    {
        return detail::value<routed>([&](auto out, auto err) {
            return byway_session_route_tags(get(), call.get(), tags.data(), tags.size(), &out->total, &out->generation,
                                            err);
        });
    }
    result<picked> pick(const invocation &call, const byway_pick_options &options = pick_options())
    {
        return detail::value<picked>(
            [&](auto out, auto err) { return byway_session_pick(get(), call.get(), &options, out, err); });
    }
    /** Makes the calling thread the owner. */
    result<void> adopt()
    {
        return detail::call([&](auto err) { return byway_session_adopt(get(), err); });
    }
    /** Lets go of the world the session pins, for a thread that will not route for a while. */
    result<void> idle()
    {
        return detail::call([&](auto err) { return byway_session_idle(get(), err); });
    }
};

} // namespace byway

#endif /* BYWAY_CHAIN_HPP */
