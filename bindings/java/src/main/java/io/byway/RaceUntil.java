package io.byway;

/** When an attempt of a dial has won. */
public enum RaceUntil {
    /** The first TCP connection wins; a proxy handshake follows alone, and when it fails the race goes on. */
    TCP(Abi.RACE_UNTIL_TCP),

    /** The first finished proxy handshake wins. */
    READY(Abi.RACE_UNTIL_READY),

    /** The host confirms the winner, usually after TLS; until then the race goes on beside it. */
    HOST(Abi.RACE_UNTIL_HOST);

    private static final RaceUntil[] ALL = values();

    private final int number;

    RaceUntil(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static RaceUntil of(int number) {
        for (RaceUntil one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no RaceUntil has number " + number);
    }
}
