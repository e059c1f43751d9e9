package io.byway;

/** One failed attempt of a dial. */
public final class DialFailure {
    private final long[] numbers;
    private final String name;
    private final Route route;

    DialFailure(long[] numbers, String name, Route route) {
        this.numbers = numbers;
        this.name = name;
        this.route = route;
    }

    /** Number of the attempt; 0 when no selection could be made. */
    public int attempt() {
        return (int) numbers[0];
    }

    /** What to branch on: one of {@link Status}. */
    public int status() {
        return (int) numbers[1];
    }

    /** The system's number, 0 for none. */
    public int osErrno() {
        return (int) numbers[2];
    }

    /** The number the proxy sent: a SOCKS code, an HTTP status; 0 for none. */
    public int number() {
        return (int) numbers[3];
    }

    /** Begin, milliseconds since the first step. */
    public long startMillis() {
        return numbers[4];
    }

    /** End. */
    public long endMillis() {
        return numbers[5];
    }

    /** Fixed name, for example {@code REFUSED} or {@code CONNECT_STATUS}. */
    public String name() {
        return name;
    }

    /** The route; null when no selection could be made. */
    public Route route() {
        return route;
    }

    @Override
    public String toString() {
        return name + " (" + Status.name(status()) + ") " + route;
    }
}
