package io.byway;

import java.util.function.LongConsumer;

/**
 * A question to a callback, and the place for its answer. It is lent to the callback; {@link #later} keeps it, and the
 * answer then comes from any thread. The first answer wins. A kept request that is collected unanswered ends its waiter
 * with {@code BYWAY_E_ABANDONED}.
 */
public abstract class Request {
    private static final String ANSWERED = "the request has its answer already";
    private final long pointer;
    private final long tag;
    private final long deadlineMillis;
    private volatile boolean lent = true;
    private volatile boolean answered;
    private volatile Kept kept;
    private boolean passed;

    Request(long pointer, long tag, long deadlineMillis) {
        this.pointer = pointer;
        this.tag = tag;
        this.deadlineMillis = deadlineMillis;
    }

    /** The host's number of the operation that asks. */
    public final long tag() {
        return tag;
    }

    /** Milliseconds the asking call has left, -1 when it has no limit. */
    public final long deadlineMillis() {
        return deadlineMillis;
    }

    /** The number that {@code canceled} names. */
    public final long id() {
        long self = look();
        try {
            return id0(self);
        } finally {
            exit();
        }
    }

    /** True when nobody waits for the answer any more. */
    public final boolean isCanceled() {
        long self = look();
        try {
            return isCanceled0(self);
        } finally {
            exit();
        }
    }

    /** Says that {@link #finish} or {@link #fail} comes after the callback has returned, from any thread. */
    public final void later() {
        if (kept == null) {
            kept = keep(enter());
        }
    }

    /** Says that who would be asked without this callback is asked. Only inside the callback. */
    public final void pass() {
        enter();
        exit();
        passed = true;
    }

    /** The answer is complete. */
    public final void finish() {
        long self = enter();
        try {
            finish0(self);
        } finally {
            exit();
        }
        done();
    }

    /** There is no answer, for this reason, which becomes the cause of what the caller sees. */
    public final void fail(Throwable reason) {
        fail(Errors.statusOf(reason), Errors.keep(reason), String.valueOf(reason));
    }

    /** There is no answer. {@code status} is one of {@link Status}; {@code hostCode} is shown with the error. */
    public final void fail(int status, long hostCode, String message) {
        byte[] text = message.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        long self = enter();
        try {
            fail0(self, status, hostCode, text);
        } finally {
            exit();
        }
        done();
    }

    private void done() {
        answered = true;
        giveBack();
    }

    /** What was kept is over with the answer, but not before the callback, which may still look at it. */
    private void giveBack() {
        Kept mine = kept;
        if (mine != null && answered && !lent) {
            mine.close();
        }
    }

    final int outcome() {
        return kept != null ? Abi.PENDING : passed ? Abi.PASS : Abi.OK;
    }

    /** The callback threw: its exception is the answer, whichever thread waits for it. */
    final int thrown(Throwable thrown) {
        try {
            fail(thrown);
        } catch (Throwable late) {
            // Answered already, or nobody waits: the exception has nowhere else to go.
            Errors.report(thrown);
        }
        return outcome();
    }

    final void returned() {
        lent = false;
        giveBack();
    }

    /** For what belongs to an answer. */
    final long enter() {
        // Told as it will be when the callback has returned.
        if (answered && kept != null) {
            throw Errors.of(Abi.E_BAD_HANDLE, ANSWERED, "self");
        }
        return look();
    }

    private long look() {
        Kept mine = kept;
        if (mine != null) {
            return mine.enter();
        }
        if (!lent) {
            throw Errors.of(Abi.E_BAD_HANDLE, "the callback has returned and later() was not called", "request");
        }
        return pointer;
    }

    final void exit() {
        Kept mine = kept;
        if (mine != null) {
            mine.exit();
        }
    }

    abstract long id0(long self);

    abstract boolean isCanceled0(long self);

    abstract void finish0(long self);

    abstract void fail0(long self, int status, long hostCode, byte[] message);

    abstract Kept keep(long self);

    /** A reference of our own. */
    static final class Kept extends Handle {
        Kept(long pointer, LongConsumer end) {
            super(pointer, end);
        }

        @Override
        String gone() {
            return ANSWERED;
        }
    }
}
