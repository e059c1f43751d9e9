/* A panic inside each export, made by a library with feature `failpoints`: a status or the harmless value, an error
 * object that says where, nothing printed, only the object under change is poisoned, and the library goes on. */
#include "byway.h"

/* Only in such a library. From now on every guard (point 0) or every exclusive handle taken (point 1) panics, or none
 * does. Returns how often it has since the last call. */
extern int64_t byway_failpoint_arm(int32_t point, int32_t on);

static int32_t point;
static int fired, armed;
static byway_status expected;
#define BEFORE_CALL() (armed ? (void)byway_failpoint_arm(point, 1) : (void)0)
#define AFTER_CALL() (armed ? (void)(fired = byway_failpoint_arm(point, 0) > 0) : (void)0)
#define EXPECT_STATUS(name, bad, status) \
    do { \
        if (expected && (fired || expected != BYWAY_E_PANIC) && (status) != expected) \
            problem(name, bad, "not the status that was to come", status); \
    } while (0)

#include "calls.c"
#include "calls.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Answer constants or look into a table: no guard, nothing that could panic. */
static const char *const unguarded[] = { "byway_abi_version", "byway_version", "byway_version_number",
                                         "byway_status_name", "byway_status_message" };

static const char *other_type(int index)
{
    return index < (int)(sizeof types / sizeof types[0]) ? types[index] : NULL;
}

static int is_unguarded(const char *name)
{
    size_t i;
    for (i = 0; i < sizeof unguarded / sizeof unguarded[0]; i++)
        if (!strcmp(unguarded[i], name))
            return 1;
    return 0;
}

/* What one export does with a panic in its guard. */
static void guard_of(const struct export *export)
{
    problems = 0;
    point = 0;
    armed = 1;
    expected = export->is_status ? BYWAY_E_PANIC : 0;
    export->call(-1);
    armed = 0;
    expected = 0;
    end_all();
    if (is_unguarded(export->name))
        OK(!fired, "%s needs no guard", export->name);
    else if (!fired && export->self && !zoo_knows(export->self))
        SKIP(export->name, "zoo.c makes no such handle");
    else
        OK(fired && problems == 0, "%s catches a panic", export->name);
}

/* A panic in the middle of a change to an exclusive handle. */
static void poison(const struct export *export)
{
    void *self;
    if (!export->self || !export->is_status || !(self = zoo_make(export->self)))
        return;
    problems = 0;
    point = 1;
    armed = 1;
    given_self = self;
    export->call(-1);
    armed = 0;
    if (fired) {
        expected = BYWAY_E_POISONED;
        export->call(-1);
        expected = 0;
        OK(problems == 0, "%s poisons its handle and nothing else", export->name);
    }
    given_self = NULL;
    end_all();
    zoo_end(export->self, self);
}

int main(void)
{
    size_t i;
    byway_error *err = NULL;
    byway_str text;
    char path[] = "/tmp/byway-panics-XXXXXX";
    int before = dup(2), file = mkstemp(path);
    struct stat written;
    unlink(path);
    dup2(file, 2);
    /* Panics are kept quiet from the first call that is guarded as a whole. */
    byway_queue_release(NULL);
    panics_are_meant = 1;
    for (i = 0; i < sizeof exports / sizeof exports[0]; i++)
        guard_of(&exports[i]);
    for (i = 0; i < sizeof exports / sizeof exports[0]; i++)
        poison(&exports[i]);
    (void)byway_failpoint_arm(0, 1);
    STATUS(byway_engine_shutdown(NULL, 0, &err), BYWAY_E_PANIC, "a panic is a status");
    (void)byway_failpoint_arm(0, 0);
    byway_error_message(err, &text);
    OK(strstr(text.data, "failpoint.rs:") != NULL, "its error has the place: %s", text.data);
    OK(byway_error_source(err) == BYWAY_ERROR_SOURCE_PANIC, "and says that it was a panic");
    byway_error_free(err);
    fflush(stderr);
    fstat(file, &written);
    dup2(before, 2);
    OK(written.st_size == 0, "nothing was printed (%ld bytes)", (long)written.st_size);
    zoo_close();
    return tap_done();
}
