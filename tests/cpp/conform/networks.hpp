// A network of the test's own, in which nothing happens but what the test does.
#pragma once

#include "runner.hpp"

#include <functional>

namespace conform {

// No route leads there.
inline const char NOWHERE[] = "203.0.113.1";

// Runs a test on a thread in a network of its own: loopback up, 192.0.2.0/24 and 2001:db8::1 to 2001:db8::f this
// machine's without being loopback addresses. What it throws is thrown here; a skip where that is not allowed.
void in_own_network(const std::function<void()> &test);

// Address `number` of family 4 or 6 in that network.
std::string own_text(int family, int number);

// A socket at this address, port 0 = any, that takes connections if `works`, and its port.
std::pair<int, int> listener_at(const std::string &ip, int port, bool works);

// Whether two routes connect to the same place.
bool same_hop(byway::route_ref a, byway::route_ref b);

} // namespace conform
