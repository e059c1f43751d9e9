/* Every function of the header with every kind of bad argument, one at a time: always a status, never a crash, outputs
 * cleared, an error object that agrees, and every callback set that was passed is destroyed exactly once. */
#include "calls.c"
#include "calls.h"

static const char *other_type(int index)
{
    return index < (int)(sizeof types / sizeof types[0]) ? types[index] : NULL;
}

int main(void)
{
    size_t i;
    int bad;
    memset(long_text, 'a', sizeof long_text - 1);
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!zoo_knows(types[i]))
            SKIP(types[i], "zoo.c makes none");
    for (i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        problems = 0;
        for (bad = -1; bad < exports[i].bads; bad++) {
            exports[i].call(bad);
            end_all();
        }
        zoo_close();
        if (zoo_sets != zoo_destroyed) {
            printf("# %s: %d callback sets, %d destroyed\n", exports[i].name, zoo_sets, zoo_destroyed);
            problems++;
            zoo_sets = zoo_destroyed = 0;
        }
        OK(problems == 0, "%s refuses %d bad arguments", exports[i].name, exports[i].bads);
    }
    return tap_done();
}
