/* byway for C++: queues, and what a callback is told of its call. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_QUEUE_HPP
#define BYWAY_QUEUE_HPP

#include "handle.hpp"

namespace byway {

/** What a queue is made with; the fields are `byway_queue_options`'. */
struct queue_options : byway_queue_options {
    queue_options() noexcept : byway_queue_options BYWAY_QUEUE_OPTIONS_INIT {}
};

/** How one pending operation ended. */
using completion = byway_completion;

/** One event loop's inbox. */
class queue : public detail::shared<byway_queue, byway_queue_retain, byway_queue_release> {
public:
    using shared::shared;

    static result<queue> make(const byway_queue_options &options = queue_options())
    {
        return detail::make<queue>([&](auto out, auto err) { return byway_queue_new(&options, out, err); });
    }
    /** Readable while something is queued or a deadline has passed; the queue's own. */
    result<int> fd() const
    {
        return detail::value<std::int32_t>([&](auto out, auto) { return byway_queue_fd(get(), out); });
    }
    /** `notify()` runs on any thread when the queue goes from empty to non-empty; it may only schedule a poll, and must
     * not throw. */
    template <class F> result<void> set_notify(F notify)
    {
        byway_notify_callbacks set = BYWAY_NOTIFY_CALLBACKS_INIT;
        set.user_data = new F(std::move(notify));
        set.destroy = detail::destroy<F>;
        set.notify = [](void *user) noexcept { (*static_cast<F *>(user))(); };
        return detail::call([&](auto err) { return byway_queue_set_notify(get(), &set, err); });
    }
    result<void> clear_notify()
    {
        return detail::call([&](auto err) { return byway_queue_set_notify(get(), nullptr, err); });
    }
    /** Until the next deadline: zero when it has passed, none when there is none. */
    timeout deadline() const noexcept
    {
        std::int64_t ms = -1;
        byway_queue_deadline(get(), &ms);
        return detail::deadline(ms);
    }
    /** Runs queued callbacks on this thread and fills records; returns how many. */
    result<std::size_t> poll(span<completion> records, timeout wait = std::chrono::milliseconds(0))
    {
        return detail::value<std::size_t>([&](auto n, auto err) {
            return byway_queue_poll(get(), detail::milliseconds(wait), records.data(), sizeof(completion),
                                    records.size(), n, err);
        });
    }
    /** The same, appending every record that was there. */
    result<void> poll(std::vector<completion> &records, timeout wait = std::chrono::milliseconds(0))
    {
        completion room[64];
        for (;;) {
            auto n = poll(span<completion>(room), wait);
            if (!n)
                return n.error();
            records.insert(records.end(), room, room + *n);
            if (*n < 64)
                return BYWAY_OK;
            wait = std::chrono::milliseconds(0);
        }
    }
    /** Ends a running poll, or the next one, at once. Any thread. */
    result<void> wakeup() { return detail::settle(byway_queue_wakeup(get())); }
    /** Events dropped because the queue was full. */
    std::uint64_t lost() const noexcept { return byway_queue_lost(get()); }
};

} // namespace byway

#endif /* BYWAY_QUEUE_HPP */
