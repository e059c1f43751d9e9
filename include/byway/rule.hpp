/* byway for C++: rules as texts, and a host's own routers. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_RULE_HPP
#define BYWAY_RULE_HPP

#include "invokers.hpp"

namespace byway {

/** The key of an application's rule of a kind (`BYWAY_RULE_*`) in a configuration centre. */
inline result<std::string> application_rule_key(int kind, std::string_view application,
                                                int dialect = BYWAY_DIALECT_BYWAY)
{
    return detail::text([&](auto out, auto err) {
        return byway_rule_key(dialect, kind, application.data(), application.size(), nullptr, 0, nullptr, 0, nullptr, 0,
                              out, err);
    });
}
/** The key of a service's rule: `interface:[version]:[group]` and the kind's suffix. */
inline result<std::string> service_rule_key(int kind, std::string_view interface, std::string_view version = {},
                                            std::string_view group = {}, int dialect = BYWAY_DIALECT_BYWAY)
{
    return detail::text([&](auto out, auto err) {
        return byway_rule_key(dialect, kind, nullptr, 0, interface.data(), interface.size(), version.data(),
                              version.size(), group.data(), group.size(), out, err);
    });
}
/** Everything that is wrong with a rule text, or looks wrong, in text order; `BYWAY_FORMAT_*`. With providers also what
 * none of them fits. */
inline result<std::string> check_rule(int kind, std::string_view text, const invokers &providers = invokers(),
                                      int format = BYWAY_FORMAT_TEXT, int dialect = BYWAY_DIALECT_BYWAY)
{
    return detail::text([&](auto out, auto err) {
        return byway_rule_check(dialect, kind, text.data(), text.size(), providers.get(), format, out, err);
    });
}

/** One question to a host's router; valid until it returns. */
class router_request {
public:
    explicit router_request(const byway_router_request *raw) noexcept : raw_(raw) {}

    /** Tags of the providers that came in, in list order. */
    span<const std::uint64_t> tags() const noexcept { return {raw_->tags, raw_->count}; }
    /** The provider at this position of `tags` stays. All go unless they are kept. */
    void keep(std::size_t position) noexcept { raw_->keep[position] = 1; }
    /** Every provider stays whose tag `wanted(tag)` holds for. */
    template <class F> void keep_if(F &&wanted)
    {
        for (std::size_t i = 0; i < raw_->count; ++i)
            raw_->keep[i] = wanted(raw_->tags[i]) ? 1 : 0;
    }
    std::string_view method() const noexcept { return view(raw_->method); }
    std::optional<std::string_view> attachment(std::string_view key) const noexcept
    {
        byway_str out = {nullptr, 0};
        if (byway_router_request_attachment(raw_, key.data(), key.size(), &out) != BYWAY_OK)
            return std::nullopt;
        return view(out);
    }
    /** An argument by its text; its `data()` is null for a null argument. */
    std::optional<std::string_view> argument(std::size_t index) const noexcept
    {
        byway_str out = {nullptr, 0};
        if (byway_router_request_argument(raw_, index, &out) != BYWAY_OK)
            return std::nullopt;
        return std::string_view(out.data, out.len);
    }
    /** An explanation is made: nothing is sent anywhere, and no counter should move. */
    bool explaining() const noexcept { return raw_->explaining != 0; }

private:
    const byway_router_request *raw_;
};

/** A host's own router. */
class router : public detail::shared<byway_router, byway_router_retain, byway_router_release> {
public:
    using shared::shared;

    /** `route(router_request &[, const call &])` returns BYWAY_OK (those kept stay), BYWAY_PASS (all stay) or an error.
     * It runs on routing threads, several at once, and must not block. `flags`: `BYWAY_ROUTER_*`. */
    template <class F>
    static result<router> make(const engine &owner, std::string_view name, std::int64_t priority, F route,
                               std::uint32_t flags = 0)
    {
        byway_router_callbacks set = BYWAY_ROUTER_CALLBACKS_INIT;
        set.user_data = new F(std::move(route));
        set.destroy = detail::destroy<F>;
        set.route = [](void *user, const byway_router_request *raw, const byway_call *serves) noexcept -> byway_status {
            return detail::guarded([&]() -> byway_status {
                router_request request(raw);
                if constexpr (std::is_invocable_v<F &, router_request &, const byway::call &>)
                    return (*static_cast<F *>(user))(request, byway::call(serves));
                else
                    return (*static_cast<F *>(user))(request);
            });
        };
        return detail::make<router>([&](auto out, auto err) {
            return byway_router_new(owner.get(), name.data(), name.size(), priority, flags, &set, out, err);
        });
    }
};

} // namespace byway

#endif /* BYWAY_RULE_HPP */
