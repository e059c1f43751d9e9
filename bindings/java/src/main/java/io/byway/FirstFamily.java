package io.byway;

/** Which address family is tried first. */
public enum FirstFamily {
    /** IPv6 first, as OkHttp and RFC 8305. */
    V6(Abi.FIRST_FAMILY_V6),

    /** IPv4 first. */
    V4(Abi.FIRST_FAMILY_V4),

    /** The family of the first address first. */
    FIRST_ADDRESS(Abi.FIRST_FAMILY_FIRST_ADDRESS);

    private static final FirstFamily[] ALL = values();

    private final int number;

    FirstFamily(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static FirstFamily of(int number) {
        for (FirstFamily one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no FirstFamily has number " + number);
    }
}
