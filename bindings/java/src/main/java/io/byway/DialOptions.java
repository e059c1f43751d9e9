package io.byway;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** What a {@link Dial} or {@link Handshake} is made with. What is not set is the library's default, named with each. */
public final class DialOptions {
    /** No limit, or no pause, for the times below. */
    public static final Duration NONE = Duration.ofMillis(0xffff_ffffL);

    private static final int FLAGS = 0;

    long tag;
    Hooks hooks;

    /** In the order of {@code byway_dial_options}. */
    final int[] numbers = new int[20];

    /** Source addresses, device, user agent. */
    final byte[][] texts = new byte[4][];

    Map<String, String> headers = Map.of();

    /** The host's own number, echoed in events. */
    public DialOptions tag(long tag) {
        this.tag = tag;
        return this;
    }

    /** Host code the dial calls. */
    public DialOptions hooks(Hooks hooks) {
        this.hooks = hooks;
        return this;
    }

    /** Start routes of the next selection while the present one still has attempts in flight. */
    public DialOptions acrossSelections(boolean on) {
        return flag(Abi.DIAL_ACROSS_SELECTIONS, on);
    }

    /** A proxy that refuses the tunnel is walked round by the next route; else the refusal ends the dial. */
    public DialOptions nextOnRefusal(boolean on) {
        return flag(Abi.DIAL_NEXT_ON_REFUSAL, on);
    }

    /** Keep events for {@link Dial#nextEvent}. */
    public DialOptions events(boolean on) {
        return flag(Abi.DIAL_EVENTS, on);
    }

    /** SOCKS5: refuse a non-zero reserved byte and a password answer of another version than 1. */
    public DialOptions socksStrict(boolean on) {
        return flag(Abi.DIAL_SOCKS_STRICT, on);
    }

    /** SOCKS5: send everything at once and read the answers afterwards. */
    public DialOptions socksOptimistic(boolean on) {
        return flag(Abi.DIAL_SOCKS_OPTIMISTIC, on);
    }

    /** SOCKS5: never offer "no authentication". */
    public DialOptions socksRequireAuth(boolean on) {
        return flag(Abi.DIAL_SOCKS_REQUIRE_AUTH, on);
    }

    /** CONNECT: only status 200 opens the tunnel, not every 2xx. */
    public DialOptions strict200(boolean on) {
        return flag(Abi.DIAL_STRICT_200, on);
    }

    /** CONNECT: data right behind the answer's head is an error. */
    public DialOptions rejectEarlyData(boolean on) {
        return flag(Abi.DIAL_REJECT_EARLY_DATA, on);
    }

    /** CONNECT: wait for a challenge before the proxy's own user and password are sent. */
    public DialOptions noPreemptiveAuth(boolean on) {
        return flag(Abi.DIAL_NO_PREEMPTIVE_AUTH, on);
    }

    /** CONNECT: ask for credentials before the first request, with no challenge. */
    public DialOptions askFirst(boolean on) {
        return flag(Abi.DIAL_ASK_FIRST, on);
    }

    /** CONNECT: send credentials again that the proxy has refused. */
    public DialOptions repeatCredentials(boolean on) {
        return flag(Abi.DIAL_REPEAT_CREDENTIALS, on);
    }

    /** Hand the descriptor over in blocking mode. */
    public DialOptions blockingSocket(boolean on) {
        return flag(Abi.DIAL_BLOCKING_SOCKET, on);
    }

    /** Leave Nagle's algorithm on. */
    public DialOptions noNodelay(boolean on) {
        return flag(Abi.DIAL_NO_NODELAY, on);
    }

    /** Multipath TCP where the kernel has it, else plain TCP. */
    public DialOptions mptcp(boolean on) {
        return flag(Abi.DIAL_MPTCP, on);
    }

    /** TCP Fast Open; used only for a single DIRECT route. */
    public DialOptions fastOpen(boolean on) {
        return flag(Abi.DIAL_FAST_OPEN, on);
    }

    /** Try a destination that a selection lists twice twice. */
    public DialOptions keepDuplicates(boolean on) {
        return flag(Abi.DIAL_KEEP_DUPLICATES, on);
    }

    private DialOptions flag(int bit, boolean on) {
        numbers[FLAGS] = on ? numbers[FLAGS] | bit : numbers[FLAGS] & ~bit;
        return this;
    }

    /** Pause between starts while something is in flight, 10 ms to 2 s; 250 ms. */
    public DialOptions attemptDelay(Duration time) {
        return time(1, time, "attemptDelay");
    }

    /** How long an answer of the other family waits for the preferred one; 50 ms. */
    public DialOptions resolutionDelay(Duration time) {
        return time(2, time, "resolutionDelay");
    }

    /** Limit of one TCP connect; 10 s. */
    public DialOptions attemptTimeout(Duration time) {
        return time(3, time, "attemptTimeout");
    }

    /** Limit of one proxy handshake; 30 s. */
    public DialOptions readyTimeout(Duration time) {
        return time(4, time, "readyTimeout");
    }

    /** Limit of everything, from the first step; none. */
    public DialOptions overallTimeout(Duration time) {
        return time(5, time, "overallTimeout");
    }

    /** Pause granted to an attempt whose TCP is up; the attempt delay. */
    public DialOptions readyExtend(Duration time) {
        return time(6, time, "readyExtend");
    }

    /** Attempts in flight at once; 6. -1 is no limit. */
    public DialOptions maxInFlight(int count) {
        return number(7, count);
    }

    /** What happens at that limit. */
    public DialOptions capPolicy(CapPolicy policy) {
        return number(8, policy.number());
    }

    /** What a failure changes for the next attempt. */
    public DialOptions onFailure(OnFailure change) {
        return number(9, change.number());
    }

    /** When an attempt has won. */
    public DialOptions raceUntil(RaceUntil until) {
        return number(10, until.number());
    }

    /** Which family is tried first. */
    public DialOptions firstFamily(FirstFamily family) {
        return number(11, family.number());
    }

    /** Addresses of the preferred family before the first of the other; 1. */
    public DialOptions firstFamilyCount(int count) {
        return number(12, count);
    }

    /** Most CONNECT requests for one route, over kept and new connections; 21. */
    public DialOptions maxTunnelAttempts(int count) {
        return number(13, count);
    }

    /** Longest line of a CONNECT answer in bytes; 16 KiB. */
    public DialOptions maxLine(int bytes) {
        return number(14, bytes);
    }

    /** Longest head of a CONNECT answer in bytes, interim answers included; 256 KiB. */
    public DialOptions maxHeader(int bytes) {
        return number(15, bytes);
    }

    /** Longest body of a 407 that is read to keep the connection, in bytes; 64 KiB. */
    public DialOptions maxDrain(int bytes) {
        return number(16, bytes);
    }

    /** Silence before keep-alive probes, and between them, in whole seconds; off. */
    public DialOptions keepalive(Duration time) {
        return number(17, (int) Math.min(Integer.MAX_VALUE, time.toSeconds()));
    }

    /** {@code TCP_USER_TIMEOUT}; the system's. */
    public DialOptions userTimeout(Duration time) {
        return time(18, time, "userTimeout");
    }

    /** {@code SO_MARK}; none. Needs CAP_NET_ADMIN. */
    public DialOptions mark(int mark) {
        return number(19, mark);
    }

    private DialOptions number(int at, int value) {
        numbers[at] = value;
        return this;
    }

    private DialOptions time(int at, Duration time, String parameter) {
        numbers[at] = NONE.equals(time) ? -1 : Handle.millis32(time, parameter);
        return this;
    }

    /** Source address of IPv4 attempts; none. */
    public DialOptions sourceV4(String address) {
        texts[0] = Texts.utf8OrNull(address, "sourceV4");
        return this;
    }

    /** Source address of IPv6 attempts; none. */
    public DialOptions sourceV6(String address) {
        texts[1] = Texts.utf8OrNull(address, "sourceV6");
        return this;
    }

    /** Network device; none. */
    public DialOptions device(String name) {
        texts[2] = Texts.utf8OrNull(name, "device");
        return this;
    }

    /** {@code User-Agent} of CONNECT; null is {@code byway/VERSION}, an empty text none. */
    public DialOptions userAgent(String agent) {
        texts[3] = Texts.utf8OrNull(agent, "userAgent");
        return this;
    }

    /** Further headers of CONNECT; they never reach the target. */
    public DialOptions headers(Map<String, String> headers) {
        this.headers = new java.util.LinkedHashMap<>(headers);
        return this;
    }

    Texts headerNames() {
        return Texts.pack(headers.keySet(), "headers");
    }

    Texts headerValues() {
        return Texts.pack(List.copyOf(headers.values()), "headers");
    }
}
