package io.byway;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.function.LongConsumer;

/**
 * Owns one object of the library. {@link #close} is idempotent, legal from any thread at any time, and does not wait: a
 * call that is running on another thread ends first, at once where it waits in a selector, a dial or a queue. What is
 * never closed goes with the garbage collector. Every call on a closed object throws {@link BywayException.Handle}.
 */
public abstract class Handle implements AutoCloseable {
    static {
        Library.load();
    }

    private static final Cleaner CLEANER = Cleaner.create();

    private final State state;
    private final Cleaner.Cleanable cleanable;

    /** {@code end} gives the reference back; it must not hold this object. */
    Handle(long pointer, LongConsumer end) {
        state = new State(pointer, end);
        cleanable = CLEANER.register(this, state);
    }

    /** The address for one native call, which {@link #exit} must follow. */
    final long enter() {
        if (!state.enter()) {
            throw Errors.of(Abi.E_BAD_HANDLE, gone(), "self");
        }
        return state.pointer;
    }

    /** What to say when it is closed. */
    String gone() {
        return getClass().getSimpleName() + " is closed";
    }

    final void exit() {
        state.exit();
    }

    /** True after {@link #close}. */
    public final boolean isClosed() {
        return state.isClosed();
    }

    @Override
    public void close() {
        if (state.close(this)) {
            cleanable.clean();
        }
    }

    /** Gives what it owns to the caller: nothing is ended then. Not while a call is running. */
    final long forsake() {
        if (!state.forsake()) {
            throw Errors.of(
                    isClosed() ? Abi.E_BAD_HANDLE : Abi.E_BUSY,
                    isClosed() ? gone() : getClass().getSimpleName() + " is in use",
                    "self");
        }
        cleanable.clean();
        return state.pointer;
    }

    /** Ends what is running on another thread at close, where there is something that waits. */
    void interrupt(long pointer) {}

    /** As the library counts: null is the engine's default, what is below a millisecond rounds up. */
    static long millis(Duration timeout) {
        if (timeout == null) {
            return -1;
        }
        if (timeout.isNegative() || timeout.isZero()) {
            return 0;
        }
        try {
            return timeout.plusNanos(999_999).toMillis();
        } catch (ArithmeticException huge) {
            return Long.MAX_VALUE / 2;
        }
    }

    /** A duration that is no wait, which may not be negative. */
    static long option(Duration time, String parameter) {
        if (time != null && time.isNegative()) {
            throw Errors.of(Abi.E_ARGUMENT, time + " is negative", parameter);
        }
        return millis(time);
    }

    /** A duration as a field of 32 bits. */
    static int millis32(Duration time, String parameter) {
        long millis = option(time, parameter);
        if (millis < 0 || millis > 0xffff_fffeL) {
            throw Errors.of(Abi.E_ARGUMENT, "0 to 4294967294 milliseconds are possible, not " + millis, parameter);
        }
        return (int) millis;
    }

    /**
     * Counts running calls, so that the reference is given back behind the last of them. Apart from its handle, which
     * the collector may take while a call runs.
     */
    static final class State implements Runnable {
        private static final long CLOSED = 1L << 62;
        private static final long ENDED = 1L << 61;
        private static final VarHandle CALLS;

        static {
            try {
                CALLS = MethodHandles.lookup().findVarHandle(State.class, "calls", long.class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }

        final long pointer;
        private final LongConsumer end;

        @SuppressWarnings("unused") // through CALLS
        private volatile long calls;

        State(long pointer, LongConsumer end) {
            this.pointer = pointer;
            this.end = end;
        }

        boolean enter() {
            if (((long) CALLS.getAndAdd(this, 1L) & CLOSED) != 0) {
                exit();
                return false;
            }
            return true;
        }

        void exit() {
            if ((long) CALLS.getAndAdd(this, -1L) - 1 == CLOSED) {
                end();
            }
        }

        private void end() {
            if (CALLS.compareAndSet(this, CLOSED, CLOSED | ENDED)) {
                end.accept(pointer);
            }
        }

        boolean forsake() {
            return CALLS.compareAndSet(this, 0L, CLOSED | ENDED);
        }

        boolean isClosed() {
            return ((long) CALLS.getVolatile(this) & CLOSED) != 0;
        }

        /** True for the first one. */
        boolean close(Handle handle) {
            // One call of our own keeps the pointer alive for the interruption.
            long before = (long) CALLS.getAndAdd(this, 1L);
            boolean first =
                    (before & CLOSED) == 0 && ((long) CALLS.getAndBitwiseOr(this, CLOSED) & CLOSED) == 0;
            if (first && before > 0 && handle != null) {
                handle.interrupt(pointer);
            }
            exit();
            return first;
        }

        /** The collector's close. */
        @Override
        public void run() {
            close(null);
        }
    }

    /** Several handles for one call. */
    static final class Held implements AutoCloseable {
        private Handle[] handles = new Handle[4];
        private int count;

        /** The address, 0 for null. */
        long of(Handle handle) {
            if (handle == null) {
                return 0;
            }
            if (count == handles.length) {
                handles = java.util.Arrays.copyOf(handles, 2 * count);
            }
            long pointer = handle.enter();
            handles[count++] = handle;
            return pointer;
        }

        /** The address of one that must be there. */
        long needed(Handle handle, String parameter) {
            return of(java.util.Objects.requireNonNull(handle, parameter));
        }

        @Override
        public void close() {
            while (count > 0) {
                handles[--count].exit();
            }
        }
    }
}
