package io.byway;

import java.util.List;

/** What connections are made to, and how: origin, proxy, resolver, protocols. Immutable. */
public final class Address extends Handle {
    /** What an address is made from; host and port are all that is needed. */
    public static final class Options {
        private final String host;
        private final int port;
        private String scheme = "";
        private int flags;
        private Proxy proxy;
        private ProxySelector proxySelector;
        private Dns dns;
        private List<String> protocols = List.of();
        private long tlsIdentity;
        private byte[] tlsIdentityBytes;
        private long authenticator;

        /**
         * A host name or IP literal, canonicalised by the WHATWG URL rules, IPv6 with or without brackets and with a
         * zone; and a port, 1 to 65535.
         */
        public Options(String host, int port) {
            this.host = host;
            this.port = port;
        }

        /** URL scheme; by default {@code https} with TLS, else {@code http}. {@code https} and {@code wss} imply TLS. */
        public Options scheme(String scheme) {
            this.scheme = scheme;
            return this;
        }

        /** TLS to the origin. */
        public Options tls(boolean on) {
            flags = on ? flags | Abi.ADDRESS_TLS : flags & ~Abi.ADDRESS_TLS;
            return this;
        }

        /** No proxy, and nobody is asked; differs from saying nothing. */
        public Options direct(boolean on) {
            flags = on ? flags | Abi.ADDRESS_DIRECT : flags & ~Abi.ADDRESS_DIRECT;
            return this;
        }

        /** Explicit proxy. The proxy selector is then not asked. */
        public Options proxy(Proxy proxy) {
            this.proxy = proxy;
            return this;
        }

        /** Who chooses proxies, null for nobody: DIRECT. */
        public Options proxySelector(ProxySelector selector) {
            this.proxySelector = selector;
            return this;
        }

        /** Who resolves names, null for the system. */
        public Options dns(Dns dns) {
            this.dns = dns;
            return this;
        }

        /**
         * Application protocols in order of preference, as ALPN names. {@code h2_prior_knowledge} needs a tunnel through
         * an HTTP proxy.
         */
        public Options protocols(List<String> protocols) {
            this.protocols = List.copyOf(protocols);
            return this;
        }

        /** Opaque identity of the host's own TLS configuration; ignored without TLS. */
        public Options tlsIdentity(long identity) {
            this.tlsIdentity = identity;
            return this;
        }

        /** More of it, as bytes. */
        public Options tlsIdentityBytes(byte[] identity) {
            this.tlsIdentityBytes = identity == null ? null : identity.clone();
            return this;
        }

        /** Opaque identity of whatever answers a proxy's challenges; counts in equality. */
        public Options authenticator(long identity) {
            this.authenticator = identity;
            return this;
        }
    }

    private final Engine engine;

    /** An address. */
    public Address(Engine engine, Options options) {
        super(made(engine, options), Address::release);
        this.engine = engine;
    }

    private static long made(Engine engine, Options options) {
        java.util.Objects.requireNonNull(options, "options");
        byte[] scheme = Texts.utf8(options.scheme, "scheme");
        byte[] host = Texts.utf8(options.host, "host");
        Texts protocols = Texts.pack(options.protocols, "protocols");
        try (Held held = new Held()) {
            return make(
                    held.needed(engine, "engine"),
                    scheme,
                    host,
                    options.port,
                    options.flags,
                    held.of(options.proxy),
                    held.of(options.proxySelector),
                    held.of(options.dns),
                    protocols.bytes,
                    protocols.lengths,
                    options.tlsIdentity,
                    options.tlsIdentityBytes,
                    options.authenticator);
        }
    }

    /** The engine it was made with. */
    public Engine engine() {
        return engine;
    }

    /** Canonical host. */
    public String host() {
        long self = enter();
        try {
            return Texts.of(host(self));
        } finally {
            exit();
        }
    }

    /** The origin's port. */
    public int port() {
        long self = enter();
        try {
            return port(self);
        } finally {
            exit();
        }
    }

    /** What a proxy selector is asked with. */
    public String uri() {
        long self = enter();
        try {
            return Texts.of(uri(self));
        } finally {
            exit();
        }
    }

    @Override
    public boolean equals(Object other) {
        if (this == other) {
            return true;
        }
        if (!(other instanceof Address)) {
            return false;
        }
        try (Held held = new Held()) {
            return equals(held.of(this), held.of((Address) other));
        }
    }

    /** True when everything but the host is equal: what a connection must have in common to be shared. */
    public boolean equalNonHost(Address other) {
        try (Held held = new Held()) {
            return equalNonHost(held.of(this), held.needed(other, "other"));
        }
    }

    @Override
    public int hashCode() {
        long self = enter();
        try {
            return Long.hashCode(hash(self));
        } finally {
            exit();
        }
    }

    @Override
    public String toString() {
        if (isClosed()) {
            return "Address (closed)";
        }
        long self = enter();
        try {
            return Texts.of(text(self));
        } finally {
            exit();
        }
    }

    private static native long make(
            long engine,
            byte[] scheme,
            byte[] host,
            int port,
            int flags,
            long proxy,
            long proxySelector,
            long dns,
            byte[] protocols,
            int[] protocolLengths,
            long tlsIdentity,
            byte[] tlsIdentityBytes,
            long authenticator);

    private static native void release(long self);

    private static native byte[] host(long self);

    private static native byte[] uri(long self);

    private static native int port(long self);

    private static native boolean equals(long self, long other);

    private static native boolean equalNonHost(long self, long other);

    private static native long hash(long self);

    private static native byte[] text(long self);
}
