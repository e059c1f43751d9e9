/* byway for C++: borrowed texts and sequences, times, versions. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_TEXT_HPP
#define BYWAY_TEXT_HPP

#include "../byway.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions)
#define BYWAY_HAS_EXCEPTIONS 1
#else
#define BYWAY_HAS_EXCEPTIONS 0
#endif

namespace byway {

/** A borrowed text of the library as C++ has it. */
inline std::string_view view(const byway_str &text) noexcept { return {text.data ? text.data : "", text.len}; }
/** A text of the host as the library takes it; borrowed. */
inline byway_str str(std::string_view text) noexcept { return {text.data(), text.size()}; }

/** A borrowed row of values, as `std::span` of C++20: from arrays, vectors, braces, or pointer and length. */
template <class T> class span {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class Row, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<Row &>().data()), T *>>>
    constexpr span(Row &&row) noexcept : data_(row.data()),
                                         size_(row.size())
    {
    }
    /** Braces live until the end of the statement: enough for a call, not for keeping. */
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr span(std::initializer_list<value_type> row) noexcept : size_(row.size())
    {
        data_ = row.begin();
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/** Texts borrowed for a call: braces of literals, or any row of what converts to `std::string_view`. */
class texts {
public:
    texts() = default;
    texts(std::initializer_list<std::string_view> row) { take(row); }
    template <class Row, class = std::enable_if_t<std::is_convertible_v<
                             decltype(*std::begin(std::declval<const Row &>())), std::string_view>>>
    texts(const Row &row)
    {
        take(row);
    }
    const byway_str *data() const noexcept { return all_.data(); }
    std::size_t size() const noexcept { return all_.size(); }

private:
    template <class Row> void take(const Row &row)
    {
        for (const auto &text : row)
            all_.push_back(str(text));
    }
    std::vector<byway_str> all_;
};

/** Time limits; none means the engine's default. */
using timeout = std::optional<std::chrono::milliseconds>;

/** Number of the ABI the loaded library speaks, and the one these headers are for. */
inline std::uint32_t abi_version() noexcept { return byway_abi_version(); }
inline constexpr std::uint32_t header_abi_version = BYWAY_ABI_VERSION;
/** Version of the loaded library, as text and as a number to compare (`0xMMmmpp`). */
inline std::string_view version() noexcept { return byway_version(); }
inline std::uint32_t version_number() noexcept { return byway_version_number(); }
/** Whether the library was built with a feature, for example `script`. */
inline bool has_feature(std::string_view name) noexcept { return byway_has_feature(name.data(), name.size()) == 1; }

/** `BYWAY_E_BUSY` and the like; answers for every number. */
inline std::string_view status_name(byway_status status) noexcept { return byway_status_name(status); }
/** One sentence about a status. */
inline std::string_view status_message(byway_status status) noexcept { return byway_status_message(status); }

/** Size of a struct of the ABI and the offset of each of its fields, as the loaded library has them. */
struct layout {
    std::string_view name;
    std::uint32_t size = 0;
    std::vector<std::uint32_t> offsets;
};

/** The layout of the struct with this index, from 0; nothing past the last. */
inline std::optional<layout> layout_of(std::uint32_t index)
{
    layout found;
    byway_str name = {nullptr, 0};
    std::size_t total = 0;
    if (byway_layout(index, &name, &found.size, nullptr, 0, &total) != BYWAY_OK)
        return std::nullopt;
    found.name = view(name);
    found.offsets.resize(total);
    byway_layout(index, &name, &found.size, found.offsets.data(), found.offsets.size(), &total);
    return found;
}

namespace detail {

inline std::int64_t milliseconds(timeout limit) noexcept
{
    return limit ? static_cast<std::int64_t>(limit->count()) : -1;
}

/** A deadline in milliseconds, -1 for none. */
inline timeout deadline(std::int64_t ms) noexcept
{
    return ms < 0 ? timeout() : timeout(std::chrono::milliseconds(ms));
}

/** Asks twice: how many there are, then for them; until both answers agree. `ask(out, cap, total)`. */
template <class T, class Ask> byway_status fill(std::vector<T> &out, Ask &&ask)
{
    std::size_t total = 0;
    byway_status status = ask(static_cast<T *>(nullptr), std::size_t(0), &total);
    while (status >= 0 && total > out.size()) {
        out.resize(total);
        status = ask(out.data(), out.size(), &total);
    }
    out.resize(status < 0 ? 0 : total);
    return status;
}

} // namespace detail
} // namespace byway

#endif /* BYWAY_TEXT_HPP */
