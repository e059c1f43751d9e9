/* byway for C++: calls to be routed. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_INVOCATION_HPP
#define BYWAY_INVOCATION_HPP

#include "handle.hpp"

namespace byway {

/** The text form of an argument, or null. Borrowed. */
class argument {
public:
    argument(std::nullptr_t) noexcept : raw_{nullptr, BYWAY_NUL} {}
    argument(std::string_view text) noexcept : raw_{text.data() ? text.data() : "", text.size()} {}
    argument(const char *text) noexcept : argument(std::string_view(text)) {}
    argument(const std::string &text) noexcept : argument(std::string_view(text)) {}
    const byway_str &raw() const noexcept { return raw_; }

private:
    byway_str raw_;
};

static_assert(sizeof(argument) == sizeof(byway_str) && std::is_standard_layout_v<argument>,
              "rows of both are the same memory");

/** A call. Made once per thread and filled anew for every call.
 *
 * Every text it is given is borrowed: it must stay as it is until it is replaced, the call is reset or gone. */
class invocation : public detail::unique<byway_invocation, byway_invocation_free> {
public:
    using unique::unique;

    static result<invocation> make(std::string_view method = {})
    {
        auto made = detail::make<invocation>([](auto out, auto err) { return byway_invocation_new(out, err); });
        if (made && !method.empty())
            if (auto set = made->method(method); !set)
                return set.error();
        return made;
    }
    /** Forgets everything set, keeps the memory, and makes the calling thread the owner. */
    result<void> reset() { return detail::settle(byway_invocation_reset(get())); }
    result<void> method(std::string_view name)
    {
        return detail::settle(byway_invocation_set_method(get(), name.data(), name.size()));
    }
    /** By a number from `chain::intern_method`. */
    result<void> method_id(std::uint32_t id) { return detail::settle(byway_invocation_set_method_id(get(), id)); }
    /** Names of the parameter types, in order. */
    result<void> types(span<const argument> names)
    {
        return detail::settle(byway_invocation_set_types(get(), raw(names), names.size()));
    }
    /** Arguments by their text form, in order; `nullptr` is null. */
    result<void> arguments(span<const argument> values)
    {
        return detail::settle(byway_invocation_set_arguments(get(), raw(values), values.size()));
    }
    result<void> attachment(std::string_view key, std::string_view value)
    {
        return detail::settle(
            byway_invocation_set_attachment(get(), key.data(), key.size(), value.data(), value.size()));
    }
    /** Many attachments: key, value, key, value, ... */
    result<void> attachments(span<const argument> texts)
    {
        return detail::settle(byway_invocation_set_attachments(get(), raw(texts), texts.size()));
    }

private:
    static const byway_str *raw(span<const argument> row) noexcept
    {
        return reinterpret_cast<const byway_str *>(row.data());
    }
};

} // namespace byway

#endif /* BYWAY_INVOCATION_HPP */
