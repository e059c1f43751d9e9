/* byway for C++: why a call failed, and results. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_ERROR_HPP
#define BYWAY_ERROR_HPP

#include "text.hpp"

#include <cstdlib>
#include <exception>
#include <memory>
#include <variant>

namespace byway {

/** Who found an error; the values of `byway_error_source`. */
enum class error_source : std::int32_t {
    argument = BYWAY_ERROR_SOURCE_ARGUMENT,
    callback = BYWAY_ERROR_SOURCE_CALLBACK,
    parser = BYWAY_ERROR_SOURCE_PARSER,
    socket = BYWAY_ERROR_SOURCE_SOCKET,
    script = BYWAY_ERROR_SOURCE_SCRIPT,
    panic = BYWAY_ERROR_SOURCE_PANIC,
    engine = BYWAY_ERROR_SOURCE_ENGINE
};

namespace detail {

/** What a callback threw on this thread, until the call that led to it takes it. The flag is there because it costs
 * nothing to look at. */
struct thrown {
    static bool &pending() noexcept
    {
        static thread_local bool flag = false;
        return flag;
    }
    static std::exception_ptr &held() noexcept
    {
        static thread_local std::exception_ptr what;
        return what;
    }
    static std::exception_ptr take() noexcept
    {
        if (!pending())
            return nullptr;
        pending() = false;
        return std::exchange(held(), nullptr);
    }
    static void keep(std::exception_ptr what) noexcept
    {
        pending() = what != nullptr;
        if (what)
            held() = std::move(what);
    }
};

} // namespace detail

/** Why a call failed: everything `byway_error` knows, as values. Cheap to copy; immutable. */
class error {
public:
    error() = default;
    explicit error(byway_status code) noexcept : code_(code) {}
    error(byway_status code, std::string_view subject, std::string_view message) : code_(code)
    {
        auto made = std::make_shared<details>();
        made->subject = subject;
        made->message = message;
        details_ = std::move(made);
    }

    /** Reads and frees an error object; without one only the status is known. */
    static error take(byway_status status, byway_error *object)
    {
        error made(status);
        std::exception_ptr thrown = detail::thrown::take();
        if (object || thrown) {
            auto read = object ? read_details(object) : std::make_shared<details>();
            if (!object)
                read->message = byway_status_message(status);
            read->thrown = std::move(thrown);
            made.details_ = std::move(read);
        }
        byway_error_free(object);
        return made;
    }
    /** Copies a borrowed error, for example an event's. */
    static error copy(const byway_error *borrowed)
    {
        error made(byway_error_code(borrowed));
        made.details_ = read_details(borrowed);
        return made;
    }

    /** One of `BYWAY_E_*`; what to branch on. */
    byway_status code() const noexcept { return code_; }
    const char *name() const noexcept { return byway_status_name(code_); }
    /** What was found and what was expected, without the subject. */
    std::string_view message() const noexcept
    {
        return details_ ? std::string_view(details_->message) : status_message(code_);
    }
    /** A parameter, a host, a rule key; empty when nothing was named. */
    std::string_view subject() const noexcept { return known().subject; }
    error_source source() const noexcept { return static_cast<error_source>(known().source); }
    /** Place in the text that was parsed: byte from 0, line and column from 1; -1, 0 and 0 without a text. */
    std::int64_t offset() const noexcept { return known().offset; }
    std::uint32_t line() const noexcept { return known().line; }
    std::uint32_t column() const noexcept { return known().column; }
    int os_errno() const noexcept { return known().os_errno; }
    /** The number a callback gave with its failure. */
    std::int64_t host_code() const noexcept { return known().host_code; }
    /** Every failed attempt, in order. */
    const std::vector<error> &causes() const noexcept { return known().causes; }
    /** What a callback threw, if that was it. */
    const std::exception_ptr &thrown() const noexcept { return known().thrown; }

    /** One line for people. */
    std::string what() const
    {
        std::string out = subject().empty() ? std::string() : std::string(subject()) + ": ";
        if (line() != 0)
            out += "line " + std::to_string(line()) + ", column " + std::to_string(column()) + ": ";
        return out.append(message());
    }

private:
    struct details {
        std::string message, subject;
        std::int64_t offset = -1, host_code = 0;
        std::uint32_t line = 0, column = 0;
        int os_errno = 0, source = 0;
        std::vector<error> causes;
        std::exception_ptr thrown;
    };

    static std::shared_ptr<details> read_details(const byway_error *object)
    {
        auto made = std::make_shared<details>();
        byway_str text = {nullptr, 0};
        byway_error_message(object, &text);
        made->message = view(text);
        byway_error_subject(object, &text);
        made->subject = view(text);
        made->source = byway_error_source(object);
        made->offset = byway_error_offset(object);
        made->line = byway_error_line(object);
        made->column = byway_error_column(object);
        made->os_errno = byway_error_os_errno(object);
        made->host_code = byway_error_host_code(object);
        for (std::size_t i = 0; i < byway_error_cause_count(object); ++i)
            made->causes.push_back(copy(byway_error_cause_at(object, i)));
        return made;
    }
    const details &known() const noexcept
    {
        static const details nothing;
        return details_ ? *details_ : nothing;
    }

    byway_status code_ = BYWAY_OK;
    std::shared_ptr<const details> details_;
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
} // namespace detail

/** A value, or why there is none. */
template <class T> class [[nodiscard]] result {
public:
    using value_type = T;

    result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : state_(std::in_place_index<0>, std::move(value))
    {
    }
    result(byway::error why) noexcept : state_(std::in_place_index<1>, std::move(why)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    /** Why there is no value; an error of code `BYWAY_OK` when there is one. */
    const byway::error &error() const noexcept
    {
        static const byway::error none;
        const auto *why = std::get_if<1>(&state_);
        return why ? *why : none;
    }

    /** The value; throws, or ends the program, when there is none. */
    T &value() &
    {
        if (!has_value())
            detail::raise(error());
        return *std::get_if<0>(&state_);
    }
    const T &value() const & { return const_cast<result &>(*this).value(); }
    T value() && { return std::move(static_cast<result &>(*this).value()); }
    template <class Other> T value_or(Other &&otherwise) &&
    {
        return has_value() ? std::move(*std::get_if<0>(&state_)) : static_cast<T>(std::forward<Other>(otherwise));
    }
    /** Without a check. */
    T &operator*() noexcept { return *std::get_if<0>(&state_); }
    const T &operator*() const noexcept { return *std::get_if<0>(&state_); }
    T *operator->() noexcept { return std::get_if<0>(&state_); }
    const T *operator->() const noexcept { return std::get_if<0>(&state_); }

    /** `next(value)`, itself a result, or the error. */
    template <class Next> auto and_then(Next &&next) && -> std::invoke_result_t<Next, T>
    {
        if (!has_value())
            return error();
        return std::forward<Next>(next)(std::move(*std::get_if<0>(&state_)));
    }

private:
    std::variant<T, byway::error> state_;
};

/** Success, or why not; `status()` tells OK, DONE and PENDING apart. */
template <> class [[nodiscard]] result<void> {
public:
    using value_type = void;

    result(byway_status status) noexcept : why_(status) {}
    result(byway::error why) noexcept : why_(std::move(why)) {}

    byway_status status() const noexcept { return why_.code(); }
    bool has_value() const noexcept { return why_.code() >= 0; }
    explicit operator bool() const noexcept { return has_value(); }
    const byway::error &error() const noexcept { return why_; }
    void value() const
    {
        if (!has_value())
            detail::raise(why_);
    }

private:
    byway::error why_;
};

} // namespace byway

#endif /* BYWAY_ERROR_HPP */
