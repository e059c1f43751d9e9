package io.byway;

import java.net.InetAddress;
import java.util.Collection;
import java.util.List;

/** A question to a resolver, and the place for its answer. {@link #later} keeps it beyond the callback. */
public final class DnsRequest extends Request {
    private final String host;

    DnsRequest(long pointer, String host, long tag, long deadlineMillis) {
        super(pointer, tag, deadlineMillis);
        this.host = host;
    }

    /** The canonical name that is asked. */
    public String host() {
        return host;
    }

    /** Adds addresses, behind those already there. All or none. */
    public DnsRequest add(Collection<? extends InetAddress> addresses) {
        byte[] packed = Ip.pack(addresses);
        long self = enter();
        try {
            add(self, packed);
        } finally {
            exit();
        }
        return this;
    }

    /** Adds one address. */
    public DnsRequest add(InetAddress address) {
        return add(List.of(address));
    }

    /** Adds one HTTPS or SVCB record, which routes carry on. */
    public DnsRequest addService(Service service) {
        Texts alpn = Texts.pack(service.alpn(), "service.alpn");
        byte[] target = Texts.utf8(service.target(), "service.target");
        byte[] hints = Ip.pack(service.hints());
        long self = enter();
        try {
            addService(
                    self,
                    target,
                    service.priority(),
                    service.port(),
                    alpn.bytes,
                    alpn.lengths,
                    service.echBytes(),
                    hints);
        } finally {
            exit();
        }
        return this;
    }

    /** Says that all addresses of this family, 4 or 6, are there. */
    public void familyDone(int family) {
        long self = enter();
        try {
            familyDone(self, family);
        } finally {
            exit();
        }
    }

    @Override
    long id0(long self) {
        return id(self);
    }

    @Override
    boolean isCanceled0(long self) {
        return isCanceled(self);
    }

    @Override
    void finish0(long self) {
        finish(self);
    }

    @Override
    void fail0(long self, int status, long hostCode, byte[] message) {
        fail(self, status, hostCode, message);
    }

    @Override
    Kept keep(long self) {
        return new Kept(retain(self), DnsRequest::release);
    }

    private static native long id(long self);

    private static native boolean isCanceled(long self);

    private static native void add(long self, byte[] packed);

    private static native void addService(
            long self, byte[] target, int priority, int port, byte[] alpn, int[] alpnLengths, byte[] ech, byte[] hints);

    private static native void familyDone(long self, int family);

    private static native void finish(long self);

    private static native void fail(long self, int status, long hostCode, byte[] message);

    private static native long retain(long self);

    private static native void release(long self);
}
