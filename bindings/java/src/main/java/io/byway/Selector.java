package io.byway;

import java.time.Duration;
import java.util.AbstractList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.CompletableFuture;

/**
 * Gives the routes of an address, in order, as {@link Selection}s; OkHttp's RouteSelector. Used by one thread at a time:
 * a second concurrent call throws at once. {@link #cancel} and {@link #close} are legal from any thread at any time.
 */
public final class Selector extends Handle implements Iterable<Selection> {
    private static final long DONE = 0;
    private static final long PENDING = 1;

    /** What a selector is made with. */
    public static final class Options {
        private long tag;
        private Queue queue;
        private boolean early;

        /** The host's own number, echoed in completion records, events and requests. */
        public Options tag(long tag) {
            this.tag = tag;
            return this;
        }

        /** Where its completion records go; by default the engine's queue. */
        public Options queue(Queue queue) {
            this.queue = queue;
            return this;
        }

        /** Give the routes of the first family that is answered while the other is still awaited. */
        public Options early(boolean on) {
            this.early = on;
            return this;
        }
    }

    private static final Options DEFAULT = new Options();

    private final Queue queue;

    /** A selector with the default options. */
    public Selector(Address address) {
        this(address, DEFAULT);
    }

    /** A selector. The proxy selector is asked here. */
    public Selector(Address address, Options options) {
        super(made(address, options), Selector::free);
        queue = options.queue != null ? options.queue : address.engine().queue();
    }

    private static long made(Address address, Options options) {
        java.util.Objects.requireNonNull(address, "address");
        java.util.Objects.requireNonNull(options, "options");
        Engine engine = address.engine();
        long onEngine = engine.enter();
        try {
            long onAddress = address.enter();
            try {
                if (options.queue == null) {
                    return make(onEngine, onAddress, options.tag, 0, flags(options));
                }
                long onQueue = options.queue.enter();
                try {
                    return make(onEngine, onAddress, options.tag, onQueue, flags(options));
                } finally {
                    options.queue.exit();
                }
            } finally {
                address.exit();
            }
        } finally {
            engine.exit();
        }
    }

    private static int flags(Options options) {
        return options.early ? Abi.SELECTOR_EARLY : 0;
    }

    /** The next selection within the engine's default time, 30 s; null when nothing is left. */
    public Selection next() {
        return next(null);
    }

    /**
     * The next selection; null when nothing is left. Waits on this thread, and runs this selector's callbacks on it.
     *
     * @param timeout null for the engine's default; a further call goes on waiting for the same answers
     * @throws BywayException.Timeout when it is over
     */
    public Selection next(Duration timeout) {
        Records buffer = Records.take();
        try {
            long given;
            long self = enter();
            try {
                given = next(self, millis(timeout), buffer.address, buffer.capacity());
            } finally {
                exit();
            }
            return given == DONE ? null : selection(given, buffer);
        } finally {
            Records.give(buffer);
        }
    }

    /**
     * The next selection if it is there now; null when answers are awaited: one completion record on the queue tells
     * when to call again.
     *
     * @throws NoSuchElementException when nothing is left
     */
    public Selection pollNext() {
        Records buffer = Records.take();
        try {
            long given;
            long self = enter();
            try {
                given = pollNext(self, buffer.address, buffer.capacity());
            } finally {
                exit();
            }
            if (given == DONE) {
                throw new NoSuchElementException("every route was given");
            }
            return given == PENDING ? null : selection(given, buffer);
        } finally {
            Records.give(buffer);
        }
    }

    /**
     * The next selection when it comes, null when nothing is left. Blocks no thread; the queue must be driven, see {@link
     * Queue#drive}. One at a time. Fails when the engine's default time has passed; a further call goes on waiting for the
     * same answers.
     */
    public CompletableFuture<Selection> nextAsync() {
        try {
            // Before the question: the record may be there before its answer is.
            CompletableFuture<Integer> record = queue.await(id());
            boolean pending = false;
            try {
                Selection now = pollNext();
                pending = now == null;
                if (!pending) {
                    return CompletableFuture.completedFuture(now);
                }
            } catch (NoSuchElementException over) {
                return CompletableFuture.completedFuture(null);
            } finally {
                if (!pending) {
                    queue.forget(id());
                }
            }
            queue.arm();
            return record.thenCompose(
                    status ->
                            status == Abi.E_TIMEOUT
                                    ? CompletableFuture.failedFuture(
                                            Errors.of(Abi.E_TIMEOUT, "no answer in time", "selector"))
                                    : nextAsync());
        } catch (BywayException error) {
            return CompletableFuture.failedFuture(error);
        }
    }

    private static Selection selection(long pointer, Records buffer) {
        Records filled = buffer;
        try {
            while (!filled.fits()) {
                filled = filled.larger();
                Selection.records(pointer, filled.address, filled.capacity());
            }
            return new Selection(pointer, filled);
        } catch (OutOfMemoryError error) {
            Selection.drop(pointer);
            throw error;
        }
    }

    /** Selections until nothing is left, each within the engine's default time. */
    @Override
    public Iterator<Selection> iterator() {
        return new Iterator<>() {
            private Selection ahead;

            @Override
            public boolean hasNext() {
                if (ahead == null) {
                    ahead = Selector.this.next();
                }
                return ahead != null;
            }

            @Override
            public Selection next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                Selection given = ahead;
                ahead = null;
                return given;
            }
        };
    }

    /**
     * Every route of an address in one crossing, what failed before at the end. Proxy selector and resolver must answer
     * in place. These routes are for reading: they have no proxy host but the address's own, and cannot be reported.
     */
    public static List<Route> plan(Address address) {
        Records buffer = Records.take();
        Records filled = buffer;
        try {
            Engine engine = address.engine();
            long onEngine = engine.enter();
            try {
                long onAddress = address.enter();
                try {
                    plan(onEngine, onAddress, 0, filled.address, filled.capacity());
                    while (!filled.fits()) {
                        filled = filled.larger();
                        plan(onEngine, onAddress, 0, filled.address, filled.capacity());
                    }
                } finally {
                    address.exit();
                }
            } finally {
                engine.exit();
            }
            byte[] records = filled.copy();
            int count = filled.count();
            return new AbstractList<>() {
                @Override
                public Route get(int index) {
                    java.util.Objects.checkIndex(index, count);
                    return new Route(null, records, index);
                }

                @Override
                public int size() {
                    return count;
                }
            };
        } finally {
            Records.give(buffer);
        }
    }

    /** False when {@link #next} would say that nothing is left. Asks nobody. */
    public boolean mayHaveNext() {
        long self = enter();
        try {
            return mayHaveNext(self);
        } finally {
            exit();
        }
    }

    /** The number that completion records and events carry. */
    public long id() {
        long self = enter();
        try {
            return id(self);
        } finally {
            exit();
        }
    }

    /** Ends this for good; a running or later call throws {@link BywayException.Canceled}. Any thread. */
    public void cancel() {
        long self = enter();
        try {
            cancel(self);
        } finally {
            exit();
        }
    }

    /** The whole decision so far: what was offered, asked, answered, postponed and filtered. Text for people. */
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

    private static native long make(long engine, long address, long tag, long queue, int flags);

    private static native long next(long self, long timeoutMillis, long buffer, int capacity);

    private static native long pollNext(long self, long buffer, int capacity);

    private static native void plan(long engine, long address, long tag, long buffer, int capacity);

    private static native boolean mayHaveNext(long self);

    private static native void cancel(long self);

    private static native byte[] explain(long self, int format);

    private static native long id(long self);

    private static native void free(long self);
}
