package io.byway;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One event loop's inbox: completion records, callbacks that must run on the host's thread, deadlines. Usable from every
 * thread; one poller at a time. {@link #drive} has an executor do the polling.
 */
public final class Queue extends Handle {
    private volatile Driver driver;

    /** What a queue is made with. */
    public static final class Options {
        private boolean loop;
        private int capacity;

        /** The polling thread is an event loop: a call on it that would have to wait throws instead. */
        public Options loop(boolean loop) {
            this.loop = loop;
            return this;
        }

        /** Records and callbacks that may wait, each; 0 means 65536. */
        public Options capacity(int capacity) {
            this.capacity = capacity;
            return this;
        }
    }

    /** A queue with the default options. */
    public Queue() {
        this(new Options());
    }

    /** A queue. */
    public Queue(Options options) {
        this(make(options.loop ? Abi.QUEUE_LOOP : 0, options.capacity));
    }

    Queue(long pointer) {
        super(pointer, Queue::release);
    }

    /** Descriptor that is readable while {@link #poll} has something to do. The queue's own. */
    public int fd() {
        long self = enter();
        try {
            return fd(self);
        } finally {
            exit();
        }
    }

    /**
     * Runs queued callbacks on this thread and returns the records that were there.
     *
     * @param timeout how long to wait for the first; null waits for the default, 30 s
     */
    public List<Completion> poll(Duration timeout) {
        long[] flat;
        long self = enter();
        try {
            flat = poll(self, millis(timeout));
        } finally {
            exit();
        }
        List<Completion> records = new ArrayList<>(flat.length / 4);
        for (int i = 0; i + 3 < flat.length; i += 4) {
            records.add(new Completion(flat[i], flat[i + 1], (int) flat[i + 2], (int) flat[i + 3]));
        }
        return records;
    }

    /** Ends a running poll, or the next one, at once. */
    public void wakeup() {
        long self = enter();
        try {
            wakeup(self);
        } finally {
            exit();
        }
    }

    /** Milliseconds until the next deadline, 0 when it has passed, empty when there is none. */
    public OptionalLong deadline() {
        long self = enter();
        try {
            long millis = deadline(self);
            return millis < 0 ? OptionalLong.empty() : OptionalLong.of(millis);
        } finally {
            exit();
        }
    }

    /** Events dropped because the queue was full. */
    public long lost() {
        long self = enter();
        try {
            return lost(self);
        } finally {
            exit();
        }
    }

    /**
     * Has {@code notify} called when the queue goes from empty to non-empty, on any thread, also one of the library's
     * own. It may only schedule a poll elsewhere. Null takes it back.
     */
    public void setNotify(Runnable notify) {
        long self = enter();
        try {
            setNotify(self, notify);
        } finally {
            exit();
        }
    }

    /**
     * Has {@code executor} poll this queue whenever there is something to do, one task at a time, until the queue is
     * closed. Callbacks run there; what waits in {@link Selector#nextAsync} completes there. Nothing blocks meanwhile,
     * so any executor will do, also one of virtual threads.
     */
    public void drive(Executor executor) {
        Driver fresh = new Driver(this, executor);
        setNotify(fresh);
        driver = fresh;
        fresh.run();
    }

    /** Completes when the record of this operation has come; the queue must be driven. */
    CompletableFuture<Integer> await(long id) {
        Driver driving = driver;
        if (driving == null) {
            throw Errors.of(Abi.E_STATE, "nobody polls this queue: call Queue.drive first", "queue");
        }
        return driving.await(id);
    }

    /** Something waits that has a deadline: who drives has to know how long to sleep. */
    void arm() {
        Driver driving = driver;
        if (driving != null && !driving.armed.get()) {
            driving.run();
        }
    }

    /** No record will come for this operation now. */
    void forget(long id) {
        Driver driving = driver;
        if (driving != null) {
            driving.waiting.remove(id);
        }
    }

    @Override
    void interrupt(long pointer) {
        wakeup(pointer);
    }

    /** Polls on an executor. */
    private static final class Driver implements Runnable {
        private final java.lang.ref.WeakReference<Queue> queue;
        private final Executor executor;
        private final AtomicBoolean scheduled = new AtomicBoolean();
        /** A look at the next deadline is on its way; later ones are looked at after it. */
        private final AtomicBoolean armed = new AtomicBoolean();
        private final Map<Long, CompletableFuture<Integer>> waiting = new ConcurrentHashMap<>();

        Driver(Queue queue, Executor executor) {
            // The library's reference to this must not keep the queue.
            this.queue = new java.lang.ref.WeakReference<>(queue);
            this.executor = executor;
        }

        CompletableFuture<Integer> await(long id) {
            return waiting.computeIfAbsent(id, none -> new CompletableFuture<>());
        }

        @Override
        public void run() {
            if (scheduled.compareAndSet(false, true)) {
                try {
                    executor.execute(this::turn);
                } catch (RejectedExecutionException over) {
                    scheduled.set(false);
                    fail(over);
                }
            }
        }

        private void turn() {
            scheduled.set(false);
            Queue polled = queue.get();
            if (polled == null || polled.isClosed()) {
                fail(Errors.of(Abi.E_BAD_HANDLE, "the queue is closed", "queue"));
                return;
            }
            List<Completion> records;
            OptionalLong deadline;
            try {
                records = polled.poll(Duration.ZERO);
                deadline = polled.deadline();
            } catch (BywayException error) {
                if (error.code() == Abi.E_BUSY) {
                    // Somebody polls by hand: what is left will be told again.
                    run();
                } else {
                    fail(error);
                }
                return;
            } catch (Throwable thrown) {
                Errors.report(thrown);
                run();
                return;
            }
            for (Completion record : records) {
                CompletableFuture<Integer> future = waiting.remove(record.id());
                if (future != null) {
                    future.complete(record.status());
                }
            }
            if (!records.isEmpty()) {
                run();
            } else if (deadline.isPresent() && armed.compareAndSet(false, true)) {
                CompletableFuture.delayedExecutor(
                                Math.max(1, deadline.getAsLong()), TimeUnit.MILLISECONDS, executor)
                        .execute(
                                () -> {
                                    armed.set(false);
                                    run();
                                });
            }
        }

        private void fail(Throwable error) {
            for (Long id : waiting.keySet()) {
                CompletableFuture<Integer> future = waiting.remove(id);
                if (future != null) {
                    future.completeExceptionally(error);
                }
            }
        }
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static void notify(Runnable target) {
            try {
                target.run();
            } catch (Throwable thrown) {
                Errors.report(thrown);
            }
        }
    }

    private static native long make(int flags, int capacity);

    private static native void release(long self);

    private static native int fd(long self);

    private static native long[] poll(long self, long timeoutMillis);

    private static native void wakeup(long self);

    private static native long deadline(long self);

    private static native long lost(long self);

    private static native void setNotify(long self, Runnable notify);
}
