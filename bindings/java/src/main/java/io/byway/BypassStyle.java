package io.byway;

/** How a list of exceptions is written. */
public enum BypassStyle {
    /**
     * Chromium's rules: {@code *.corp}, {@code .corp}, {@code https://x:8443}, {@code 10.0.0.0/8}, {@code
     * <local>}, {@code <-loopback>}, separated by {@code ,} or {@code ;}; later entries override earlier ones. A
     * plain name is that name only.
     */
    BROWSER(Abi.BYPASS_BROWSER),

    /** The same where plain names also cover everything they are a suffix of. */
    BROWSER_SUFFIX(Abi.BYPASS_BROWSER_SUFFIX),

    /** The {@code ProxyOverride} value of Windows: the same, also separated by blanks. */
    WINDOWS(Abi.BYPASS_WINDOWS),

    /**
     * The exceptions of macOS: names, {@code *} patterns, addresses, networks whose trailing octets may be missing
     * ({@code 169.254/16}), separated by {@code ,} or line breaks. Loopback is no exception by itself.
     */
    MACOS(Abi.BYPASS_MACOS),

    /** {@code NO_PROXY} in the reading of {@code dialect}. */
    NO_PROXY(Abi.BYPASS_NO_PROXY);

    private static final BypassStyle[] ALL = values();

    private final int number;

    BypassStyle(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static BypassStyle of(int number) {
        for (BypassStyle one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no BypassStyle has number " + number);
    }
}
