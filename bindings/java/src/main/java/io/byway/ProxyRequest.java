package io.byway;

/** A question to a proxy selector, and the place for its answer. {@link #later} keeps it beyond the callback. */
public final class ProxyRequest extends Request {
    private final String uri;

    ProxyRequest(long pointer, String uri, long tag) {
        super(pointer, tag, -1);
        this.uri = uri;
    }

    /** The URI that proxies are wanted for. */
    public String uri() {
        return uri;
    }

    /** Adds a proxy from its parts. */
    public ProxyRequest add(ProxyKind kind, String host, int port) {
        byte[] name = Texts.utf8(host, "host");
        long self = enter();
        try {
            add(self, kind.number(), name, port);
        } finally {
            exit();
        }
        return this;
    }

    /** Adds a proxy. */
    public ProxyRequest add(Proxy proxy) {
        long self = enter();
        try {
            long added = proxy.enter();
            try {
                addProxy(self, added);
            } finally {
                proxy.exit();
            }
        } finally {
            exit();
        }
        return this;
    }

    /** Adds DIRECT, which is said and never implied. */
    public ProxyRequest addDirect() {
        long self = enter();
        try {
            addDirect(self);
        } finally {
            exit();
        }
        return this;
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
        return new Kept(retain(self), ProxyRequest::release);
    }

    private static native long id(long self);

    private static native boolean isCanceled(long self);

    private static native void add(long self, int kind, byte[] host, int port);

    private static native void addProxy(long self, long proxy);

    private static native void addDirect(long self);

    private static native void finish(long self);

    private static native void fail(long self, int status, long hostCode, byte[] message);

    private static native long retain(long self);

    private static native void release(long self);
}
