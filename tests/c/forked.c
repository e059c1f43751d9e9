/* In a forked child values keep working, everything else says so, and no host code runs. */
#include "tap.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static int destroyed;

static void on_destroy(void *user_data)
{
    (void)user_data;
    destroyed++;
}

static void on_notify(void *user_data)
{
    (void)user_data;
}

static atomic_int stop;
static byway_queue *busy_queue;

/* Keeps the library's locks in use while the process forks. */
static void *busy(void *nothing)
{
    (void)nothing;
    while (!atomic_load(&stop)) {
        byway_queue *queue = NULL;
        size_t n;
        (void)byway_queue_new(NULL, &queue, NULL);
        (void)byway_queue_wakeup(busy_queue);
        (void)byway_queue_poll(queue, 0, NULL, sizeof(byway_completion), 0, &n, NULL);
        byway_queue_release(queue);
    }
    return NULL;
}

/* Destroyed in the parent before the fork. */
static int before;

static int child(byway_engine *engine, byway_queue *queue, byway_error *err)
{
    byway_engine *made = NULL;
    byway_queue *new_queue = NULL;
    byway_error *why = NULL;
    byway_str text;
    size_t n;
    int32_t fd;
    int64_t ms;
    int bad = 0;
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "# child: %s\n", #condition); \
            bad++; \
        } \
    } while (0)
    byway_error_message(err, &text);
    CHECK(text.len > 0 && byway_error_code(err) == BYWAY_E_BAD_HANDLE);
    CHECK(byway_engine_shutdown(engine, 0, &why) == BYWAY_E_FORKED);
    CHECK(byway_error_code(why) == BYWAY_E_FORKED);
    byway_error_free(why);
    CHECK(byway_queue_poll(queue, 0, NULL, 24, 0, &n, NULL) == BYWAY_E_FORKED);
    CHECK(byway_queue_fd(queue, &fd) == BYWAY_E_FORKED);
    CHECK(byway_queue_deadline(queue, &ms) == BYWAY_E_FORKED);
    CHECK(byway_queue_wakeup(queue) == BYWAY_E_FORKED);
    CHECK(byway_queue_set_notify(queue, NULL, NULL) == BYWAY_E_FORKED);
    CHECK(byway_engine_queue(engine) == NULL);
    CHECK(byway_queue_new(NULL, &new_queue, NULL) == BYWAY_E_FORKED && !new_queue);
    CHECK(byway_engine_new(NULL, &made, NULL) == BYWAY_E_FORKED && !made);
    CHECK(byway_abi_version() == BYWAY_ABI_VERSION);
    byway_error_free(err);
    byway_queue_release(queue);
    byway_engine_release(engine);
    CHECK(destroyed == before);
    return bad;
}

int main(void)
{
    byway_engine *engine = NULL;
    byway_queue *queue = NULL;
    byway_error *err = NULL;
    byway_notify_callbacks set = BYWAY_NOTIFY_CALLBACKS_INIT;
    pthread_t thread;
    int round, good = 0, status = 0;
    const int rounds = 20;
    set.destroy = on_destroy;
    set.notify = on_notify;
    NEED(byway_queue_new(NULL, &busy_queue, NULL));
    pthread_create(&thread, NULL, busy, NULL);
    for (round = 0; round < rounds; round++) {
        pid_t pid;
        NEED(byway_engine_new(NULL, &engine, NULL));
        queue = byway_engine_queue(engine);
        NEED(byway_queue_set_notify(queue, &set, NULL));
        (void)byway_engine_shutdown(NULL, 0, &err);
        fflush(stdout);
        before = destroyed;
        pid = fork();
        if (pid == 0)
            _exit(child(engine, queue, err));
        waitpid(pid, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        byway_error_free(err);
        NEED(byway_engine_shutdown(engine, 0, NULL));
        byway_queue_release(queue);
        byway_engine_release(engine);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    byway_queue_release(busy_queue);
    OK(good == rounds, "%d of %d children are told apart while another thread is busy", good, rounds);
    OK(destroyed == rounds, "and the parent's sets are destroyed in the parent alone (%d)", destroyed);
    return tap_done();
}
