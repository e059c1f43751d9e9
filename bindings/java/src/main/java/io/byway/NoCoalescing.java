package io.byway;

/** Why a connection does not serve another address too. */
public enum NoCoalescing {
    /** Port, TLS, proxy, resolver or protocols differ. */
    OTHER_ADDRESS(Abi.NO_COALESCING_OTHER_ADDRESS),

    /** The connection carries one exchange at a time. */
    NOT_MULTIPLEXED(Abi.NO_COALESCING_NOT_MULTIPLEXED),

    /** 421 before. */
    REFUSED_BEFORE(Abi.NO_COALESCING_REFUSED_BEFORE),

    /** No DIRECT route of the wanted address has this address and port. */
    NO_SHARED_IP(Abi.NO_COALESCING_NO_SHARED_IP),

    /** The certificate or its pins do not cover the host. */
    NOT_VERIFIED(Abi.NO_COALESCING_NOT_VERIFIED);

    private static final NoCoalescing[] ALL = values();

    private final int number;

    NoCoalescing(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static NoCoalescing of(int number) {
        for (NoCoalescing one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no NoCoalescing has number " + number);
    }
}
