/* A test program in C: a plan at the end, one line a test. Each test file is one program. */
#ifndef TAP_H
#define TAP_H

#include "byway.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_tests, tap_failures;

static int tap_line(int good, const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tap_tests++;
    if (!good)
        tap_failures++;
    printf("%sok %d - ", good ? "" : "not ", tap_tests);
    vprintf(format, arguments);
    printf("\n");
    if (!good)
        printf("# at %s:%d\n", file, line);
    fflush(stdout);
    va_end(arguments);
    return good;
}

#define OK(condition, ...) tap_line(!!(condition), __FILE__, __LINE__, __VA_ARGS__)

#define SKIP(what, why) \
    do { \
        tap_tests++; \
        printf("ok %d - %s # SKIP %s\n", tap_tests, what, why); \
    } while (0)

/* A status by name, so that a failure can be read. */
#define STATUS(got, want, what) \
    do { \
        byway_status got_ = (got); \
        if (!OK(got_ == (want), "%s", (what))) \
            printf("# got %s, want %s\n", byway_status_name(got_), byway_status_name(want)); \
    } while (0)

/* What must hold for the rest of the program to make sense. */
#define NEED(status) \
    do { \
        byway_status need_ = (status); \
        if (need_ != BYWAY_OK) { \
            printf("Bail out! %s:%d: %s is %s\n", __FILE__, __LINE__, #status, byway_status_name(need_)); \
            exit(2); \
        } \
    } while (0)

static int tap_done(void)
{
    printf("1..%d\n", tap_tests);
    return tap_failures ? 1 : 0;
}

#endif
