package io.byway;

import java.util.List;

/**
 * Host code that a {@link Dial} calls on the thread that steps it. Override what is wanted; the rest does as built in.
 * What is thrown skips the route, and becomes the cause of what the caller sees when nothing else connects.
 */
public interface Hooks {
    /** Says that {@link Dial#authenticate} will be called, from any thread. Compared by identity. */
    @SuppressWarnings("StringOperationCanBeSimplified")
    String LATER = new String("later");

    /**
     * A stream socket to connect with, as a descriptor that the library takes over; -1: it is opened as usual.
     *
     * @param family AF_INET or AF_INET6
     */
    default int openSocket(int family, int protocol, Route route) throws Exception {
        return -1;
    }

    /** Sets further options before {@code connect}, for example what keeps a socket out of a VPN. */
    default void configure(int fd, Route route) throws Exception {}

    /** Closes a socket and returns true; false: it is closed as usual. */
    default boolean closeSocket(int fd) throws Exception {
        return false;
    }

    /**
     * Credentials for the challenges of an HTTP proxy (values of {@code Proxy-Authenticate}; none before the first
     * request): the whole value of {@code Proxy-Authorization}. Null: there are none, the attempt ends. {@link #LATER}:
     * they come later.
     */
    default String proxyAuth(int attempt, Route route, List<String> challenges) throws Exception {
        return null;
    }
}
