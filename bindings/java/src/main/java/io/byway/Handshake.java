package io.byway;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The dialogue with a proxy, bytes in and bytes out: for transports that a {@link Dial} does not drive, such as TLS to an
 * HTTPS proxy. Does no I/O.
 */
public final class Handshake extends Handle {
    /** What is needed now. */
    public enum Want {
        /** Write {@link #output}, then say so with {@link #sent}. */
        WRITE(Abi.HANDSHAKE_WRITE),

        /** Read at most {@link #limit} bytes and feed them: all of them belong to the dialogue. */
        READ(Abi.HANDSHAKE_READ),

        /** Feed what is there; {@link #feed} says how much belongs to the dialogue, the rest is tunnel data. */
        PEEK(Abi.HANDSHAKE_PEEK),

        /** Credentials are asked for: {@link #challenges}, {@link #answer}. */
        CREDENTIALS(Abi.HANDSHAKE_CREDENTIALS),

        /** A new connection to the same hop is needed, then {@link #reconnected}. */
        RECONNECT(Abi.HANDSHAKE_RECONNECT),

        /** The tunnel stands. */
        DONE(Abi.HANDSHAKE_DONE),

        /** It is over; the call that ended it said why. */
        FAILED(Abi.HANDSHAKE_FAILED);

        private final int number;

        Want(int number) {
            this.number = number;
        }

        /** The number of the C header. */
        public int number() {
            return number;
        }

        static Want of(int number) {
            for (Want one : values()) {
                if (one.number == number) {
                    return one;
                }
            }
            throw Errors.of(Abi.E_BUSY, "another call is running on this handshake", "self");
        }
    }

    /** With the proxy of a route, for its target. */
    public Handshake(Route route, DialOptions options) {
        this(made(route, options));
    }

    private Handshake(long pointer) {
        super(pointer, Handshake::free);
    }

    private static long made(Route route, DialOptions options) {
        Texts names = options.headerNames();
        Texts values = options.headerValues();
        try (Held held = new Held()) {
            return make(
                    held.of(route.handle()),
                    options.numbers,
                    options.texts,
                    names.bytes,
                    names.lengths,
                    values.bytes,
                    values.lengths);
        }
    }

    /**
     * For hosts that keep proxies of their own.
     *
     * @param kind not DIRECT
     * @param user null: no credentials
     */
    public static Handshake to(
            ProxyKind kind, String host, int port, String user, String password, DialOptions options) {
        Library.load();
        Texts names = options.headerNames();
        Texts values = options.headerValues();
        return new Handshake(
                makeTarget(
                        kind.number(),
                        Texts.utf8(host, "host"),
                        port,
                        Texts.utf8OrNull(user, "user"),
                        Texts.utf8OrNull(password, "password"),
                        options.numbers,
                        options.texts,
                        names.bytes,
                        names.lengths,
                        values.bytes,
                        values.lengths));
    }

    /** What is needed now. */
    public Want want() {
        return Want.of((int) (wanted() & 0xff));
    }

    /** How many bytes may be read for {@link Want#READ}, else 0. */
    public int limit() {
        return (int) (wanted() >> 8);
    }

    private long wanted() {
        long self = enter();
        try {
            return want(self);
        } finally {
            exit();
        }
    }

    /** What to write. */
    public byte[] output() {
        long self = enter();
        try {
            return output(self);
        } finally {
            exit();
        }
    }

    /** So many bytes of {@link #output} were written. */
    public void sent(int count) {
        long self = enter();
        try {
            sent(self, count);
        } finally {
            exit();
        }
    }

    /** What was read; returns how many bytes belong to the dialogue. */
    public int feed(byte[] data, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, data.length);
        long self = enter();
        try {
            return feed(self, data, offset, length);
        } finally {
            exit();
        }
    }

    /** What was read; returns how many bytes belong to the dialogue. */
    public int feed(byte[] data) {
        return feed(data, 0, data.length);
    }

    /** The proxy closed the connection. */
    public void eof() {
        long self = enter();
        try {
            eof(self);
        } finally {
            exit();
        }
    }

    /** Values of {@code Proxy-Authenticate}. */
    public List<String> challenges() {
        List<String> challenges = new ArrayList<>();
        long self = enter();
        try {
            for (int i = 0; ; i++) {
                byte[] challenge = challengeAt(self, i);
                if (challenge == null) {
                    return challenges;
                }
                challenges.add(Texts.of(challenge));
            }
        } finally {
            exit();
        }
    }

    /** Answers {@link Want#CREDENTIALS} with the whole value of {@code Proxy-Authorization}; null: there are none. */
    public void answer(String value) {
        byte[] header = Texts.utf8OrNull(value, "value");
        long self = enter();
        try {
            answer(self, header);
        } finally {
            exit();
        }
    }

    /** There is a new connection to the same hop. */
    public void reconnected() {
        long self = enter();
        try {
            reconnected(self);
        } finally {
            exit();
        }
    }

    private static native long make(
            long route,
            int[] numbers,
            byte[][] texts,
            byte[] names,
            int[] nameLengths,
            byte[] values,
            int[] valueLengths);

    private static native long makeTarget(
            int kind,
            byte[] host,
            int port,
            byte[] user,
            byte[] password,
            int[] numbers,
            byte[][] texts,
            byte[] names,
            int[] nameLengths,
            byte[] values,
            int[] valueLengths);

    private static native long want(long self);

    private static native byte[] output(long self);

    private static native void sent(long self, int count);

    private static native int feed(long self, byte[] data, int offset, int length);

    private static native void eof(long self);

    private static native byte[] challengeAt(long self, int index);

    private static native void answer(long self, byte[] value);

    private static native void reconnected(long self);

    private static native void free(long self);
}
