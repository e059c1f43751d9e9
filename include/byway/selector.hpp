/* byway for C++: routes to an address, in the order to try them. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_SELECTOR_HPP
#define BYWAY_SELECTOR_HPP

#include "address.hpp"

#include <iterator>

namespace byway {

/** What a selector is made with; the fields are `byway_selector_options`', the queue by `.get()`. */
struct selector_options : byway_selector_options {
    selector_options() noexcept : byway_selector_options BYWAY_SELECTOR_OPTIONS_INIT {}
};

/** A route as a record; its texts are borrowed from where it came from. */
using route_record = byway_route_record;

/** Routes to try now. What it gives is borrowed; `keep` makes one's own. */
class selection : public detail::unique<byway_selection, byway_selection_free> {
public:
    using unique::unique;

    std::size_t size() const noexcept { return byway_selection_len(get()); }
    route_ref operator[](std::size_t i) const noexcept { return route_ref(byway_selection_at(get(), i)); }
    /** The route under the cursor, which moves on; empty when all were given. */
    result<route_ref> next()
    {
        const byway_route *out = nullptr;
        auto done = detail::call([&](auto err) { return byway_selection_next(get(), &out, err); });
        if (!done)
            return done.error();
        return route_ref(out);
    }
    /** Whether `next` has a route. */
    bool more() const noexcept { return byway_selection_more(get()) == 1; }
    /** All routes at once; the cursor stays. Returns their number, which may be more than there is room for. */
    result<std::size_t> records(span<route_record> out) const
    {
        return detail::value<std::size_t>([&](auto total, auto) {
            return byway_selection_records(get(), out.data(), sizeof(route_record), out.size(), total);
        });
    }
    std::vector<route_record> records() const
    {
        std::vector<route_record> all;
        detail::fill(all, [&](auto *out, std::size_t cap, std::size_t *total) {
            return byway_selection_records(get(), out, sizeof(route_record), cap, total);
        });
        return all;
    }

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = route_ref;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = route_ref;
        iterator(const selection *of, std::size_t at) noexcept : of_(of), at_(at) {}
        route_ref operator*() const noexcept { return (*of_)[at_]; }
        iterator &operator++() noexcept { return ++at_, *this; }
        iterator operator++(int) noexcept { return iterator(of_, at_++); }
        friend bool operator==(iterator a, iterator b) noexcept { return a.at_ == b.at_; }
        friend bool operator!=(iterator a, iterator b) noexcept { return a.at_ != b.at_; }

    private:
        const selection *of_;
        std::size_t at_;
    };
    iterator begin() const noexcept { return {this, 0}; }
    iterator end() const noexcept { return {this, size()}; }
};

/** Gives the routes of an address, Selection after Selection. */
class selector : public detail::unique<byway_selector, byway_selector_free> {
public:
    using unique::unique;

    static result<selector> make(const engine &owner, const address &where,
                                 const byway_selector_options &options = selector_options())
    {
        return detail::make<selector>(
            [&](auto out, auto err) { return byway_selector_new(owner.get(), where.get(), &options, out, err); });
    }
    /** Every route of an address in one call, into the caller's records; returns their number. Proxy selector and
     * resolver must answer in place. */
    static result<std::size_t> plan(const engine &owner, const address &where, span<route_record> out,
                                    const byway_selector_options &options = selector_options())
    {
        return detail::value<std::size_t>([&](auto total, auto err) {
            return byway_selector_plan(owner.get(), where.get(), &options, out.data(), sizeof(route_record), out.size(),
                                       total, err);
        });
    }
    /** The next Selection; an empty owner when nothing is left. */
    result<selection> next(timeout wait = {})
    {
        return detail::make<selection>(
            [&](auto out, auto err) { return byway_selector_next(get(), detail::milliseconds(wait), out, err); });
    }
    /** As `next` without waiting; `pending` says that a record will come to the queue. */
    result<selection> poll_next(bool &pending)
    {
        pending = false;
        return detail::make<selection>([&](auto out, auto err) {
            const byway_status status = byway_selector_poll_next(get(), out, err);
            pending = status == BYWAY_PENDING;
            return status;
        });
    }
    /** Whether `next` may still give routes or an error. */
    bool may_have_next() const noexcept { return byway_selector_may_have_next(get()) == 1; }
    /** Cancels for good. Any thread, also a signal handler. */
    void cancel() noexcept { byway_selector_cancel(get()); }
    /** The whole decision so far, `BYWAY_FORMAT_*`. */
    result<std::string> explain(int format = BYWAY_FORMAT_TEXT) const
    {
        return detail::text([&](auto out, auto err) { return byway_selector_explain(get(), format, out, err); });
    }
    /** Its number, as completion records and events carry it. */
    std::uint64_t id() const noexcept { return byway_selector_id(get()); }
};

} // namespace byway

#endif /* BYWAY_SELECTOR_HPP */
