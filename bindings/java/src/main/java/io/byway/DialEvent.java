package io.byway;

/** Something that happened to an attempt of a dial, for hosts that keep state per descriptor. */
public final class DialEvent {
    /** What happened. */
    public enum Kind {
        /** A connect was started; the descriptor is -1 when no socket could be opened. */
        START(Abi.DIAL_EVENT_START),

        /** TCP stands, the proxy dialogue begins. */
        HANDSHAKE(Abi.DIAL_EVENT_HANDSHAKE),

        /** The descriptor is about to be closed: forget it now, its number may come back for another attempt. */
        FD_CLOSING(Abi.DIAL_EVENT_FD_CLOSING),

        /** It failed; {@link #status} says why. */
        FAILED(Abi.DIAL_EVENT_FAILED),

        /** It ended without blame: another one won, the host cancelled, time ran out. */
        CANCELED(Abi.DIAL_EVENT_CANCELED),

        /** Credentials come later: {@link Dial#authenticate} is waited for. */
        CREDENTIALS(Abi.DIAL_EVENT_CREDENTIALS),

        /** A socket may be taken while the race goes on, until {@link Dial#confirm}. */
        OFFER(Abi.DIAL_EVENT_OFFER),

        /** It won. */
        WON(Abi.DIAL_EVENT_WON);

        private static final Kind[] ALL = values();

        private final int number;

        Kind(int number) {
            this.number = number;
        }

        /** The number of the C header. */
        public int number() {
            return number;
        }

        static Kind of(int number) {
            for (Kind one : ALL) {
                if (one.number == number) {
                    return one;
                }
            }
            throw new IllegalArgumentException("no DialEvent.Kind has number " + number);
        }
    }

    private final long[] numbers;

    DialEvent(long[] numbers) {
        this.numbers = numbers;
    }

    /** What happened. */
    public Kind kind() {
        return Kind.of((int) numbers[0]);
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
