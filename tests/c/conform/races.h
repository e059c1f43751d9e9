/* What every runner of races stands on: a network of the test's own, and who listens in it. */
#ifndef RACES_H
#define RACES_H

#include "conform.h"

/* No route leads there. */
#define NOWHERE "203.0.113.1"

/* Runs `run` on a thread in a network of its own; 0 when that is not allowed here. Loopback is up, 192.0.2.0/24 and
 * 2001:db8::1 to 2001:db8::f are this machine's without being loopback addresses. */
int in_own_network(void (*run)(void *data), void *data);

/* Address `number` of family 4 or 6 in that network; the text is valid until the next call. */
const char *own_text(int family, int number);
byway_ip own_ip(int family, int number);

/* A socket at this address, port 0 = any, that takes connections if `works`; its port goes to `*port`. */
int listener_at(const char *ip, int wanted, int works, int *port);

/* Whether two routes connect to the same place. */
int same_hop(const byway_route *a, const byway_route *b);

#endif
