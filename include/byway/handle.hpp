/* byway for C++: owners of handles, and how functions of byway.h are called. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_HANDLE_HPP
#define BYWAY_HANDLE_HPP

#include "error.hpp"

namespace byway::detail {

/** What a failing status becomes; on success forgets what a callback threw whose failure the library got over. */
inline result<void> settle(byway_status status, byway_error *object = nullptr)
{
    if (status < 0)
        return error::take(status, object);
    if (thrown::pending())
        (void)thrown::take();
    return status;
}

/** Runs a call with a place for its error. */
template <class Call> result<void> call(Call &&run)
{
    byway_error *object = nullptr;
    const byway_status status = run(&object);
    return settle(status, object);
}

/** Runs a call that fills a value. */
template <class T, class Call> result<T> value(Call &&run)
{
    T out{};
    byway_error *object = nullptr;
    const byway_status status = run(&out, &object);
    if (status < 0)
        return error::take(status, object);
    if (thrown::pending())
        (void)thrown::take();
    return out;
}

/** Runs a call that gives a handle; an empty owner where it has nothing more to give. */
template <class Owner, class Call> result<Owner> make(Call &&run)
{
    typename Owner::pointer out = nullptr;
    byway_error *object = nullptr;
    const byway_status status = run(&out, &object);
    if (status < 0)
        return error::take(status, object);
    if (thrown::pending())
        (void)thrown::take();
    return Owner(out);
}

/** Takes a text over. */
inline std::string take(byway_text *text)
{
    if (!text)
        return {};
    byway_str shown = {nullptr, 0};
    byway_text_str(text, &shown);
    std::string copy(view(shown));
    byway_text_free(text);
    return copy;
}

/** Runs a call that gives a text. */
template <class Call> result<std::string> text(Call &&run)
{
    byway_text *out = nullptr;
    byway_error *object = nullptr;
    const byway_status status = run(&out, &object);
    if (status < 0)
        return error::take(status, object);
    if (thrown::pending())
        (void)thrown::take();
    return take(out);
}

/** A borrowed text of a handle. */
template <class Call> std::string_view lent(Call &&run)
{
    byway_str out = {nullptr, 0};
    run(&out);
    return view(out);
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
    shared &operator=(const shared &other) noexcept
    {
        if (handle_ != other.handle_) {
            T *old = std::exchange(handle_, other.handle_ ? Retain(other.handle_) : nullptr);
            Release(old);
        }
        return *this;
    }
    shared &operator=(shared &&other) noexcept
    {
        if (this != &other)
            Release(std::exchange(handle_, std::exchange(other.handle_, nullptr)));
        return *this;
    }
    ~shared()
    {
        if (handle_)
            Release(handle_);
    }
    /** The handle, for functions of byway.h. */
    T *get() const noexcept { return handle_; }
    /** Gives the reference away. */
    [[nodiscard]] T *detach() noexcept { return std::exchange(handle_, nullptr); }
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
        if (this != &other)
            Free(std::exchange(handle_, std::exchange(other.handle_, nullptr)));
        return *this;
    }
    ~unique()
    {
        if (handle_)
            Free(handle_);
    }
    /** The handle, for functions of byway.h. */
    T *get() const noexcept { return handle_; }
    /** Gives the handle away. */
    [[nodiscard]] T *detach() noexcept { return std::exchange(handle_, nullptr); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    T *handle_ = nullptr;
};

/** A borrowed handle: valid as long as what lent it. */
template <class T> class borrowed {
public:
    borrowed() = default;
    borrowed(T *lent) noexcept : handle_(lent) {}
    T *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    T *handle_ = nullptr;
};

/** Runs host code that answers with a status; what it throws is kept for the call that led here. The first exception
 * of a call counts. `failed(message)` tells the library why and gives the status to answer with. */
template <class Body, class Failed> byway_status guarded(Body &&body, Failed &&failed) noexcept
{
#if BYWAY_HAS_EXCEPTIONS
    std::exception_ptr earlier = thrown::take();
    byway_status status;
    try {
        status = body();
    } catch (const std::exception &what) {
        status = failed(what.what());
        if (!earlier)
            earlier = std::current_exception();
    } catch (...) {
        status = failed("a callback threw");
        if (!earlier)
            earlier = std::current_exception();
    }
    thrown::keep(std::move(earlier));
    return status;
#else
    (void)failed;
    return body();
#endif
}

template <class Body> byway_status guarded(Body &&body) noexcept
{
    return guarded(std::forward<Body>(body), [](const char *) { return BYWAY_E_HOST; });
}

template <class F> void destroy(void *user_data) noexcept { delete static_cast<F *>(user_data); }

} // namespace byway::detail

#endif /* BYWAY_HANDLE_HPP */
