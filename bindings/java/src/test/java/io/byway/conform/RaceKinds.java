package io.byway.conform;

import java.util.Map;

/**
 * Races of connect.jsonl need sockets that the case opens, limits and answers for, on a clock of its own, in a network of
 * its own. Java opens no socket by number; the same cases run through Rust, C and Python.
 */
final class RaceKinds {
    static final Map<String, Case.Run> KINDS = Map.of("connect/race", RaceKinds::race);

    private RaceKinds() {}

    private static void race(Case one) {
        throw new Case.Skips("Java opens no sockets by number");
    }
}
