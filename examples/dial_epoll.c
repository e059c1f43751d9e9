/*
 * A hundred dials in one thread: the host's own epoll loop watches one descriptor for each of them, and nothing else.
 * Every name has two addresses, of which the first refuses.
 */
#include "byway.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIALS 100

struct job {
    byway_selector *selector;
    byway_dial *dial;
    int fd;
};

static void must(byway_status status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, byway_status_message(status));
        exit(1);
    }
}

/* What is due for one dial; 1 when it is over. */
static int step(struct job *job, int loop, int *connected)
{
    byway_connected got;
    byway_error *err = NULL;
    byway_status status = byway_dial_step(job->dial, NULL, 0, &err);
    if (status == BYWAY_PENDING)
        return 0;
    if (status == BYWAY_OK && byway_dial_take(job->dial, &got, &err) == BYWAY_OK) {
        close(got.fd);
        byway_route_release(got.route);
        ++*connected;
    } else {
        byway_str message;
        byway_error_message(err, &message);
        fprintf(stderr, "%s\n", message.data);
        byway_error_free(err);
    }
    epoll_ctl(loop, EPOLL_CTL_DEL, job->fd, NULL);
    byway_dial_free(job->dial);
    byway_selector_free(job->selector);
    return 1;
}

int main(void)
{
    static const char hosts[] = "127.0.0.2 service.example\n127.0.0.1 service.example\n";
    static struct job jobs[DIALS];
    struct epoll_event events[64], event;
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    byway_engine *engine = NULL;
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), loop = epoll_create1(0);
    int left = DIALS, connected = 0, accepted = 0, i;

    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, DIALS) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0) {
        perror("listener");
        return 1;
    }
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);

    must(byway_engine_new(NULL, &engine, NULL), "engine");
    must(byway_dns_new_hosts(engine, hosts, BYWAY_NUL, &dns, NULL), "hosts");
    where.host.data = "service.example";
    where.host.len = BYWAY_NUL;
    where.port = ntohs(at.sin_port);
    where.dns = dns;
    must(byway_address_new(engine, &where, &address, NULL), "address");
    for (i = 0; i < DIALS; i++) {
        must(byway_selector_new(engine, address, NULL, &jobs[i].selector, NULL), "selector");
        must(byway_dial_new(engine, jobs[i].selector, NULL, NULL, &jobs[i].dial, NULL), "dial");
        must(byway_dial_fd(jobs[i].dial, &jobs[i].fd, NULL), "descriptor");
        event.data.ptr = &jobs[i];
        epoll_ctl(loop, EPOLL_CTL_ADD, jobs[i].fd, &event);
    }
    /* A fresh dial's descriptor is readable: its first step is due. */
    while (left > 0) {
        int ready = epoll_wait(loop, events, 64, 10000);
        if (ready <= 0) {
            fprintf(stderr, "nothing happened for ten seconds\n");
            return 1;
        }
        for (i = 0; i < ready; i++) {
            if (events[i].data.ptr != NULL) {
                left -= step(events[i].data.ptr, loop, &connected);
            } else {
                int fd = accept(listener, NULL, NULL);
                if (fd >= 0) {
                    close(fd);
                    accepted++;
                }
            }
        }
    }
    printf("%d of %d dials connected in one thread, each after a refused address\n", connected, DIALS);
    byway_address_release(address);
    byway_dns_release(dns);
    byway_engine_release(engine);
    close(listener);
    close(loop);
    return connected == DIALS ? 0 : 1;
}
