package io.byway;

/** A call that failed, for {@link Engine#recover}. */
public final class FailedCall {
    final Failure failure;
    final Phase phase;
    int flags;

    /** What went wrong, and where. */
    public FailedCall(Failure failure, Phase phase) {
        this.failure = failure;
        this.phase = phase;
    }

    /** The host lets failed connections be retried. */
    public FailedCall retryEnabled(boolean on) {
        flags = on ? flags | Abi.CALL_RETRY_ENABLED : flags & ~Abi.CALL_RETRY_ENABLED;
        return this;
    }

    /** The request's body can be sent only once. */
    public FailedCall oneShot(boolean on) {
        flags = on ? flags | Abi.CALL_ONE_SHOT : flags & ~Abi.CALL_ONE_SHOT;
        return this;
    }

    /** Bytes of the request may have left this machine. */
    public FailedCall sent(boolean on) {
        flags = on ? flags | Abi.CALL_SENT : flags & ~Abi.CALL_SENT;
        return this;
    }

    /** The exchange itself failed, not the search for a connection. */
    public FailedCall exchangeFailed(boolean on) {
        flags = on ? flags | Abi.CALL_EXCHANGE_FAILED : flags & ~Abi.CALL_EXCHANGE_FAILED;
        return this;
    }

    /** A further route exists. */
    public FailedCall moreRoutes(boolean on) {
        flags = on ? flags | Abi.CALL_MORE_ROUTES : flags & ~Abi.CALL_MORE_ROUTES;
        return this;
    }
}
