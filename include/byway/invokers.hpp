/* byway for C++: provider lists. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_INVOKERS_HPP
#define BYWAY_INVOKERS_HPP

#include "engine.hpp"

#include <functional>

namespace byway {

/** Runs once when nothing can name a list's tags any more; must not throw. */
using tags_gone = std::function<void()>;

namespace detail {
/** The callback set of a list; nothing when nobody wants to know. */
class tag_callbacks {
public:
    explicit tag_callbacks(tags_gone &&gone)
    {
        if (!gone)
            return;
        any_ = true;
        set_.user_data = new tags_gone(std::move(gone));
        set_.destroy = [](void *user) noexcept {
            auto *told = static_cast<tags_gone *>(user);
            (*told)();
            delete told;
        };
    }
    const byway_invokers_callbacks *get() const noexcept { return any_ ? &set_ : nullptr; }

private:
    byway_invokers_callbacks set_ = BYWAY_INVOKERS_CALLBACKS_INIT;
    bool any_ = false;
};
} // namespace detail

/** An immutable provider list in the host's order; every row carries the host's tag. */
class invokers : public detail::shared<byway_invokers, byway_invokers_retain, byway_invokers_release> {
public:
    using shared::shared;

    /** From provider URLs. Without tags a tag is its URL's index. `flags`: `BYWAY_INVOKERS_*`. */
    static result<invokers> make(const engine &owner, const texts &urls, span<const std::uint64_t> tags = {},
                                 std::uint32_t flags = 0, tags_gone gone = {})
    {
        const detail::tag_callbacks set(std::move(gone));
        if (!tags.empty() && tags.size() != urls.size()) {
            if (set.get())
                set.get()->destroy(set.get()->user_data);
            return error(BYWAY_E_ARGUMENT, "tags", "as many tags as URLs are needed, or none");
        }
        return detail::make<invokers>([&](auto out, auto err) {
            return byway_invokers_new(owner.get(), urls.data(), tags.empty() ? nullptr : tags.data(), urls.size(),
                                      flags, set.get(), out, err);
        });
    }
    std::size_t size() const noexcept { return byway_invokers_len(get()); }
    /** The tag of a row. */
    std::optional<std::uint64_t> tag(std::size_t row) const noexcept
    {
        std::uint64_t out = 0;
        return byway_invokers_tag(get(), row, &out) == BYWAY_OK ? std::optional<std::uint64_t>(out) : std::nullopt;
    }
    /** The row of a tag. */
    std::optional<std::size_t> row_of(std::uint64_t tag) const noexcept
    {
        std::size_t out = 0;
        return byway_invokers_row_of(get(), tag, &out) == BYWAY_OK ? std::optional<std::size_t>(out) : std::nullopt;
    }
    /** The URL text of a row, if the list was made with `BYWAY_INVOKERS_KEEP_URLS`. */
    result<std::string> url(std::size_t row) const
    {
        return detail::text([&](auto out, auto err) { return byway_invokers_url(get(), row, out, err); });
    }
    /** A number no other list of this process has. */
    std::uint64_t generation() const noexcept { return byway_invokers_generation(get()); }
};

/** Makes a provider list, whole or as an update of another. */
class invokers_builder : public detail::unique<byway_invokers_builder, byway_invokers_builder_free> {
public:
    using unique::unique;

    /** A whole list. */
    static result<invokers_builder> make(const engine &owner, std::uint32_t flags = 0, tags_gone gone = {})
    {
        return start(owner, nullptr, flags, std::move(gone));
    }
    /** An update of `base`, which stays as it is; without `gone` its callback goes on. */
    static result<invokers_builder> update(const engine &owner, const invokers &base, std::uint32_t flags = 0,
                                           tags_gone gone = {})
    {
        return start(owner, base.get(), flags, std::move(gone));
    }
    /** Adds a provider at the end. */
    result<void> add(std::string_view url, std::uint64_t tag)
    {
        return detail::call(
            [&](auto err) { return byway_invokers_builder_add(get(), url.data(), url.size(), tag, err); });
    }
    /** Adds many; without tags a tag is its URL's index among all URLs given. */
    result<void> add(const texts &urls, span<const std::uint64_t> tags = {})
    {
        if (!tags.empty() && tags.size() != urls.size())
            return error(BYWAY_E_ARGUMENT, "tags", "as many tags as URLs are needed, or none");
        return detail::call([&](auto err) {
            return byway_invokers_builder_add_many(get(), urls.data(), tags.empty() ? nullptr : tags.data(),
                                                   urls.size(), err);
        });
    }
    /** Replaces the URL of this tag in its place, or adds it at the end. */
    result<void> set(std::string_view url, std::uint64_t tag)
    {
        return detail::call(
            [&](auto err) { return byway_invokers_builder_set(get(), url.data(), url.size(), tag, err); });
    }
    result<void> remove(std::uint64_t tag)
    {
        return detail::call([&](auto err) { return byway_invokers_builder_remove(get(), tag, err); });
    }
    /** Makes the list; the builder is used up. */
    result<invokers> finish()
    {
        return detail::make<invokers>(
            [&](auto out, auto err) { return byway_invokers_builder_finish(get(), out, err); });
    }

private:
    static result<invokers_builder> start(const engine &owner, const byway_invokers *base, std::uint32_t flags,
                                          tags_gone &&gone)
    {
        const detail::tag_callbacks set(std::move(gone));
        return detail::make<invokers_builder>([&](auto out, auto err) {
            return byway_invokers_builder_new(owner.get(), base, flags, set.get(), out, err);
        });
    }
};

} // namespace byway

#endif /* BYWAY_INVOKERS_HPP */
