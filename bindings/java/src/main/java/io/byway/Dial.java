package io.byway;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * From an address to a connected socket: races routes, speaks SOCKS and HTTP CONNECT, reports what it learnt to the
 * engine. Used by one thread at a time; {@link #cancel}, {@link #authenticate} and {@link #close} from any.
 *
 * <p>Either {@link #run}, or, in a loop that can watch descriptors, watch {@link #fd} for reading and {@link #step} until
 * it gives a socket.
 */
public final class Dial extends Handle {
    private static final int SELECTOR = 0;
    private static final int SELECTION = 1;
    private static final int ROUTES = 2;
    private static final long REAL_TIME = -1;

    /** Kept from the collector for as long as the dial lives. */
    private final Selector selector;

    private final boolean own;

    /** Over all routes of an address, with the default options. */
    public Dial(Address address) {
        this(address, new DialOptions());
    }

    /** Over all routes of an address. */
    public Dial(Address address, DialOptions options) {
        this(java.util.Objects.requireNonNull(address, "address").engine(), new Selector(address), options);
    }

    private Dial(Engine engine, Selector selector, DialOptions options) {
        this(over(engine, SELECTOR, List.of(selector), options), selector, true);
    }

    private Dial(long pointer, Selector selector, boolean own) {
        super(pointer, Dial::free);
        this.selector = selector;
        this.own = own;
    }

    /**
     * Over what a selector gives, for example one that gives a family while the other one is awaited ({@link
     * Selector.Options#early}). The selector stays the host's to close, and serves the dial alone until that is closed;
     * closing or cancelling it ends the dial.
     */
    public static Dial over(Engine engine, Selector selector, DialOptions options) {
        return new Dial(over(engine, SELECTOR, List.of(selector), options), selector, false);
    }

    /** Over the routes of one selection. */
    public static Dial over(Engine engine, Selection selection, DialOptions options) {
        return new Dial(over(engine, SELECTION, List.of(selection), options), null, false);
    }

    /** Over routes the host has kept, in this order. */
    public static Dial over(Engine engine, List<Route> routes, DialOptions options) {
        List<Handle> handles = new ArrayList<>(routes.size());
        for (Route route : routes) {
            handles.add(route.handle());
        }
        return new Dial(over(engine, ROUTES, handles, options), null, false);
    }

    private static long over(Engine engine, int what, List<? extends Handle> handles, DialOptions options) {
        Texts names = options.headerNames();
        Texts values = options.headerValues();
        try (Held held = new Held()) {
            long[] each = new long[handles.size()];
            for (int i = 0; i < each.length; i++) {
                each[i] = held.of(handles.get(i));
            }
            return make(
                    held.needed(engine, "engine"),
                    what,
                    each,
                    options.hooks,
                    options.tag,
                    options.numbers,
                    options.texts,
                    names.bytes,
                    names.lengths,
                    values.bytes,
                    values.lengths);
        }
    }

    /**
     * Waits on this thread for the socket.
     *
     * @param timeout after which the dial ends; null for the engine's default, 30 s
     * @throws BywayException.Connect with every failed attempt in {@link BywayException#causes}
     * @throws BywayException.Timeout when time has run out
     */
    public Connected run(Duration timeout) {
        long self = enter();
        try {
            long[] taken = run(self, millis(timeout));
            return taken == null ? null : new Connected(taken);
        } finally {
            exit();
        }
    }

    /** As {@link #run} within the engine's default time. */
    public Connected run() {
        return run(null);
    }

    /**
     * {@link #run} on a thread of {@code executor}, which it takes until it ends: give threads of the platform, as a wait
     * inside a native holds a virtual thread's carrier. Cancelling the future cancels the dial.
     */
    public CompletableFuture<Connected> runAsync(Duration timeout, Executor executor) {
        CompletableFuture<Connected> future = new CompletableFuture<>();
        future.whenComplete(
                (connected, thrown) -> {
                    if (future.isCancelled()) {
                        try {
                            cancel();
                        } catch (BywayException.Handle closed) {
                            // Over already.
                        }
                    }
                });
        executor.execute(
                () -> {
                    try {
                        Connected connected = run(timeout);
                        if (!future.complete(connected)) {
                            connected.close();
                        }
                    } catch (Throwable thrown) {
                        future.completeExceptionally(thrown);
                    }
                });
        return future;
    }

    /** Does what is due and never waits. Null: go on watching {@link #fd}. */
    public Connected step() {
        return step(List.of());
    }

    /** The same; {@code ready} is what {@code poll} said about {@link #pollset}, empty has the dial look for itself. */
    public Connected step(List<PollFd> ready) {
        return step(REAL_TIME, ready);
    }

    /** The same on a clock of the host's own, in milliseconds since the first step, for tests and simulations. */
    public Connected stepAt(long nowMillis, List<PollFd> ready) {
        if (nowMillis < 0) {
            throw Errors.of(Abi.E_ARGUMENT, "time begins with 0, not " + nowMillis, "nowMillis");
        }
        return step(nowMillis, ready);
    }

    private Connected step(long nowMillis, List<PollFd> ready) {
        int[] entries = new int[4 * ready.size()];
        int at = 0;
        for (PollFd entry : ready) {
            entries[at++] = entry.id();
            entries[at++] = entry.fd();
            entries[at++] = entry.events();
            entries[at++] = entry.revents();
        }
        long self = enter();
        try {
            return step(self, nowMillis, entries) ? new Connected(take(self)) : null;
        } finally {
            exit();
        }
    }

    /** Readable when a step is due or a socket can be taken; the same for the dial's whole life. The dial's own. */
    public int fd() {
        long self = enter();
        try {
            return fd(self);
        } finally {
            exit();
        }
    }

    /** Milliseconds until a step is due, 0 = now; empty: not before a descriptor says so. */
    public OptionalLong deadline() {
        long self = enter();
        try {
            long millis = deadline(self);
            return millis < 0 ? OptionalLong.empty() : OptionalLong.of(millis);
        } finally {
            exit();
        }
    }

    /** Every descriptor to watch now, for loops that want them one by one. */
    public List<PollFd> pollset() {
        long[] flat;
        long self = enter();
        try {
            flat = pollset(self);
        } finally {
            exit();
        }
        List<PollFd> entries = new ArrayList<>(flat.length / 4);
        for (int i = 0; i + 3 < flat.length; i += 4) {
            entries.add(new PollFd((int) flat[i], (int) flat[i + 1], (int) flat[i + 2], (int) flat[i + 3]));
        }
        return entries;
    }

    /** The oldest event not fetched yet, null when there is none; kept with {@link DialOptions#events}. */
    public DialEvent nextEvent() {
        long self = enter();
        try {
            long[] numbers = nextEvent(self);
            return numbers == null ? null : new DialEvent(numbers);
        } finally {
            exit();
        }
    }

    /** The failed attempts so far, in the order in which they failed. */
    public List<DialFailure> failures() {
        List<DialFailure> failures = new ArrayList<>();
        long self = enter();
        try {
            long[] flat = failures(self);
            for (int i = 0; i + 6 < flat.length; i += 7) {
                Route route = flat[i + 6] == 0 ? null : Route.owned(flat[i + 6]);
                long[] numbers = java.util.Arrays.copyOfRange(flat, i, i + 6);
                failures.add(new DialFailure(numbers, Texts.of(failureName(self, i / 7)), route));
            }
        } finally {
            exit();
        }
        return failures;
    }

    /** Content with this attempt's socket, usually after TLS: ends a race that waits for it ({@link RaceUntil#HOST}). */
    public void confirm(int attempt) {
        long self = enter();
        try {
            confirm(self, attempt);
        } finally {
            exit();
        }
    }

    /**
     * This attempt's socket could not be used: go on, first with {@code followUp} if it is not null, then with the routes
     * that lost, then with those never tried. A socket that was taken stays the host's.
     */
    public void resume(int attempt, Resume reason, Route followUp) {
        try (Held held = new Held()) {
            resume(held.of(this), attempt, reason.number(), held.of(followUp == null ? null : followUp.handle()));
        }
    }

    /** Credentials that {@link Hooks#proxyAuth} promised; null: there are none. Any thread. */
    public void authenticate(int attempt, String value) {
        byte[] header = Texts.utf8OrNull(value, "value");
        long self = enter();
        try {
            authenticate(self, attempt, header);
        } finally {
            exit();
        }
    }

    /** Ends it for good. Any thread. */
    public void cancel() {
        long self = enter();
        try {
            cancel(self);
        } finally {
            exit();
        }
    }

    /** The waterfall: who started when, who won, why the others ended. Text for people. */
    public String explain() {
        return explained(Abi.FORMAT_TEXT);
    }

    /** The same as JSON. */
    public String explainJson() {
        return explained(Abi.FORMAT_JSON);
    }

    private String explained(int format) {
        long self = enter();
        try {
            return Texts.of(explain(self, format));
        } finally {
            exit();
        }
    }

    @Override
    void interrupt(long pointer) {
        cancel(pointer);
    }

    /** Ends it and closes every socket that was not taken. Idempotent. */
    @Override
    public void close() {
        super.close();
        if (own) {
            selector.close();
        }
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static int openSocket(Hooks hooks, int family, int protocol, long route) {
            try {
                return Math.max(-1, hooks.openSocket(family, protocol, Route.owned(route)));
            } catch (Throwable thrown) {
                return Errors.raise(thrown);
            }
        }

        static int configure(Hooks hooks, int fd, long route) {
            try {
                hooks.configure(fd, Route.owned(route));
                return Abi.OK;
            } catch (Throwable thrown) {
                return Errors.raise(thrown);
            }
        }

        static int closeSocket(Hooks hooks, int fd) {
            try {
                return hooks.closeSocket(fd) ? Abi.OK : Abi.PASS;
            } catch (Throwable thrown) {
                return Errors.raise(thrown);
            }
        }

        static int proxyAuth(Hooks hooks, long dial, int attempt, long route, byte[][] challenges) {
            try {
                List<String> texts = new ArrayList<>(challenges.length);
                for (byte[] challenge : challenges) {
                    texts.add(new String(challenge, java.nio.charset.StandardCharsets.ISO_8859_1));
                }
                String value = hooks.proxyAuth(attempt, Route.owned(route), texts);
                if (value == null) {
                    return Abi.PASS;
                }
                if (value == Hooks.LATER) {
                    return Abi.PENDING;
                }
                authenticate(dial, attempt, Texts.utf8(value, "value"));
                return Abi.OK;
            } catch (Throwable thrown) {
                return Errors.raise(thrown);
            }
        }
    }

    private static native long make(
            long engine,
            int over,
            long[] handles,
            Hooks hooks,
            long tag,
            int[] numbers,
            byte[][] texts,
            byte[] names,
            int[] nameLengths,
            byte[] values,
            int[] valueLengths);

    private static native long[] run(long self, long timeoutMillis);

    private static native long[] take(long self);

    private static native boolean step(long self, long nowMillis, int[] entries);

    private static native int fd(long self);

    private static native long deadline(long self);

    private static native long[] pollset(long self);

    private static native long[] nextEvent(long self);

    private static native long[] failures(long self);

    private static native byte[] failureName(long self, int index);

    private static native void confirm(long self, int attempt);

    private static native void resume(long self, int attempt, int reason, long followUp);

    private static native void authenticate(long self, int attempt, byte[] value);

    private static native void cancel(long self);

    private static native byte[] explain(long self, int format);

    private static native void free(long self);
}
