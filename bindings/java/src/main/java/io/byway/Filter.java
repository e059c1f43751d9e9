package io.byway;

import java.net.InetAddress;

/** Judges target addresses: an allow and deny list of networks, or {@link #publicOnly}. */
public final class Filter extends Handle {
    /** {@code rules}: words like {@code deny 10.0.0.0/8} and {@code allow 2001:db8::/32}, one a line. */
    public Filter(String rules) {
        this(make(Texts.utf8(rules, "rules")));
    }

    private Filter(long pointer) {
        super(pointer, Filter::release);
    }

    /** Only addresses of the public internet: the guard against requests forged to inner hosts. */
    public static Filter publicOnly() {
        return new Filter(makePublic());
    }

    /** True when the filter lets this address through. */
    public boolean allows(InetAddress address) {
        byte[] packed = Ip.packOrNull(address);
        long self = enter();
        try {
            return allows(self, packed);
        } finally {
            exit();
        }
    }

    private static native long make(byte[] rules);

    private static native long makePublic();

    private static native void release(long self);

    private static native boolean allows(long self, byte[] ip);
}
