/* Runs the cases of tests/vectors through the C boundary. One file a subject; each names the kinds it runs. */
#ifndef CONFORM_H
#define CONFORM_H

#include "byway.h"
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum outcome { PASS, FAIL, SKIP };

/* Says why the case under way fails or is skipped. */
enum outcome fails(const char *format, ...);
enum outcome skips(const char *format, ...);

/* PASS when both are the same JSON. Takes `got`. */
enum outcome same_json(cJSON *got, const cJSON *want, const char *what);

/* What stands for `\u0000` in the texts of a case: a C string ends at a NUL. U+F8FF. */
#define NUL_MARK "\xef\xa3\xbf"

struct kind {
    const char *file, *kind;
    enum outcome (*run)(const cJSON *one);
};

/* Ends with an entry whose file is NULL. */
extern const struct kind okhttp_kinds[], okhttp_selector_kinds[], dial_kinds[], dial_report_kinds[], race_kinds[], tunnel_kinds[],
    race_upstream_kinds[], rule_kinds[],
    pick_kinds[], net_kinds[], order_kinds[], mesh_kinds[], script_kinds[],
    word_kinds[], beyond_kinds[], file_kinds[], inside_kinds[], mesh_parse_kinds[], boundary_kinds[], proxy_kinds[], pac_kinds[], retry_kinds[];

static inline const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static inline const char *text_of(const cJSON *object, const char *name, const char *otherwise)
{
    const cJSON *value = get(object, name);
    return cJSON_IsString(value) ? value->valuestring : otherwise;
}

static inline double number_of(const cJSON *object, const char *name, double otherwise)
{
    const cJSON *value = get(object, name);
    return cJSON_IsNumber(value) ? value->valuedouble : otherwise;
}

static inline int flag_of(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(get(object, name));
}

#endif
