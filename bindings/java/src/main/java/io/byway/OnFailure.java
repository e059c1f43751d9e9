package io.byway;

/** What a failed attempt changes for the next one. */
public enum OnFailure {
    /** A failure changes nothing while others are in flight; alone, the next attempt starts at once. */
    WHEN_IDLE(Abi.ON_FAILURE_WHEN_IDLE),

    /** A failure starts the next attempt at once, 10 ms after the last start at the earliest. */
    IMMEDIATE(Abi.ON_FAILURE_IMMEDIATE),

    /** As immediate, but only when the newest attempt failed. */
    LATEST(Abi.ON_FAILURE_LATEST);

    private static final OnFailure[] ALL = values();

    private final int number;

    OnFailure(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static OnFailure of(int number) {
        for (OnFailure one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no OnFailure has number " + number);
    }
}
