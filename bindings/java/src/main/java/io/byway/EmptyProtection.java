package io.byway;

/** When an empty list from the centre empties a chain's. */
public enum EmptyProtection {
    /** A list whose place is gone is kept; a place that is there and empty empties the list. */
    VANISHED(Abi.EMPTY_PROTECTION_VANISHED),

    /** Both are kept, as Dubbo's {@code enable-empty-protection=true}; only {@code empty://} empties. */
    ON(Abi.EMPTY_PROTECTION_ON),

    /** Both empty the list, as Dubbo without protection. */
    OFF(Abi.EMPTY_PROTECTION_OFF);

    private final int number;

    EmptyProtection(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }
}
