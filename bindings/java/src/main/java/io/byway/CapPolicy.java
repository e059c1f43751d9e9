package io.byway;

/** What happens at the limit of attempts in flight. */
public enum CapPolicy {
    /** At the limit of attempts in flight the oldest is dropped, without blame. */
    DROP_OLDEST(Abi.CAP_DROP_OLDEST),

    /** At the limit of attempts in flight the next one waits. */
    WAIT(Abi.CAP_WAIT);

    private static final CapPolicy[] ALL = values();

    private final int number;

    CapPolicy(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static CapPolicy of(int number) {
        for (CapPolicy one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no CapPolicy has number " + number);
    }
}
