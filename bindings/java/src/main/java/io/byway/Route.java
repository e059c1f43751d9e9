package io.byway;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * One way to an origin: exactly one TCP destination ({@link #hop}) and one target that the proxy or TLS is told. Read
 * without crossing into the library. Immutable; outlives its selection, also when that is closed.
 */
public final class Route {
    private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.nativeOrder());
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

    /** A reference of a route's own. */
    static final class Reference extends Handle {
        Reference(long pointer) {
            super(pointer, Route::release);
        }
    }

    private final byte[] records;
    private final int at;
    private final int texts;
    private final int index;
    private Selection selection;
    private volatile Reference reference;

    /** Record {@code index} of a selection; null for a plan's, which has no handle behind it. */
    Route(Selection selection, byte[] records, int index) {
        this.selection = selection;
        this.records = records;
        this.index = index;
        at = index * Abi.ROUTE_RECORD;
        texts = Records.HEAD;
    }

    private Route(Reference reference, byte[] record) {
        this.reference = reference;
        records = record;
        index = 0;
        at = 0;
        texts = 0;
    }

    /** From a reference that is ours from now on. */
    static Route owned(long pointer) {
        Reference reference = new Reference(pointer);
        long self = reference.enter();
        try {
            return new Route(reference, record(self));
        } finally {
            reference.exit();
        }
    }

    /**
     * A route from its parts, for hosts that keep routes of their own. {@code proxy} null is DIRECT; {@code hop} null is
     * an unresolved hop, as OkHttp's SOCKS routes have. The usual source of routes is a {@link Selection}.
     */
    public static Route of(Address address, Proxy proxy, InetAddress hop, int hopPort) {
        byte[] packed = Ip.packOrNull(hop);
        try (Handle.Held held = new Handle.Held()) {
            return owned(make(held.needed(address, "address"), held.of(proxy), packed, hopPort));
        }
    }

    /** What is connected to; null when it is unresolved. It knows its name where that is the origin's. */
    public InetAddress hop() {
        return Ip.unpack(records, at + Abi.ROUTE_RECORD_HOP_IP, proxyKind() == ProxyKind.DIRECT ? host() : null);
    }

    /** Port for the hop. */
    public int hopPort() {
        return (short) SHORT.get(records, at + Abi.ROUTE_RECORD_HOP_PORT) & 0xffff;
    }

    /** Hop and port, ready to connect to. */
    public InetSocketAddress hopAddress() {
        InetAddress hop = hop();
        return hop == null ? InetSocketAddress.createUnresolved(host(), hopPort()) : new InetSocketAddress(hop, hopPort());
    }

    /** The target's address where it was resolved here; null when the proxy resolves the name. */
    public InetAddress target() {
        InetAddress target = Ip.unpack(records, at + Abi.ROUTE_RECORD_TARGET_IP, host());
        if (target != null || (flags() & Abi.ROUTE_TARGET_IS_NAME) != 0) {
            return target;
        }
        return hop();
    }

    /** The target's port. */
    public int targetPort() {
        return (short) SHORT.get(records, at + Abi.ROUTE_RECORD_TARGET_PORT) & 0xffff;
    }

    /** The address's canonical host. */
    public String host() {
        return text(Abi.ROUTE_RECORD_HOST);
    }

    /** DIRECT, HTTP, and so on. */
    public ProxyKind proxyKind() {
        return ProxyKind.of((int) INT.get(records, at + Abi.ROUTE_RECORD_PROXY_KIND));
    }

    /** The proxy's host, empty for DIRECT. */
    public String proxyHost() {
        return text(Abi.ROUTE_RECORD_PROXY_HOST);
    }

    /** {@code BYWAY_ROUTE_*} bits. */
    public int flags() {
        return (int) INT.get(records, at + Abi.ROUTE_RECORD_FLAGS);
    }

    /** It failed before and was put behind the others. */
    public boolean isPostponed() {
        return (flags() & Abi.ROUTE_POSTPONED) != 0;
    }

    /** An HTTP proxy must first be asked for a tunnel. */
    public boolean requiresTunnel() {
        return (flags() & Abi.ROUTE_REQUIRES_TUNNEL) != 0;
    }

    /** The proxy selector chose the proxy. */
    public boolean isFromSelector() {
        return (flags() & Abi.ROUTE_FROM_SELECTOR) != 0;
    }

    /** OkHttp's {@code socketAddress}: the hop; behind SOCKS the unresolved origin and its port. */
    public InetSocketAddress socketAddress() {
        byte[] packed;
        Reference own = handle();
        long self = own.enter();
        try {
            packed = socketAddress(self);
        } finally {
            own.exit();
        }
        int port = (short) SHORT.get(packed, Ip.SIZE) & 0xffff;
        InetAddress address = Ip.unpack(packed, 0, proxyKind() == ProxyKind.DIRECT ? host() : null);
        return address == null ? InetSocketAddress.createUnresolved(host(), port) : new InetSocketAddress(address, port);
    }

    /** The proxy with its credentials; null for DIRECT. */
    public Proxy proxy() {
        Reference own = handle();
        long self = own.enter();
        try {
            long proxy = proxy(self);
            return proxy == 0 ? null : new Proxy(proxy);
        } finally {
            own.exit();
        }
    }

    /** HTTPS/SVCB metadata that came with the addresses; null when there is none. */
    public Service service() {
        if ((flags() & Abi.ROUTE_HAS_SERVICE) == 0) {
            return null;
        }
        Reference own = handle();
        long self = own.enter();
        try {
            List<String> alpn = new ArrayList<>();
            for (int i = 0; ; i++) {
                byte[] id = serviceAlpnAt(self, i);
                if (id == null) {
                    break;
                }
                alpn.add(Texts.of(id));
            }
            return new Service()
                    .port(Math.max(0, servicePort(self)))
                    .alpn(alpn)
                    .ech(serviceEch(self))
                    .hints(Ip.unpackAll(serviceHints(self)));
        } finally {
            own.exit();
        }
    }

    /** Why a connection over this route does not serve {@code wanted} too; null when it does. */
    public NoCoalescing coalesces(Address wanted, List<Route> wantedRoutes, Peer peer) {
        try (Handle.Held held = new Handle.Held()) {
            long[] each = new long[wantedRoutes.size()];
            for (int i = 0; i < each.length; i++) {
                each[i] = held.of(wantedRoutes.get(i).handle());
            }
            int why = coalesces(held.of(handle()), held.needed(wanted, "wanted"), each, peer.flags);
            return why == 0 ? null : NoCoalescing.of(why);
        }
    }

    /** True when it needs its selection no more. */
    boolean isOnItsOwn() {
        return reference != null;
    }

    /** The library's object, made when it is first needed. */
    Reference handle() {
        Reference own = reference;
        if (own != null) {
            return own;
        }
        synchronized (this) {
            if (reference == null) {
                if (selection == null) {
                    throw Errors.of(Abi.E_STATE, "routes of a plan cannot be reported: take them from a Selector", "route");
                }
                reference = new Reference(selection.at(index));
                selection = null;
            }
            return reference;
        }
    }

    private String text(int member) {
        long offset = (long) LONG.get(records, at + member);
        long length = (long) LONG.get(records, at + member + 8);
        if (length == 0) {
            return "";
        }
        return new String(records, (int) offset - texts, (int) length, StandardCharsets.UTF_8);
    }

    @Override
    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof Route)) {
            return false;
        }
        try (Handle.Held held = new Handle.Held()) {
            return equals(held.of(handle()), held.of(((Route) other).handle()));
        }
    }

    @Override
    public int hashCode() {
        Reference own = handle();
        long self = own.enter();
        try {
            return Long.hashCode(hash(self));
        } finally {
            own.exit();
        }
    }

    @Override
    public String toString() {
        if (reference == null && selection == null) {
            return host() + " via " + proxyKind() + " " + hopAddress();
        }
        Reference own = handle();
        long self = own.enter();
        try {
            return Texts.of(text(self));
        } finally {
            own.exit();
        }
    }

    private static native long make(long address, long proxy, byte[] hop, int hopPort);

    private static native byte[] record(long self);

    private static native byte[] socketAddress(long self);

    private static native long proxy(long self);

    private static native int servicePort(long self);

    private static native byte[] serviceEch(long self);

    private static native byte[] serviceAlpnAt(long self, int index);

    private static native byte[] serviceHints(long self);

    private static native boolean equals(long self, long other);

    private static native long hash(long self);

    private static native byte[] text(long self);

    private static native int coalesces(long self, long wanted, long[] wantedRoutes, int peerFlags);

    private static native void release(long self);
}
