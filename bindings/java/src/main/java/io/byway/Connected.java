package io.byway;

import java.io.FileDescriptor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;

/**
 * A connected socket and the route it leads over. {@link #socket}, {@link #channel} or {@link #detach} hands it over,
 * once; until then {@link #close} closes it.
 */
public final class Connected implements AutoCloseable {
    /** The descriptor while it is ours. */
    private static final class Descriptor extends Handle {
        private volatile boolean handedOver;

        Descriptor(int fd) {
            super(fd, pointer -> closeSocket((int) pointer));
        }

        @Override
        String gone() {
            return handedOver ? "the socket was handed over" : "the socket is closed";
        }
    }

    private final Descriptor descriptor;
    private final Route route;
    private final int attempt;
    private final int flags;

    Connected(long[] taken) {
        descriptor = new Descriptor((int) taken[0]);
        attempt = (int) taken[1];
        route = Route.owned(taken[2]);
        flags = (int) taken[3];
    }

    /** The route it leads over. */
    public Route route() {
        return route;
    }

    /** Number of the attempt, for {@link Dial#confirm} and {@link Dial#resume}. */
    public int attempt() {
        return attempt;
    }

    /** TLS to an HTTPS proxy must be run before anything else, then the tunnel asked for: a {@link Handshake}. */
    public boolean needsProxyTls() {
        return (flags & Abi.CONNECTED_NEEDS_PROXY_TLS) != 0;
    }

    /** The race goes on until {@link Dial#confirm}. */
    public boolean isProvisional() {
        return (flags & Abi.CONNECTED_PROVISIONAL) != 0;
    }

    /** The descriptor, which stays this object's: for looking at it. */
    public int fd() {
        long fd = descriptor.enter();
        descriptor.exit();
        return (int) fd;
    }

    /**
     * Hands the descriptor over, for example to a native transport: whoever calls this closes it. Non-blocking, unless
     * {@link DialOptions#blockingSocket} was asked for.
     */
    public int detach() {
        int fd = (int) descriptor.forsake();
        descriptor.handedOver = true;
        return fd;
    }

    /**
     * Hands the socket over as a blocking channel.
     *
     * @throws UnsupportedOperationException on a JVM whose channels cannot be made from a descriptor; {@link #detach}
     *     works everywhere
     */
    public SocketChannel channel() throws IOException {
        InetSocketAddress remote = route.hopAddress();
        ProtocolFamily family =
                remote.getAddress() instanceof java.net.Inet6Address
                        ? StandardProtocolFamily.INET6
                        : StandardProtocolFamily.INET;
        int fd = fd();
        if (!setBlocking(fd, true)) {
            throw new IOException("descriptor " + fd + " cannot be made blocking");
        }
        FileDescriptor raw = newFileDescriptor(fd);
        SocketChannel channel = (SocketChannel) newChannel(SelectorProvider.provider(), family, raw, remote);
        if (channel == null) {
            setBlocking(fd, false);
            throw new UnsupportedOperationException(
                    "Java " + System.getProperty("java.version") + " makes no channel from a descriptor");
        }
        detach();
        return channel;
    }

    /** Hands the socket over as a {@link Socket}, on which TLS can be layered. As {@link #channel}. */
    public Socket socket() throws IOException {
        return channel().socket();
    }

    /** Closes the socket if it was not handed over. Idempotent. */
    @Override
    public void close() {
        descriptor.close();
    }

    @Override
    public String toString() {
        return "Connected[" + route + "]";
    }

    private static native void closeSocket(int fd);

    private static native boolean setBlocking(int fd, boolean on);

    private static native FileDescriptor newFileDescriptor(int fd);

    private static native Object newChannel(
            SelectorProvider provider, ProtocolFamily family, FileDescriptor descriptor, InetSocketAddress remote);
}
