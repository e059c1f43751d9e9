// A network of the test's own, in which nothing happens but what the test does.
#include "networks.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace conform {
namespace {

constexpr int OWN_IPV6 = 15;

// Of <linux/ipv6.h>, which does not go with <netinet/in.h>.
struct ipv6_request {
    in6_addr address;
    std::uint32_t prefix_length;
    int interface;
};

// Waits until the kernel has found out that nobody else has this address: before that no socket gets it.
void wait_until_usable(const std::string &ip)
{
    sockaddr_in6 at = {};
    at.sin6_family = AF_INET6;
    inet_pton(AF_INET6, ip.c_str(), &at.sin6_addr);
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    while (bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof at) != 0 && errno == EADDRNOTAVAIL)
        poll(nullptr, 0, 1);
    close(fd);
}

bool own_network()
{
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request = {};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    bool good = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    request = {};
    std::strcpy(request.ifr_name, "lo:1");
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    inet_pton(AF_INET, own_text(4, 1).c_str(), &at.sin_addr);
    std::memcpy(&request.ifr_addr, &at, sizeof at);
    good = good && ioctl(fd, SIOCSIFADDR, &request) == 0;
    close(fd);
    fd = socket(AF_INET6, SOCK_DGRAM, 0);
    for (int i = 1; i <= OWN_IPV6 && good; ++i) {
        ipv6_request address = {};
        inet_pton(AF_INET6, own_text(6, i).c_str(), &address.address);
        address.prefix_length = 128;
        address.interface = static_cast<int>(if_nametoindex("lo"));
        good = ioctl(fd, SIOCSIFADDR, &address) == 0;
    }
    close(fd);
    for (int i = 1; i <= OWN_IPV6 && good; ++i)
        wait_until_usable(own_text(6, i));
    return good;
}

} // namespace

void in_own_network(const std::function<void()> &test)
{
    std::exception_ptr thrown;
    std::thread([&] {
        try {
            if (!own_network())
                skip("network namespaces are not allowed here");
            test();
        } catch (...) {
            thrown = std::current_exception();
        }
    }).join();
    if (thrown)
        std::rethrow_exception(thrown);
}

std::string own_text(int family, int number)
{
    char text[64];
    std::snprintf(text, sizeof text, family == 4 ? "192.0.2.%d" : "2001:db8::%x", static_cast<unsigned>(number));
    return text;
}

std::pair<int, int> listener_at(const std::string &ip, int port, bool works)
{
    const bool six = ip.find(':') != ip.npos;
    sockaddr_in v4 = {};
    sockaddr_in6 v6 = {};
    v4.sin_family = AF_INET;
    v6.sin6_family = AF_INET6;
    v4.sin_port = v6.sin6_port = htons(static_cast<std::uint16_t>(port));
    auto *at = six ? reinterpret_cast<sockaddr *>(&v6) : reinterpret_cast<sockaddr *>(&v4);
    socklen_t size = six ? sizeof v6 : sizeof v4;
    const int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0), one = 1;
    if (inet_pton(six ? AF_INET6 : AF_INET, ip.c_str(),
                  six ? static_cast<void *>(&v6.sin6_addr) : static_cast<void *>(&v4.sin_addr)) != 1 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 || bind(fd, at, size) != 0 ||
        (works && listen(fd, 8) != 0) || getsockname(fd, at, &size) != 0)
        fail("no listener at " + ip);
    return {fd, ntohs(six ? v6.sin6_port : v4.sin_port)};
}

bool same_hop(byway::route_ref a, byway::route_ref b)
{
    byway_ip left, right;
    std::uint16_t left_port = 0, right_port = 0;
    byway_route_hop(a.get(), &left, &left_port);
    byway_route_hop(b.get(), &right, &right_port);
    return left_port == right_port && left.family == right.family && std::memcmp(left.bytes, right.bytes, 16) == 0;
}

} // namespace conform
