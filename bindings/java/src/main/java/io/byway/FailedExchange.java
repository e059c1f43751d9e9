package io.byway;

/** A connection whose exchange failed, for {@link Failure#track}. */
public final class FailedExchange {
    final Failure failure;
    int flags;

    /** What went wrong; null for a failure without an error. */
    public FailedExchange(Failure failure) {
        this.failure = failure;
    }

    long successes;
    int refusedBefore;

    /** Exchanges completed on the connection so far. */
    public FailedExchange successes(long count) {
        successes = count;
        return this;
    }

    /** Streams refused on it before. */
    public FailedExchange refusedBefore(int count) {
        refusedBefore = count;
        return this;
    }

    /** HTTP/2 or newer. */
    public FailedExchange multiplexed(boolean on) {
        flags = on ? flags | Abi.EXCHANGE_MULTIPLEXED : flags & ~Abi.EXCHANGE_MULTIPLEXED;
        return this;
    }

    /** The failing call was cancelled by its own host. */
    public FailedExchange callCanceled(boolean on) {
        flags = on ? flags | Abi.EXCHANGE_CALL_CANCELED : flags & ~Abi.EXCHANGE_CALL_CANCELED;
        return this;
    }

    /** The connection goes through a proxy. */
    public FailedExchange proxied(boolean on) {
        flags = on ? flags | Abi.EXCHANGE_PROXIED : flags & ~Abi.EXCHANGE_PROXIED;
        return this;
    }
}
