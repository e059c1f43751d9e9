/* Every case of every file in BYWAY_VECTORS (default tests/vectors) that some subject runs. The last line is
 * `c: N passed, N failed, N skipped (kinds ...)`; kinds that no subject runs are counted there, by name. */
#include "conform.h"
#include <dirent.h>

static const struct kind *const subjects[] = {okhttp_kinds, okhttp_selector_kinds, dial_kinds, dial_report_kinds, tunnel_kinds, race_kinds, race_upstream_kinds,
                                              rule_kinds,   pick_kinds,            net_kinds,  order_kinds,
                                              mesh_kinds,   script_kinds,          word_kinds, beyond_kinds,
                                              proxy_kinds,  pac_kinds,             retry_kinds, file_kinds,
                                              inside_kinds, mesh_parse_kinds, boundary_kinds,
                                              NULL};

static char reason[4096];

static enum outcome say(enum outcome outcome, const char *format, va_list arguments)
{
    vsnprintf(reason, sizeof reason, format, arguments);
    return outcome;
}

enum outcome fails(const char *format, ...)
{
    va_list arguments;
    enum outcome outcome;
    va_start(arguments, format);
    outcome = say(FAIL, format, arguments);
    va_end(arguments);
    return outcome;
}

enum outcome skips(const char *format, ...)
{
    va_list arguments;
    enum outcome outcome;
    va_start(arguments, format);
    outcome = say(SKIP, format, arguments);
    va_end(arguments);
    return outcome;
}

enum outcome same_json(cJSON *got, const cJSON *want, const char *what)
{
    enum outcome outcome = PASS;
    if (!cJSON_Compare(got, want, 1)) {
        char *left = cJSON_PrintUnformatted(got), *right = cJSON_PrintUnformatted(want);
        outcome = fails("%s: got %s, want %s", what, left ? left : "nothing", right ? right : "nothing");
        cJSON_free(left);
        cJSON_free(right);
    }
    cJSON_Delete(got);
    return outcome;
}

struct skipped {
    char name[96];
    int count;
};

static struct skipped skipped[256];
static int skipped_kinds;

static void skip(const char *name)
{
    int i;
    for (i = 0; i < skipped_kinds; i++)
        if (strcmp(skipped[i].name, name) == 0)
            break;
    if (i == skipped_kinds) {
        if (skipped_kinds == (int)(sizeof skipped / sizeof skipped[0]))
            return;
        snprintf(skipped[skipped_kinds++].name, sizeof skipped[i].name, "%s", name);
    }
    skipped[i].count++;
}

static const struct kind *find(const char *file, const char *kind)
{
    int i;
    for (i = 0; subjects[i] != NULL; i++) {
        const struct kind *at;
        for (at = subjects[i]; at->file != NULL; at++)
            if (strcmp(at->file, file) == 0 && strcmp(at->kind, kind) == 0)
                return at;
    }
    return NULL;
}

static int passed, failed;

/* Writes the mark of a NUL where the JSON text has one. */
static void mark_nuls(char *line)
{
    char *at;
    for (at = line; *at != '\0'; at++)
        if (*at == '\\' && *++at == 'u' && strncmp(at, "u0000", 5) == 0)
            memcpy(at, "uf8ff", 5);
}

static void run_line(const char *file, char *line, const char *only)
{
    cJSON *one = (mark_nuls(line), cJSON_Parse(line));
    const char *id = text_of(one, "id", "?"), *kind = text_of(one, "kind", "?");
    const struct kind *runner = find(file, kind);
    char name[96];
    snprintf(name, sizeof name, "%.40s/%.50s", file, kind);
    if (one == NULL || (only != NULL && strcmp(only, id) != 0 && strcmp(only, kind) != 0 && strcmp(only, file) != 0)) {
        if (one == NULL) {
            failed++;
            printf("FAIL %s ?: not JSON\n", file);
        }
    } else if (runner == NULL) {
        skip(name);
    } else {
        reason[0] = '\0';
        switch (runner->run(one)) {
        case PASS:
            passed++;
            break;
        case FAIL:
            failed++;
            printf("FAIL %s %s (%s): %s\n", file, id, kind, reason);
            break;
        case SKIP:
            snprintf(name, sizeof name, "%.40s: %.50s", kind, reason);
            skip(name);
            break;
        }
    }
    cJSON_Delete(one);
}

static void run_file(const char *path, const char *file, const char *only)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    if (in == NULL) {
        perror(path);
        exit(2);
    }
    while (getline(&line, &size, in) > 0)
        if (line[strspn(line, " \r\n")] != '\0')
            run_line(file, line, only);
    free(line);
    fclose(in);
}

int main(int argc, char **argv)
{
    const char *folder = getenv("BYWAY_VECTORS");
    struct dirent **entries;
    int count, i, total = 0;
    if (folder == NULL)
        folder = "tests/vectors";
    count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        perror(folder);
        return 2;
    }
    for (i = 0; i < count; i++) {
        char path[4096], stem[256];
        char *dot;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        snprintf(stem, sizeof stem, "%s", entries[i]->d_name);
        dot = strrchr(stem, '.');
        if (dot != NULL && strcmp(dot, ".jsonl") == 0) {
            *dot = '\0';
            run_file(path, stem, argc > 1 ? argv[1] : NULL);
        }
        free(entries[i]);
    }
    free(entries);
    printf("c: %d passed, %d failed", passed, failed);
    for (i = 0; i < skipped_kinds; i++)
        total += skipped[i].count;
    if (total > 0)
        printf(", %d skipped (kinds ", total);
    for (i = 0; i < skipped_kinds; i++)
        printf("%s%s %d", i > 0 ? ", " : "", skipped[i].name, skipped[i].count);
    printf("%s\n", total > 0 ? ")" : "");
    return failed > 0;
}
