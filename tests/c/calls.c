/* What the generated calls stand on: handles good and bad, and what is known after a call. Included, not linked. */
#include "tap.h"
#include "zoo.h"

#define POISON ((void *)(uintptr_t)0xdeadbeef)
#define UNUSED __attribute__((unused))

static const byway_call *inside_call UNUSED;
static const char bad_utf8[] UNUSED = "\xff\xfe\x80";
static const char odd_text[] UNUSED = "a\r\nb%00[::1%25eth0]\x7f";
static char long_text[300001] UNUSED;
static const unsigned char bytes[64] UNUSED;
static unsigned char room[16][16384] UNUSED __attribute__((aligned(16)));

/* One call's objects. */
static struct { const char *type; void *handle; } made[64];
static size_t made_count;
static int problems, panics_are_meant;

static void owned(const char *type, void *handle)
{
    if (made_count < sizeof made / sizeof made[0]) {
        made[made_count].type = type;
        made[made_count].handle = handle;
        made_count++;
    }
}

/* Set by programs that keep objects from call to call: takes one out, true when it had it. */
static int (*forget)(const void *handle) UNUSED;
/* Likewise: an object that is kept, or NULL for a fresh one. */
static void *(*recall)(const char *type) UNUSED;

static void consumed(const void *handle)
{
    size_t i;
    if (forget && forget(handle))
        return;
    for (i = 0; i < made_count; i++)
        if (made[i].handle == handle) {
            made[i] = made[--made_count];
            return;
        }
}

static void *live(const char *type)
{
    void *handle = recall ? recall(type) : NULL;
    if (handle)
        return handle;
    handle = zoo_make(type);
    if (handle)
        owned(type, handle);
    return handle;
}

UNUSED static void end_all(void)
{
    while (made_count) {
        made_count--;
        zoo_end(made[made_count].type, made[made_count].handle);
    }
}

static const char *other_type(int index);

/* 0 NULL, 1 misaligned, 2 freed, then one of every type; the one of its own type is freed instead. */
static void *bad_handle(const char *type, int how)
{
    const char *other;
    void *handle;
    if (how == 0)
        return NULL;
    other = how < 3 ? type : other_type(how - 3);
    if (how == 1) {
        handle = live(type);
        return handle ? (char *)handle + 8 : NULL;
    }
    if (!other || !strcmp(other, type)) {
        handle = zoo_make(type);
        zoo_end(type, handle);
        return handle;
    }
    return live(other);
}

/* Set: what calls get as self instead of an object of their own. */
static void *given_self UNUSED;

UNUSED static void *self_for(const char *type)
{
    return given_self ? given_self : live(type);
}

#ifndef BEFORE_CALL
#define BEFORE_CALL() ((void)0)
#define AFTER_CALL() ((void)0)
#endif

static void problem(const char *name, int bad, const char *what, byway_status status)
{
    problems++;
    printf("# %s, bad argument %d: %s (%s)\n", name, bad, what, byway_status_name(status));
}

UNUSED static void seen(const char *name, int bad, byway_status status)
{
    if (!strcmp(byway_status_name(status), "BYWAY_UNKNOWN"))
        problem(name, bad, "a status nobody knows", status);
#ifdef EXPECT_STATUS
    EXPECT_STATUS(name, bad, status);
#endif
    if (status == BYWAY_E_PANIC && !panics_are_meant)
        problem(name, bad, "a panic", status);
}

UNUSED static void refused(const char *name, int bad, byway_status status)
{
    if (status != BYWAY_E_BAD_HANDLE)
        problem(name, bad, "self was not refused", status);
}

UNUSED static void cleared(const char *name, int bad, const char *parameter, void *place, int is_err, byway_status status)
{
    if (is_err) {
        if (place == NULL || place == POISON)
            problem(name, bad, "no error object", status);
        else if (byway_error_code(place) != status)
            problem(name, bad, "the error has another code", status);
    } else if (place != NULL && !panics_are_meant) {
        problem(name, bad, parameter, status);
    }
}
