package io.byway;

/** A list of hosts that are reached without a proxy, for {@link ProxySelector#bypass}. */
public final class BypassOptions {
    final String list;
    final BypassStyle style;
    String dialect = "";
    int flags;

    /** The list, and how it is written. */
    public BypassOptions(String list, BypassStyle style) {
        this.list = list;
        this.style = style;
    }

    /** Whose {@code NO_PROXY}: {@code byway}, {@code curl}, {@code go}, {@code python}, {@code chromium}, {@code node}. */
    public BypassOptions dialect(String dialect) {
        this.dialect = dialect;
        return this;
    }

    /** The listed hosts are the only ones that are proxied. */
    public BypassOptions reversed(boolean on) {
        flags = on ? flags | Abi.BYPASS_REVERSED : flags & ~Abi.BYPASS_REVERSED;
        return this;
    }

    /**
     * Loopback (and in the browser styles link-local) hosts are no exceptions by themselves. In the {@code
     * NO_PROXY} style it counts in the dialect {@code byway}; the others have rules of their own.
     */
    public BypassOptions proxyLoopback(boolean on) {
        flags = on ? flags | Abi.BYPASS_PROXY_LOOPBACK : flags & ~Abi.BYPASS_PROXY_LOOPBACK;
        return this;
    }

    /** {@code NO_PROXY}, dialect {@code byway}: {@code .x.com} covers what is below {@code x.com} only. */
    public BypassOptions strictDot(boolean on) {
        flags = on ? flags | Abi.BYPASS_STRICT_DOT : flags & ~Abi.BYPASS_STRICT_DOT;
        return this;
    }

    /** {@code NO_PROXY}, dialect {@code byway}: blanks separate entries too. */
    public BypassOptions blankSeparates(boolean on) {
        flags = on ? flags | Abi.BYPASS_BLANK_SEPARATES : flags & ~Abi.BYPASS_BLANK_SEPARATES;
        return this;
    }

    /** macOS: names without a dot are exceptions. */
    public BypassOptions excludeSimple(boolean on) {
        flags = on ? flags | Abi.BYPASS_EXCLUDE_SIMPLE : flags & ~Abi.BYPASS_EXCLUDE_SIMPLE;
        return this;
    }
}
