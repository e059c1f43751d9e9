package io.byway;

import java.util.Set;

/** Kinds of failure that are reported and asked about. */
public enum Failure {
    /** An input or output error of no special kind. */
    IO(Abi.FAILURE_IO),

    /** Connection refused. */
    REFUSED(Abi.FAILURE_REFUSED),

    /** Network or host unreachable, as reported from the path. */
    UNREACHABLE(Abi.FAILURE_UNREACHABLE),

    /** Connecting, or reading, took too long. */
    TIMEOUT(Abi.FAILURE_TIMEOUT),

    /** The peer reset the connection. */
    RESET(Abi.FAILURE_RESET),

    /** This machine could not make the attempt: descriptors, permission, no local route. Blames no route. */
    LOCAL(Abi.FAILURE_LOCAL),

    /** Called off: it lost the race, or the call was cancelled. Blames no route. */
    CANCELED(Abi.FAILURE_CANCELED),

    /** Interrupted, not by a timeout. */
    INTERRUPTED(Abi.FAILURE_INTERRUPTED),

    /** A name did not resolve. */
    UNKNOWN_HOST(Abi.FAILURE_UNKNOWN_HOST),

    /** The peer broke the protocol. */
    PROTOCOL(Abi.FAILURE_PROTOCOL),

    /** A TLS handshake failed for a reason other than a certificate. */
    TLS_HANDSHAKE(Abi.FAILURE_TLS_HANDSHAKE),

    /** A TLS handshake failed because of a certificate. */
    TLS_CERTIFICATE(Abi.FAILURE_TLS_CERTIFICATE),

    /** The peer is not who it should be: host name or pin. */
    TLS_PEER_UNVERIFIED(Abi.FAILURE_TLS_PEER_UNVERIFIED),

    /** Another TLS failure. */
    TLS(Abi.FAILURE_TLS),

    /** The connection announced its shutdown before the request was sent. */
    CONNECTION_SHUTDOWN(Abi.FAILURE_CONNECTION_SHUTDOWN),

    /** A multiplexed stream was refused before it was processed. */
    STREAM_REFUSED(Abi.FAILURE_STREAM_REFUSED),

    /** A multiplexed stream was cancelled. */
    STREAM_CANCELED(Abi.FAILURE_STREAM_CANCELED),

    /** A multiplexed stream was reset for another reason. */
    STREAM_RESET(Abi.FAILURE_STREAM_RESET),

    /** The request's own body could not be read. */
    REQUEST_BODY(Abi.FAILURE_REQUEST_BODY),

    /** The proxy refuses to make the connection. */
    PROXY_REFUSED(Abi.FAILURE_PROXY_REFUSED),

    /** The proxy wants other credentials. */
    PROXY_AUTH(Abi.FAILURE_PROXY_AUTH),

    /** The proxy breaks its protocol. */
    PROXY_PROTOCOL(Abi.FAILURE_PROXY_PROTOCOL),

    /** 407 from something that is no HTTP proxy. */
    AUTH_WITHOUT_PROXY(Abi.FAILURE_AUTH_WITHOUT_PROXY),

    /** The socket is connected to itself. */
    SELF_CONNECT(Abi.FAILURE_SELF_CONNECT),

    /** The proxy's port cannot be connected to. */
    INVALID_PORT(Abi.FAILURE_INVALID_PORT),

    /** Every address was refused by the address filter. */
    FILTERED(Abi.FAILURE_FILTERED);

    private static final Failure[] ALL = values();

    private final int number;

    Failure(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static Failure of(int number) {
        for (Failure one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no Failure has number " + number);
    }

    /**
     * The kind of this system's error number ({@code errno}) that connecting, reading or writing gave, for transports
     * that see it; {@link #IO} for what means nothing special.
     */
    public static Failure fromErrno(int osErrno) {
        Library.load();
        return of(fromErrno0(osErrno));
    }

    /** True when the connection may be tried once more with other TLS parameters. */
    public boolean retryTls() {
        Library.load();
        return retryTls0(number);
    }

    /** What OkHttp's exception says. */
    public String text() {
        Library.load();
        return Texts.of(text0(number));
    }

    /** What a connection's failed exchange means. */
    public static Set<Tell> track(FailedExchange failed) {
        Library.load();
        int failure = failed.failure == null ? -1 : failed.failure.number;
        return Tell.of(track0(failure, failed.flags, failed.successes, failed.refusedBefore));
    }

    /** Who is told of a failed attempt. */
    public static Set<Tell> report(
            Compat compat, Failure failure, Phase phase, ProxyKind proxyKind, boolean fromSelector, boolean retryEnabled) {
        Library.load();
        return Tell.of(
                report0(
                        compat.number(),
                        failure.number,
                        phase.number(),
                        proxyKind.number(),
                        fromSelector,
                        retryEnabled));
    }

    private static native int fromErrno0(int osErrno);

    private static native boolean retryTls0(int failure);

    private static native byte[] text0(int failure);

    private static native int track0(int failure, int flags, long successes, int refusedBefore);

    private static native int report0(
            int compat, int failure, int phase, int proxyKind, boolean fromSelector, boolean retryEnabled);
}
