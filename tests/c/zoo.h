/* One live object of every handle type, for the suites that are generated over the whole header. */
#ifndef ZOO_H
#define ZOO_H

#include "byway.h"

/* Makes a fresh handle of the type with this name, or NULL when nobody has written how. What it needs beside (an
 * engine, an address) lives until zoo_close. */
void *zoo_make(const char *type);

/* True when zoo_make knows the type. */
int zoo_knows(const char *type);

/* Frees or releases one handle. NULL is fine. */
void zoo_end(const char *type, void *handle);

/* Fills the fields of an options struct or callback set that must not be empty; struct_size is set by the caller. */
void zoo_fill(const char *name, void *structure);

/* While set, zoo_make("byway_engine") and everything built on an engine uses this one. */
void zoo_use_engine(byway_engine *engine);

/* Ends everything zoo_make made beside, shuts its engines down. */
void zoo_close(void);

/* destroy callbacks: how many sets were filled by zoo_fill, and how many of them have been destroyed. */
extern int zoo_sets, zoo_destroyed;

#endif
