package io.byway;

/** One descriptor of a dial to watch. */
public final class PollFd {
    private final int id;
    private final int fd;
    private final int events;
    private final int revents;

    /** An entry; {@code revents} is what {@code poll} said. */
    public PollFd(int id, int fd, int events, int revents) {
        this.id = id;
        this.fd = fd;
        this.events = events;
        this.revents = revents;
    }

    /** Number of the attempt, 0 for wake-ups. A descriptor's number may come back for another attempt: compare these. */
    public int id() {
        return id;
    }

    /** The descriptor. */
    public int fd() {
        return fd;
    }

    /** POLLIN, POLLOUT. */
    public int events() {
        return events;
    }

    /** What {@code poll} said. */
    public int revents() {
        return revents;
    }
}
