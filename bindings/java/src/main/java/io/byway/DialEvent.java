package io.byway;

/** Something that happened to an attempt of a dial, for hosts that keep state per descriptor. */
public final class DialEvent {
    private final long[] numbers;

    DialEvent(long[] numbers) {
        this.numbers = numbers;
    }

    /** {@code BYWAY_DIAL_EVENT_*}. */
    public int kind() {
        return (int) numbers[0];
    }

    /** Number of the attempt. */
    public int attempt() {
        return (int) numbers[1];
    }

    /** Its descriptor, -1 when it has none. */
    public int fd() {
        return (int) numbers[2];
    }

    /** Why, for failures: one of {@link Status}. */
    public int status() {
        return (int) numbers[3];
    }

    /** Milliseconds since the first step. */
    public long atMillis() {
        return numbers[4];
    }
}
