package io.byway;

import java.net.InetAddress;
import java.util.Objects;

/** A proxy with its own credentials, which are shown nowhere. Immutable. */
public final class Proxy extends Handle {
    private final ProxyKind kind;
    private final String host;
    private final int port;

    /** A proxy whose host is a name or literal. */
    public Proxy(ProxyKind kind, String host, int port) {
        this(make(kind.number(), Texts.utf8(host, "host"), null, port));
    }

    /** A proxy whose name is known to have this address: nobody is asked. */
    public Proxy(ProxyKind kind, String host, InetAddress address, int port) {
        this(make(kind.number(), Texts.utf8(host, "host"), Ip.packOrNull(address), port));
    }

    Proxy(long pointer) {
        super(pointer, Proxy::release);
        kind = ProxyKind.of(kind(pointer));
        host = Texts.of(host(pointer));
        port = port(pointer);
    }

    /** The same proxy with these credentials. */
    public Proxy withCredentials(String user, String password) {
        byte[] name = Texts.utf8(user, "user");
        byte[] secret = Texts.utf8(password, "password");
        long self = enter();
        try {
            return new Proxy(withCredentials(self, name, secret));
        } finally {
            exit();
        }
    }

    /** DIRECT, HTTP, and so on. */
    public ProxyKind kind() {
        return kind;
    }

    /** Name or address as given; empty for DIRECT. */
    public String host() {
        return host;
    }

    /** The address it was made with, null when it has to be resolved. */
    public InetAddress address() {
        long self = enter();
        try {
            return Ip.unpack(ip(self), 0);
        } finally {
            exit();
        }
    }

    /** 0 for DIRECT. */
    public int port() {
        return port;
    }

    @Override
    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof Proxy)) {
            return false;
        }
        try (Held held = new Held()) {
            return equals(held.of(this), held.of((Proxy) other));
        }
    }

    @Override
    public int hashCode() {
        return Objects.hash(kind, host, port);
    }

    @Override
    public String toString() {
        if (isClosed()) {
            return kind + " " + host + ":" + port + " (closed)";
        }
        long self = enter();
        try {
            return Texts.of(text(self));
        } finally {
            exit();
        }
    }

    private static native long make(int kind, byte[] host, byte[] ip, int port);

    private static native long withCredentials(long self, byte[] user, byte[] password);

    private static native int kind(long self);

    private static native byte[] host(long self);

    private static native byte[] ip(long self);

    private static native int port(long self);

    private static native boolean equals(long self, long other);

    private static native byte[] text(long self);

    private static native void release(long self);
}
