/* What the cases about rules have in common: rules by key or by URL, over a case's chain. */
#ifndef RULES_H
#define RULES_H

#include "chains.h"

/* No built-in routers but those behind it. */
#define ALONE "router=-default,"

/* Opens a world whose consumer gets `routers` (NULL: the built-in ones) where it names none of its own. */
int open_for(struct world *w, int dialect, const char *consumer, const char *routers, const cJSON *rows,
             const char *extra, const char *unless);

/* Sets `condition://` with a rule and the parameters of a case. */
byway_status set_static(struct world *w, const char *rule, const cJSON *parameters, byway_error **err);

/* Whether the left side of a rule holds: with a right side that nobody meets and force, nothing is left. 0 when the rule
 * is refused. */
int when_holds(const char *rule, int dialect, const char *consumer, const cJSON *call, int *holds);

/* The key of a rule of an application, or else of the service of a consumer's URL. */
const char *key_of(struct world *w, int dialect, int kind, const char *application, const char *url);

/* The forms glob and range: whether a pattern fits a value. */
enum outcome fits_as(const cJSON *one, int dialect, const cJSON *expect);

/* The form parse: what a text is read as. */
enum outcome parse_as(const cJSON *one, int dialect, const cJSON *expect);

#endif
