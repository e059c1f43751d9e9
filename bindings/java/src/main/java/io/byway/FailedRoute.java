package io.byway;

import java.net.InetAddress;

/** One failed route that an engine remembers. */
public final class FailedRoute {
    private final InetAddress hop;
    private final long[] numbers;

    FailedRoute(InetAddress hop, long[] numbers) {
        this.hop = hop;
        this.numbers = numbers;
    }

    /** What was connected to. */
    public InetAddress hop() {
        return hop;
    }

    /** Its port. */
    public int hopPort() {
        return (int) numbers[0];
    }

    /** The origin's port. */
    public int targetPort() {
        return (int) numbers[1];
    }

    /** Kind of the proxy. */
    public ProxyKind proxyKind() {
        return ProxyKind.of((int) numbers[2]);
    }

    /** What went wrong. */
    public Failure failure() {
        return Failure.of((int) numbers[3]);
    }

    /** The system's number, 0 for none. */
    public int osErrno() {
        return (int) numbers[4];
    }

    /** Failed periods in a row. */
    public int periods() {
        return (int) numbers[5];
    }

    /** Milliseconds since the failure that began this postponement. */
    public long ageMillis() {
        return numbers[6];
    }

    /** Milliseconds until it counts as good again; -1 = until it is reported connected. */
    public long remainingMillis() {
        return numbers[7];
    }

    @Override
    public String toString() {
        return "FailedRoute[" + hop + ":" + hopPort() + ", " + failure() + ", periods=" + periods() + "]";
    }
}
