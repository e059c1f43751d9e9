/* Calls HelloService the way any HTTP client would, and lets byway say where: caller <zookeeper>.
 *
 * Every 20 ms it calls hello and hello2 once each and prints "<milliseconds> <method> <answer>": the port of the
 * provider that answered, "none" when no provider may serve the call, "fail" when all that may did not answer. */
#define _POSIX_C_SOURCE 200809L
#include "byway.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define TEXT(s) (s), BYWAY_NUL

/* As Dubbo's consumers describe themselves: rules ask for interface, application, side. */
static const char consumer[] = "consumer://127.0.0.1/org.example.HelloService?interface=org.example.HelloService"
                               "&application=hello-c&side=consumer";

/* Arguments are evaluated in any order, so the place of the error is passed, not what is in it. */
static void need(byway_status status, byway_error **err)
{
    byway_str message = { "", 0 };
    if (status >= 0)
        return;
    byway_error_message(err != NULL ? *err : NULL, &message);
    fprintf(stderr, "%s: %s\n", byway_status_name(status), message.data);
    exit(1);
}

/* One HTTP call; the answer, or 0 when the provider does not answer. */
static int http_call(const char *host, int port, const char *method)
{
    static const char body[] = "[\"world\"]";
    char text[1024], *answer;
    struct sockaddr_in address = { 0 };
    struct timeval patience = { 20, 0 };
    size_t length = 0;
    ssize_t got;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return 0;
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return 0;
    }
    snprintf(text, sizeof text,
             "POST /org.example.HelloService/%s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
             method, host, port, sizeof body - 1, body);
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0) {
        close(fd);
        return 0;
    }
    memset(text, 0, sizeof text);
    while (length + 1 < sizeof text && (got = recv(fd, text + length, sizeof text - 1 - length, 0)) > 0) {
        length += (size_t)got;
        /* The answer is a port between quotes. */
        answer = strstr(text, "\r\n\r\n");
        if (answer && (answer = strchr(answer, '"')) && strchr(answer + 1, '"'))
            break;
    }
    close(fd);
    if (strncmp(text, "HTTP/1.1 200", 12))
        return 0;
    answer = strstr(text, "\r\n\r\n");
    answer = answer ? strchr(answer, '"') : NULL;
    return answer ? atoi(answer + 1) : 0;
}

/* Host and port of the provider with this tag. */
static int endpoint(byway_chain *chain, uint64_t tag, char *host, size_t room)
{
    byway_invokers *list = NULL;
    byway_text *url = NULL;
    byway_str text = { "", 0 };
    size_t row = 0;
    int port = 0;
    const char *colon;
    if (byway_chain_invokers(chain, &list, NULL) == BYWAY_OK && byway_invokers_row_of(list, tag, &row) == BYWAY_OK &&
        byway_invokers_url(list, row, &url, NULL) == BYWAY_OK) {
        byway_text_str(url, &text);
        text.data = strstr(text.data, "://") + 3;
        colon = strchr(text.data, ':');
        if (colon) {
            snprintf(host, room, "%.*s", (int)(colon - text.data), text.data);
            port = atoi(colon + 1);
        }
    }
    byway_text_free(url);
    byway_invokers_release(list);
    return port;
}

static void call(byway_chain *chain, const char *method)
{
    byway_invocation *invocation = NULL;
    byway_pick_options options = BYWAY_PICK_OPTIONS_INIT;
    byway_picked picked;
    uint64_t tried[3];
    char host[64];
    const char *outcome = "none";
    char answer[16];
    struct timespec now;
    byway_status status;
    int port;
    need(byway_invocation_new(&invocation, NULL), NULL);
    need(byway_invocation_set_method(invocation, TEXT(method)), NULL);
    options.exclude = tried;
    /* Who does not answer is tried no more: the next one is, as Dubbo's fail-over does. */
    while (options.exclude_count < 3) {
        status = byway_chain_pick(chain, invocation, &options, &picked, NULL);
        if (status != BYWAY_OK)
            break;
        outcome = "fail";
        port = endpoint(chain, picked.tag, host, sizeof host);
        port = port ? http_call(host, port, method) : 0;
        byway_chain_pick_end(chain, picked.ticket, port != 0, -1);
        if (port) {
            snprintf(answer, sizeof answer, "%d", port);
            outcome = answer;
            break;
        }
        tried[options.exclude_count++] = picked.tag;
    }
    byway_invocation_free(invocation);
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%lld %s %s\n", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, method, outcome);
}

int main(int argc, char **argv)
{
    byway_engine *engine = NULL;
    byway_source *source = NULL;
    byway_chain *chain = NULL;
    byway_error *err = NULL;
    const struct timespec pause = { 0, 20 * 1000 * 1000 };
    if (argc != 2)
        return 2;
    need(byway_engine_new(NULL, &engine, &err), &err);
    need(byway_source_new_zookeeper(engine, TEXT(argv[1]), NULL, &source, &err), &err);
    need(byway_chain_new(engine, TEXT(consumer), NULL, &chain, &err), &err);
    /* Rules, providers, overrides: from here on the chain follows all of it. */
    need(byway_chain_bind_source(chain, source, NULL, NULL, 60000, &err), &err);
    printf("ready\n");
    /* Until nobody reads any more. */
    while (!ferror(stdout)) {
        call(chain, "hello");
        call(chain, "hello2");
        fflush(stdout);
        nanosleep(&pause, NULL);
    }
    byway_chain_release(chain);
    byway_source_release(source);
    byway_engine_release(engine);
    return 0;
}
