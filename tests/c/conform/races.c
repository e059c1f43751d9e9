/* A network of the test's own, in which nothing happens but what the test does. */
#include "races.h"
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OWN_IPV6 = 15 };

/* Of <linux/ipv6.h>, which does not go with <netinet/in.h>. */
struct ipv6_request {
    struct in6_addr address;
    uint32_t prefix_length;
    int interface;
};

/* Waits until the kernel has found out that nobody else has this address: before that no socket gets it. */
static void usable(const char *ip)
{
    struct sockaddr_in6 at;
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    memset(&at, 0, sizeof at);
    at.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, ip, &at.sin6_addr) != 1)
        abort();
    while (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 && errno == EADDRNOTAVAIL)
        poll(NULL, 0, 1);
    close(fd);
}

static int own_ipv6(void)
{
    struct ipv6_request request;
    int fd = socket(AF_INET6, SOCK_DGRAM, 0), good = fd >= 0, i;
    memset(&request, 0, sizeof request);
    request.prefix_length = 128;
    request.interface = (int)if_nametoindex("lo");
    for (i = 1; i <= OWN_IPV6 && good; i++)
        good = inet_pton(AF_INET6, own_text(6, i), &request.address) == 1 && ioctl(fd, SIOCSIFADDR, &request) == 0;
    close(fd);
    for (i = 1; i <= OWN_IPV6 && good; i++)
        usable(own_text(6, i));
    return good;
}

static int own_network(void)
{
    struct ifreq request;
    struct sockaddr_in *at = (struct sockaddr_in *)&request.ifr_addr;
    int fd, good;
    if (unshare(CLONE_NEWNET) != 0)
        return 0;
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    good = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo:1");
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(0xc0000201);
    good = good && ioctl(fd, SIOCSIFADDR, &request) == 0;
    close(fd);
    return good && own_ipv6();
}

struct job {
    void (*run)(void *data);
    void *data;
    int allowed;
};

static void *on_thread(void *data)
{
    struct job *job = data;
    job->allowed = own_network();
    if (job->allowed)
        job->run(job->data);
    return NULL;
}

int in_own_network(void (*run)(void *data), void *data)
{
    struct job job;
    pthread_t thread;
    job.run = run;
    job.data = data;
    job.allowed = 0;
    if (pthread_create(&thread, NULL, on_thread, &job) != 0)
        abort();
    pthread_join(thread, NULL);
    return job.allowed;
}

const char *own_text(int family, int number)
{
    static char text[64];
    snprintf(text, sizeof text, family == 4 ? "192.0.2.%d" : "2001:db8::%x", (unsigned)number);
    return text;
}

byway_ip own_ip(int family, int number)
{
    byway_ip ip;
    memset(&ip, 0, sizeof ip);
    ip.family = (uint8_t)family;
    if (inet_pton(family == 4 ? AF_INET : AF_INET6, own_text(family, number), ip.bytes) != 1)
        abort();
    return ip;
}

int listener_at(const char *ip, int wanted, int works, int *port)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    int colon = strchr(ip, ':') != NULL, fd = socket(colon ? AF_INET6 : AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr *at = colon ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t size = colon ? sizeof v6 : sizeof v4;
    memset(&v4, 0, sizeof v4);
    memset(&v6, 0, sizeof v6);
    v4.sin_family = AF_INET;
    v6.sin6_family = AF_INET6;
    v4.sin_port = v6.sin6_port = htons((uint16_t)wanted);
    if (inet_pton(colon ? AF_INET6 : AF_INET, ip, colon ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 || bind(fd, at, size) != 0 ||
        (works && listen(fd, 8) != 0) || getsockname(fd, at, &size) != 0)
        abort();
    *port = ntohs(colon ? v6.sin6_port : v4.sin_port);
    return fd;
}

int same_hop(const byway_route *a, const byway_route *b)
{
    byway_ip left, right;
    uint16_t left_port = 0, right_port = 0;
    (void)byway_route_hop(a, &left, &left_port);
    (void)byway_route_hop(b, &right, &right_port);
    return left_port == right_port && left.family == right.family && memcmp(left.bytes, right.bytes, 16) == 0;
}
