package io.byway;

/** Where the name is resolved follows the kind: SOCKS4 and SOCKS5 here, SOCKS4A and SOCKS5H at the proxy. */
public enum ProxyKind {
    /** No proxy. */
    DIRECT(Abi.PROXY_DIRECT),

    /** HTTP proxy; CONNECT where a tunnel is needed. */
    HTTP(Abi.PROXY_HTTP),

    /** HTTP proxy reached over TLS. */
    HTTPS(Abi.PROXY_HTTPS),

    /** The target is resolved here, IPv4 only. */
    SOCKS4(Abi.PROXY_SOCKS4),

    /** The proxy resolves. */
    SOCKS4A(Abi.PROXY_SOCKS4A),

    /** The target is resolved here. */
    SOCKS5(Abi.PROXY_SOCKS5),

    /** The proxy resolves. */
    SOCKS5H(Abi.PROXY_SOCKS5H);

    private static final ProxyKind[] ALL = values();

    private final int number;

    ProxyKind(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static ProxyKind of(int number) {
        for (ProxyKind one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no ProxyKind has number " + number);
    }
}
