/* Two copies of the library in one process, and one that comes and goes a hundred times.
 * usage: copies LIBRARY OTHER_COPY */
#include "tap.h"
#include <dirent.h>
#include <dlfcn.h>

typedef byway_status (*queue_new)(const byway_queue_options *, byway_queue **, byway_error **);
typedef byway_status (*queue_wakeup)(byway_queue *);
typedef byway_queue *(*queue_retain)(byway_queue *);
typedef void (*queue_release)(byway_queue *);
typedef byway_status (*engine_new)(const byway_engine_options *, byway_engine **, byway_error **);

struct copy {
    void *library;
    queue_new queue_new;
    queue_wakeup queue_wakeup;
    queue_retain queue_retain;
    queue_release queue_release;
    engine_new engine_new;
};

static struct copy open_copy(const char *path)
{
    struct copy c;
    c.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!c.library) {
        printf("Bail out! %s\n", dlerror());
        exit(2);
    }
    *(void **)&c.queue_new = dlsym(c.library, "byway_queue_new");
    *(void **)&c.queue_wakeup = dlsym(c.library, "byway_queue_wakeup");
    *(void **)&c.queue_retain = dlsym(c.library, "byway_queue_retain");
    *(void **)&c.queue_release = dlsym(c.library, "byway_queue_release");
    *(void **)&c.engine_new = dlsym(c.library, "byway_engine_new");
    return c;
}

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    struct copy one, two;
    byway_queue *queue = NULL, *other = NULL;
    byway_engine *engine = NULL;
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    int round, good = 0, before;
    if (argc < 3)
        return 2;
    one = open_copy(argv[1]);
    two = open_copy(argv[2]);
    OK(one.queue_new != two.queue_new, "two copies are loaded");
    NEED(one.queue_new(NULL, &queue, NULL));
    NEED(two.queue_new(NULL, &other, NULL));
    STATUS(two.queue_wakeup(queue), BYWAY_E_BAD_HANDLE, "a handle of another copy is refused");
    OK(two.queue_retain(queue) == NULL, "and not retained");
    two.queue_release(queue);
    STATUS(one.queue_wakeup(queue), BYWAY_OK, "nor released");
    options.queue = queue;
    STATUS(two.engine_new(&options, &engine, NULL), BYWAY_E_BAD_HANDLE, "nor taken inside a struct");
    one.queue_release(queue);
    two.queue_release(other);
    dlclose(two.library);
    before = open_descriptors();
    for (round = 0; round < 100; round++) {
        struct copy c = open_copy(argv[1]);
        byway_engine *e = NULL;
        if (c.engine_new(NULL, &e, NULL) == BYWAY_OK && c.queue_new(NULL, &queue, NULL) == BYWAY_OK) {
            void (*engine_release)(byway_engine *);
            byway_status (*shutdown)(byway_engine *, int64_t, byway_error **);
            *(void **)&engine_release = dlsym(c.library, "byway_engine_release");
            *(void **)&shutdown = dlsym(c.library, "byway_engine_shutdown");
            good += c.queue_wakeup(queue) == BYWAY_OK && shutdown(e, 0, NULL) == BYWAY_OK;
            engine_release(e);
            c.queue_release(queue);
        }
        dlclose(c.library);
    }
    OK(good == 100, "loaded, used and closed 100 times");
    OK(open_descriptors() == before, "no descriptor stays behind");
    return tap_done();
}
