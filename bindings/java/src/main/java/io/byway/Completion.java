package io.byway;

/** Says how one pending operation ended. */
public final class Completion {
    /** A selector's {@link Selector#pollNext} may be called again. */
    public static final int SELECTOR = Abi.COMPLETION_SELECTOR;

    /** A source has reached its first state. */
    public static final int SOURCE = Abi.COMPLETION_SOURCE;

    private final long tag;
    private final long id;
    private final int kind;
    private final int status;

    Completion(long tag, long id, int kind, int status) {
        this.tag = tag;
        this.id = id;
        this.kind = kind;
        this.status = status;
    }

    /** The host's number for the operation. */
    public long tag() {
        return tag;
    }

    /** The operation's number, for example {@link Selector#id}. */
    public long id() {
        return id;
    }

    /** {@link #SELECTOR} or {@link #SOURCE}. */
    public int kind() {
        return kind;
    }

    /** 0: call the operation again for its result. Negative: it ended without one. */
    public int status() {
        return status;
    }

    @Override
    public String toString() {
        return "Completion[tag=" + tag + ", id=" + id + ", kind=" + kind + ", status=" + status + "]";
    }
}
