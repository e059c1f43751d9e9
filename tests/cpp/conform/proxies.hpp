// What the cases about proxy selectors share: a selector is asked about a URL, as hosts ask that connect by themselves.
#pragma once

#include "runner.hpp"

namespace conform {

// An answer: the list, or why there is none.
struct proxies {
    std::vector<byway::proxy> list;
    std::optional<byway::error> error;

    // Its first entry as a URL, `direct://` for DIRECT; or the error's name.
    std::string first() const;
    // The same as `host:port`.
    std::string spot() const;
    // All of it, as the cases write proxies.
    json as_json() const;
    // All of it as URLs.
    json urls() const;
};

// A URL where it does not matter which.
inline const char CASE[] = "http://case.example/";

proxies ask(const byway::engine &by, const byway::result<byway::proxy_selector> &chooser, const std::string &url,
            const byway::dns *names = nullptr);

// Credentials are shown nowhere; that they are there shows in equality, but for the password.
json without_credentials(json list);

} // namespace conform
