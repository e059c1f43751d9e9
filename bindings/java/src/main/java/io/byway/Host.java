package io.byway;

/** What is asked about the text of a host. */
public final class Host {
    private Host() {}

    /**
     * The canonical form, by the WHATWG URL rules or as an OkHttp release would have it.
     *
     * @throws BywayException.Argument when it is no host
     */
    public static String canonical(String host, Compat compat) {
        Library.load();
        return Texts.of(canonical(compat.number(), Texts.utf8(host, "host")));
    }

    /** True when it is an IP literal and asks no resolver. */
    public static boolean isLiteral(String host, Compat compat) {
        Library.load();
        return isLiteral(compat.number(), Texts.utf8(host, "host"));
    }

    private static native byte[] canonical(int compat, byte[] host);

    private static native boolean isLiteral(int compat, byte[] host);
}
