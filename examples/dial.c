/*
 * From an address to a connected socket in one blocking call.
 *
 *   dial             a name with three addresses on loopback: one stays silent, one refuses, one works
 *   dial HOST PORT   a host of yours, through the system's resolver
 */
#include "byway.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static byway_error *err;

static void must(byway_status status, const char *what)
{
    byway_str message = {"", 0}, subject = {"", 0};
    if (status >= 0)
        return;
    byway_error_message(err, &message);
    byway_error_subject(err, &subject);
    fprintf(stderr, "%s: %s (%s) %s\n", what, message.data, subject.data, byway_status_name(status));
    byway_error_free(err);
    exit(1);
}

/* A listener at this loopback address; port 0 takes a free one. */
static int listener(const char *ip, int backlog, struct sockaddr_in *at)
{
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at->sin_family = AF_INET;
    if (fd < 0 || inet_pton(AF_INET, ip, &at->sin_addr) != 1 || bind(fd, (struct sockaddr *)at, size) != 0 ||
        listen(fd, backlog) != 0 || getsockname(fd, (struct sockaddr *)at, &size) != 0) {
        perror(ip);
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    static const char hosts[] = "127.0.0.3 service.example\n127.0.0.2 service.example\n127.0.0.1 service.example\n";
    byway_engine *engine = NULL;
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_dial *dial = NULL;
    byway_text *text = NULL;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_connected connected;
    byway_str shown;
    byway_status status;
    int works = -1, silent = -1, filler = -1;

    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: %s [HOST PORT]\n", argv[0]);
        return 2;
    }
    must(byway_engine_new(NULL, &engine, &err), "engine");
    where.host.len = BYWAY_NUL;
    if (argc == 3) {
        where.host.data = argv[1];
        where.port = atoi(argv[2]);
        must(byway_dns_new_system(engine, &dns, &err), "dns");
    } else {
        struct sockaddr_in at, quiet;
        memset(&at, 0, sizeof at);
        works = listener("127.0.0.1", 8, &at);
        /* Its queue is full from the start, so further connections get no answer. */
        quiet = at;
        silent = listener("127.0.0.3", 0, &quiet);
        filler = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(filler, (struct sockaddr *)&quiet, sizeof quiet) != 0)
            perror("filler");
        where.host.data = "service.example";
        where.port = ntohs(at.sin_port);
        must(byway_dns_new_hosts(engine, hosts, BYWAY_NUL, &dns, &err), "hosts");
    }
    where.dns = dns;
    must(byway_address_new(engine, &where, &address, &err), "address");
    must(byway_selector_new(engine, address, NULL, &selector, &err), "selector");
    options.flags = BYWAY_DIAL_BLOCKING_SOCKET;
    must(byway_dial_new(engine, selector, &options, NULL, &dial, &err), "dial");

    status = byway_dial_run(dial, 10000, &connected, &err);
    if (byway_dial_explain(dial, BYWAY_FORMAT_TEXT, &text, NULL) == BYWAY_OK) {
        byway_text_str(text, &shown);
        printf("%s", shown.data);
        byway_text_free(text);
    }
    must(status, "dial");
    printf("the socket is descriptor %d and ours\n", (int)connected.fd);

    /* The host may read and write it now; byway keeps nothing of it. */
    close(connected.fd);
    byway_route_release(connected.route);
    byway_dial_free(dial);
    byway_selector_free(selector);
    byway_address_release(address);
    byway_dns_release(dns);
    byway_engine_release(engine);
    if (works >= 0) {
        close(works);
        close(silent);
        close(filler);
    }
    return 0;
}
