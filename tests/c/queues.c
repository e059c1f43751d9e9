/* Queues as an event loop sees them: descriptor, epoll, notify, wake-up, deadlines, one poller at a time. */
#include "tap.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

static int readable(int fd, int timeout_ms)
{
    struct pollfd p = { 0 };
    p.fd = fd;
    p.events = POLLIN;
    return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

static void *wake(void *queue)
{
    (void)byway_queue_wakeup(queue);
    return NULL;
}

static atomic_int poller_in;

/* Far longer than the suite lets a program run: a wait that nobody ends fails there, with the place where it stood. */
enum { FOR_EVER_MS = 3600000 };

static void *poll_long(void *queue)
{
    size_t n = 9;
    byway_status status;
    atomic_store(&poller_in, 1);
    /* The main thread's short polls may be in the way; BUSY here would leave it nobody to be turned away by. */
    while ((status = byway_queue_poll(queue, FOR_EVER_MS, NULL, sizeof(byway_completion), 0, &n, NULL)) ==
           BYWAY_E_BUSY)
        sched_yield();
    return (void *)(intptr_t)status;
}

static void descriptor(void)
{
    byway_queue *queue = NULL;
    byway_completion records[4];
    struct epoll_event event = { 0 };
    size_t n = 9;
    int32_t fd = -7, again = -7;
    int set = epoll_create1(0);
    NEED(byway_queue_new(NULL, &queue, NULL));
    NEED(byway_queue_fd(queue, &fd));
    NEED(byway_queue_fd(queue, &again));
    OK(fd >= 0 && fd == again, "a queue has one descriptor");
    event.events = EPOLLIN;
    event.data.u64 = 7;
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll takes it");
    OK(epoll_wait(set, &event, 1, 0) == 0, "an empty queue is quiet");
    NEED(byway_queue_wakeup(queue));
    OK(epoll_wait(set, &event, 1, 1000) == 1 && event.data.u64 == 7, "a wake-up shows on the descriptor");
    OK(epoll_wait(set, &event, 1, 0) == 1, "the descriptor is level-triggered");
    STATUS(byway_queue_poll(queue, 0, records, sizeof records[0], 4, &n, NULL), BYWAY_OK, "poll takes the wake-up");
    OK(n == 0 && epoll_wait(set, &event, 1, 0) == 0, "and the descriptor is quiet again");
    close(set);
    byway_queue_release(queue);
    errno = 0;
    OK(!readable(fd, 0), "the descriptor is gone with the queue");
}

static void one_poller(void)
{
    byway_queue *queue = NULL;
    pthread_t thread;
    void *status;
    size_t n;
    byway_status second;
    NEED(byway_queue_new(NULL, &queue, NULL));
    atomic_store(&poller_in, 0);
    pthread_create(&thread, NULL, poll_long, queue);
    while (!atomic_load(&poller_in))
        sched_yield();
    /* The other thread may not have reached the queue yet: until it has, this poll simply finds nothing. */
    while ((second = byway_queue_poll(queue, 0, NULL, sizeof(byway_completion), 0, &n, NULL)) == BYWAY_OK)
        sched_yield();
    STATUS(second, BYWAY_E_BUSY, "a second poller is turned away at once");
    NEED(byway_queue_wakeup(queue));
    pthread_join(thread, &status);
    STATUS((byway_status)(intptr_t)status, BYWAY_OK, "a wake-up ends the first one's wait");
    NEED(byway_queue_wakeup(queue));
    STATUS(byway_queue_poll(queue, FOR_EVER_MS, NULL, sizeof(byway_completion), 0, &n, NULL), BYWAY_OK,
           "a wake-up before the poll is not lost");
    pthread_create(&thread, NULL, wake, queue);
    STATUS(byway_queue_poll(queue, FOR_EVER_MS, NULL, sizeof(byway_completion), 0, &n, NULL), BYWAY_OK,
           "a wake-up from another thread ends a wait");
    pthread_join(thread, NULL);
    byway_queue_release(queue);
}

static int notified, destroyed;

static void on_notify(void *user_data)
{
    notified += user_data == &notified;
}

static void on_destroy(void *user_data)
{
    destroyed += user_data == &notified;
}

static void notify(void)
{
    byway_queue *queue = NULL;
    byway_notify_callbacks set = BYWAY_NOTIFY_CALLBACKS_INIT;
    byway_error *err = NULL;
    byway_str subject;
    int64_t deadline = 5;
    size_t n;
    set.user_data = &notified;
    set.destroy = on_destroy;
    NEED(byway_queue_new(NULL, &queue, NULL));
    STATUS(byway_queue_set_notify(queue, &set, &err), BYWAY_E_NULL, "a set without its function is refused");
    byway_error_subject(err, &subject);
    OK(!strcmp(subject.data, "callbacks") && destroyed == 1, "says so, and destroys what it was given");
    byway_error_free(err);
    set.notify = on_notify;
    NEED(byway_queue_set_notify(queue, &set, NULL));
    NEED(byway_queue_wakeup(queue));
    OK(notified == 1, "a wake-up notifies");
    NEED(byway_queue_set_notify(queue, &set, NULL));
    OK(destroyed == 2, "replacing destroys the set before");
    STATUS(byway_queue_set_notify(NULL, &set, NULL), BYWAY_E_BAD_HANDLE, "no queue");
    OK(destroyed == 3, "a refused registration destroys its set");
    set.struct_size = 8;
    STATUS(byway_queue_set_notify(queue, &set, NULL), BYWAY_E_STRUCT_SIZE, "too small a struct");
    OK(destroyed == 3, "cannot say how to end it");
    STATUS(byway_queue_deadline(queue, &deadline), BYWAY_OK, "the next deadline");
    OK(deadline == -1, "is none");
    NEED(byway_queue_poll(queue, 0, NULL, sizeof(byway_completion), 0, &n, NULL));
    byway_queue_release(queue);
    OK(destroyed == 4, "the queue's end destroys the last set");
}

static void capacity(void)
{
    byway_queue_options options = BYWAY_QUEUE_OPTIONS_INIT;
    byway_queue *queue = (byway_queue *)8;
    byway_error *err = NULL;
    byway_completion records[2];
    size_t n = 9;
    options.flags = 0x80;
    STATUS(byway_queue_new(&options, &queue, &err), BYWAY_E_ENUM, "unknown flags are refused");
    OK(queue == NULL && byway_error_code(err) == BYWAY_E_ENUM, "and nothing is handed out but the reason");
    byway_error_free(err);
    options.flags = BYWAY_QUEUE_LOOP;
    NEED(byway_queue_new(&options, &queue, NULL));
    STATUS(byway_queue_poll(queue, 0, records, 0, 2, &n, NULL), BYWAY_E_ARGUMENT, "a stride of 0");
    STATUS(byway_queue_poll(queue, 0, NULL, sizeof records[0], 2, &n, NULL), BYWAY_E_NULL, "room without a place");
    STATUS(byway_queue_poll(queue, 0, records, sizeof records[0], 2, NULL, NULL), BYWAY_E_NULL, "no place for n");
    OK(byway_queue_lost(queue) == 0, "nothing was lost");
    byway_queue_release(queue);
}

int main(void)
{
    descriptor();
    one_poller();
    notify();
    capacity();
    return tap_done();
}
