package io.byway;

/** What may be done about a call that failed. */
public enum Recovery {
    /** Take the next route. */
    RETRY(Abi.RECOVER_RETRY),

    /** Retrying is switched off. */
    DISABLED(Abi.RECOVER_DISABLED),

    /** The request cannot be sent a second time. */
    NOT_REPEATABLE(Abi.RECOVER_NOT_REPEATABLE),

    /** Another route would fail in the same way, or the call was called off. */
    FATAL(Abi.RECOVER_FATAL),

    /** Everything was tried. */
    NO_MORE_ROUTES(Abi.RECOVER_NO_MORE_ROUTES);

    private static final Recovery[] ALL = values();

    private final int number;

    Recovery(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static Recovery of(int number) {
        for (Recovery one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no Recovery has number " + number);
    }
}
