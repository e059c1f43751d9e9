/* What the cases about chains stand on: a case's engine, providers, consumer and call. */
#ifndef CHAINS_H
#define CHAINS_H

#include "conform.h"

/* Monotonic time of every world, in nanoseconds. Stands still until it is moved. */
extern uint64_t world_now_ns;

/* Draws of the next world; NULL: by a seed. */
extern uint64_t (*world_draws)(void *data);

/* Wall clock of the next world; NULL: the system's. */
extern int64_t (*world_wall)(void *data);

/* One case's world; everything is ended by world_close. Tags are rows + 1. */
struct world {
    byway_engine *engine;
    byway_invokers *list;
    byway_chain *chain;
    byway_invocation *call;
    const cJSON *rows;
    int count;
    char *texts[512];
    int text_count;
    char why[512];
};

/* A copy that lives as long as the world. */
const char *keep(struct world *w, const char *text);
const char *keepf(struct world *w, const char *format, ...);

/* Opens a world under a dialect. `extra` is appended to the query of every provider URL that has no `unless=`. 0 when
 * the boundary refuses something; w->why then says what. */
int world_open(struct world *w, int dialect, const char *consumer, const cJSON *rows, const char *extra,
               const char *unless);
void world_close(struct world *w);

/* Sets the call. 0 when the case names no method. */
int world_call(struct world *w, const cJSON *invocation);

/* The rows that may serve the call, as a JSON array of numbers, or NULL with w->why. */
cJSON *world_rows(struct world *w);

/* The same as the ids of a case's invokers. */
cJSON *ids_of(const cJSON *invokers, const cJSON *rows);

/* Whether a call fits a block of a mesh rule's `match`, against what is expected. Takes `block`. */
enum outcome block_fits(int dialect, cJSON *block, const cJSON *invocation, const cJSON *expect);

/* Every answer is of one list while others replace the list; `lists` holds lists of hosts. */
enum outcome replaced_while_routing(const cJSON *lists, int readers, int writers, int rounds);

/* bugs.jsonl sequence: the first half. */
enum outcome engine_sequence(const cJSON *one);

/* The dialect of an implementation's name; -1 when byway has none. */
int dialect_named(const char *name);

/* The dialect a case of dubbo_chain.jsonl comes from. */
int dialect_of(const cJSON *one);

/* The answer the default dialect gives where a case says that upstream is wrong; NULL when it does not say. */
const cJSON *sane_of(const cJSON *one);

#endif
