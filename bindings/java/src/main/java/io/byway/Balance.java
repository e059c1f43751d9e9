package io.byway;

/** How one provider is picked. */
public enum Balance {
    /** As the providers' {@code loadbalance} says, otherwise random. */
    AUTO(0),

    /** Weighted random. */
    RANDOM(Abi.BALANCE_RANDOM),

    /** Smooth weighted round robin. */
    ROUND_ROBIN(Abi.BALANCE_ROUND_ROBIN),

    /** Fewest calls in flight. */
    LEAST_ACTIVE(Abi.BALANCE_LEAST_ACTIVE),

    /** Shortest response time. */
    SHORTEST_RESPONSE(Abi.BALANCE_SHORTEST_RESPONSE),

    /** Same arguments, same provider. */
    CONSISTENT_HASH(Abi.BALANCE_CONSISTENT_HASH),

    /** Of two at random the one with the lower load. */
    P2C(Abi.BALANCE_P2C);

    private final int number;

    Balance(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }
}
