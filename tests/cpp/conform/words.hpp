// The vocabulary of the cases of the first half: their addresses, proxies, failures as byway's.
#pragma once

#include "runner.hpp"

namespace conform {

// An IP literal of a case.
byway::ip ip_of(const std::string &text);
// The addresses of a list of texts.
std::vector<byway::ip> ips_of(const json &list);
// The texts of addresses.
json texts_of(byway::span<const byway::ip> ips);

byway::engine engine_with(int compat, std::uint32_t routing_flags = 0);

// `{"type": "HTTP", "host": ..., "ip": ..., "port": ...}`; empty for DIRECT and null.
byway::proxy proxy_of(const json &proxy);

// `{"scheme": ..., "host": ..., "port": ..., "protocols": [...]}` with an explicit proxy or null.
byway::address address_of(const byway::engine &engine, const json &address, const json &explicit_proxy = nullptr,
                          const byway::dns *dns = nullptr, const byway::proxy_selector *chooser = nullptr);

// The hops of every DIRECT route to a host with these addresses, in the order to try them.
byway::result<json> planned(const json &ips, std::uint32_t routing_flags);

// Name of a failure to `BYWAY_FAILURE_*`.
int failure_of(const json &name);

// `BYWAY_COMPAT_OKHTTP_3` for cases of the 3.x line.
int compat_of(const json &one);

} // namespace conform
