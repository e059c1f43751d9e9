/* Random sequences of calls over objects that live from call to call: good and bad arguments, releases in any order,
 * shutdowns in the middle. BYWAY_FUZZ_RUNS calls from BYWAY_FUZZ_SEED. */
#include "calls.c"
#include "calls.h"
#include <unistd.h>

enum { MOST = 96 };

static struct { const char *type; void *handle; } pool[MOST];
static size_t pool_count;
static uint64_t state;

static const char *other_type(int index)
{
    return index < (int)(sizeof types / sizeof types[0]) ? types[index] : NULL;
}

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

static void *from_pool(const char *type)
{
    size_t i, start;
    if (!pool_count || draw(4) == 0)
        return NULL;
    start = draw((uint32_t)pool_count);
    for (i = 0; i < pool_count; i++)
        if (!strcmp(pool[(start + i) % pool_count].type, type))
            return pool[(start + i) % pool_count].handle;
    return NULL;
}

static int out_of_pool(const void *handle)
{
    size_t i;
    for (i = 0; i < pool_count; i++)
        if (pool[i].handle == handle) {
            pool[i] = pool[--pool_count];
            return 1;
        }
    return 0;
}

/* What the call made stays for the next ones, or goes. */
static void keep_some(void)
{
    while (made_count) {
        made_count--;
        if (pool_count < MOST && draw(2)) {
            pool[pool_count].type = made[made_count].type;
            pool[pool_count++].handle = made[made_count].handle;
        } else {
            zoo_end(made[made_count].type, made[made_count].handle);
        }
    }
}

static void end_pool(void)
{
    while (pool_count) {
        const size_t i = draw((uint32_t)pool_count);
        zoo_end(pool[i].type, pool[i].handle);
        pool[i] = pool[--pool_count];
    }
    zoo_close();
}

int main(void)
{
    const char *runs_text = getenv("BYWAY_FUZZ_RUNS"), *seed_text = getenv("BYWAY_FUZZ_SEED");
    const long runs = runs_text ? atol(runs_text) : getenv("BYWAY_TEST_SLOW") ? 3000 : 20000;
    const uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 20260801;
    long i;
    state = seed * 2654435769u + 88172645463325252u;
    memset(long_text, 'a', sizeof long_text - 1);
    recall = from_pool;
    forget = out_of_pool;
    /* A deadlock ends the program, which counts as a failure. */
    alarm(1500);
    for (i = 0; i < runs; i++) {
        const struct export *export = &exports[draw(sizeof exports / sizeof exports[0])];
        const int bad = export->bads && draw(2) ? (int)draw((uint32_t)export->bads) : -1;
        export->call(bad);
        keep_some();
        if (i % 256 == 255)
            end_pool();
    }
    end_pool();
    OK(problems == 0, "%ld calls from seed %llu", runs, (unsigned long long)seed);
    OK(zoo_sets == zoo_destroyed, "%d callback sets, each destroyed once (%d)", zoo_sets, zoo_destroyed);
    return tap_done();
}
