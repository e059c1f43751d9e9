package io.byway;

import java.net.InetAddress;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.List;

/** A proxy auto-configuration script, for {@link ProxySelector#pac}. */
public final class PacOptions {
    private byte[] url;
    private byte[] source;
    private List<InetAddress> myAddresses = List.of();
    Dns dns;

    /** Refresh, memory, time, names, offset, flags. */
    final long[] numbers = new long[6];

    /** Its URL or absolute path; a path or {@code file:} URL is read by the library when there is no source. */
    public PacOptions url(String url) {
        this.url = Texts.utf8(url, "url");
        return this;
    }

    /** Its text, when that is at hand. */
    public PacOptions source(String source) {
        this.source = Texts.utf8OrNull(source, "source");
        return this;
    }

    /** Who resolves the names it asks for; null: the resolver of the address in question. */
    public PacOptions dns(Dns dns) {
        this.dns = dns;
        return this;
    }

    /** For {@code myIpAddress}; empty: those that the routing table prefers towards the internet. */
    public PacOptions myAddresses(List<InetAddress> addresses) {
        myAddresses = List.copyOf(addresses);
        return this;
    }

    /** A fetched script that is older is fetched anew by the next question; zero: only on request. */
    public PacOptions refresh(Duration age) {
        numbers[0] = Handle.option(age, "refresh");
        return this;
    }

    /** Bytes of memory, at least 32 MiB. */
    public PacOptions memoryLimit(long bytes) {
        numbers[1] = bytes;
        return this;
    }

    /** Script time per run, of its thread's processor clock; 250 ms. */
    public PacOptions timeLimit(Duration time) {
        numbers[2] = Handle.millis32(time, "timeLimit");
        return this;
    }

    /** Different names one question may ask for; 20. */
    public PacOptions namesLimit(int names) {
        numbers[3] = names;
        return this;
    }

    /** Where local time is; null: the system's. */
    public PacOptions utcOffset(ZoneOffset offset) {
        numbers[4] = offset == null ? 0 : offset.getTotalSeconds() / 60;
        numbers[5] = offset == null ? numbers[5] & ~Abi.PAC_FIXED_ZONE : numbers[5] | Abi.PAC_FIXED_ZONE;
        return this;
    }

    /** {@code FindProxyForURLEx} is called when the script defines it, as on Windows. */
    public PacOptions ex(boolean on) {
        numbers[5] = on ? numbers[5] | Abi.PAC_EX : numbers[5] & ~Abi.PAC_EX;
        return this;
    }

    /** The keyword {@code SOCKS} means SOCKS 5; without it SOCKS 4, as in browsers. */
    public PacOptions socksIs5(boolean on) {
        numbers[5] = on ? numbers[5] | Abi.PAC_SOCKS_IS_5 : numbers[5] & ~Abi.PAC_SOCKS_IS_5;
        return this;
    }

    /** An answer that names no usable proxy means DIRECT, as in browsers; without it that is an error. */
    public PacOptions emptyIsDirect(boolean on) {
        numbers[5] = on ? numbers[5] | Abi.PAC_EMPTY_IS_DIRECT : numbers[5] & ~Abi.PAC_EMPTY_IS_DIRECT;
        return this;
    }

    /** The script is asked about loopback hosts too; without it they are DIRECT. */
    public PacOptions askLoopback(boolean on) {
        numbers[5] = on ? numbers[5] | Abi.PAC_ASK_LOOPBACK : numbers[5] & ~Abi.PAC_ASK_LOOPBACK;
        return this;
    }

    /**
     * {@code dateRange} and {@code timeRange} do what they do in browsers; without it what they say: {@code
     * timeRange(22, 6)} passes midnight.
     */
    public PacOptions browserCalendar(boolean on) {
        numbers[5] = on ? numbers[5] | Abi.PAC_BROWSER_CALENDAR : numbers[5] & ~Abi.PAC_BROWSER_CALENDAR;
        return this;
    }

    byte[][] parts() {
        return new byte[][] {url, source};
    }

    byte[] addresses() {
        return Ip.pack(myAddresses);
    }
}
