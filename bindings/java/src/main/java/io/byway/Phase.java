package io.byway;

/** Where in a connection's life something failed. */
public enum Phase {
    /** Looking up a name. */
    DNS(Abi.PHASE_DNS),

    /** Connecting. */
    TCP(Abi.PHASE_TCP),

    /** The dialogue with a proxy. */
    TUNNEL(Abi.PHASE_TUNNEL),

    /** TLS with the origin. */
    TLS(Abi.PHASE_TLS),

    /** Requests and answers. */
    EXCHANGE(Abi.PHASE_EXCHANGE);

    private static final Phase[] ALL = values();

    private final int number;

    Phase(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static Phase of(int number) {
        for (Phase one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no Phase has number " + number);
    }
}
