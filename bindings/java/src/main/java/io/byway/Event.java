package io.byway;

import java.net.InetAddress;
import java.util.Collections;
import java.util.List;

/** What a listener is told. */
public final class Event {
    /** What happened. */
    public enum Kind {
        /** The proxies for an address are being looked for; {@code subject} is the URI. */
        PROXY_SELECT_START(Abi.EVENT_PROXY_SELECT_START),

        /** They are known ({@code proxies}), or the proxy selector failed ({@code error}). */
        PROXY_SELECT_END(Abi.EVENT_PROXY_SELECT_END),

        /** A name is asked for; {@code subject} is the name. */
        DNS_START(Abi.EVENT_DNS_START),

        /** It is answered ({@code ips}, in the resolver's order), or the lookup failed ({@code error}). */
        DNS_END(Abi.EVENT_DNS_END),

        /** An attempt begins; {@code route}. */
        CONNECT_START(Abi.EVENT_CONNECT_START),

        /** A connection is up; {@code route}. */
        CONNECT_END(Abi.EVENT_CONNECT_END),

        /**
         * An attempt failed ({@code route}, {@code error}), or a whole entry of the proxy list cannot be tried
         * ({@code proxies} has it, {@code error}).
         */
        CONNECT_FAILED(Abi.EVENT_CONNECT_FAILED),

        /** An attempt was called off, by a lost race or by the host; {@code route}. */
        CONNECT_CANCELED(Abi.EVENT_CONNECT_CANCELED),

        /** A route goes behind the others because it failed before; {@code route}. */
        ROUTE_POSTPONED(Abi.EVENT_ROUTE_POSTPONED),

        /** The address filter refuses a route; {@code route}. */
        ROUTE_FILTERED(Abi.EVENT_ROUTE_FILTERED),

        /** A proxy failed and a later entry of its list worked: it is tried last for a while; {@code proxies} has it. */
        PROXY_MARKED_BAD(Abi.EVENT_PROXY_MARKED_BAD),

        /** That time is over, the proxy is back in its place; {@code proxies} has it. */
        PROXY_REINSTATED(Abi.EVENT_PROXY_REINSTATED),

        /**
         * A rule was set or removed, or its text refused ({@code error}); {@code subject} is its key. Comes through
         * the engine's queue, only the newest of a key.
         */
        RULE(Abi.EVENT_RULE),

        /**
         * A chain wants other rules than before, see {@code byway_chain_keys}; {@code subject} is its consumer URL.
         * Comes through the engine's queue.
         */
        CHAIN_KEYS(Abi.EVENT_CHAIN_KEYS),

        /**
         * A script rule in force failed while it routed a call, whose list stayed as it was: the error has line and column
         * of the script, the subject is the rule's key or URL. Comes through the engine's queue.
         */
        RULE_FAILED(Abi.EVENT_RULE_FAILED);

        private static final Kind[] ALL = values();

        private final int number;

        Kind(int number) {
            this.number = number;
        }

        /** The number of the C header. */
        public int number() {
            return number;
        }

        static Kind of(int number) {
            for (Kind one : ALL) {
                if (one.number == number) {
                    return one;
                }
            }
            throw new IllegalArgumentException("no event has number " + number);
        }
    }

    private final Kind kind;
    private final int status;
    private final long tag;
    private final long selectorId;
    private final long timeNanos;
    private final String subject;
    private final Route route;
    private final List<Proxy> proxies;
    private final List<InetAddress> addresses;
    private final BywayException error;

    Event(
            int kind,
            int status,
            long tag,
            long selectorId,
            long timeNanos,
            String subject,
            Route route,
            List<Proxy> proxies,
            List<InetAddress> addresses,
            BywayException error) {
        this.kind = Kind.of(kind);
        this.status = status;
        this.tag = tag;
        this.selectorId = selectorId;
        this.timeNanos = timeNanos;
        this.subject = subject;
        this.route = route;
        this.proxies = Collections.unmodifiableList(proxies);
        this.addresses = Collections.unmodifiableList(addresses);
        this.error = error;
    }

    /** What happened. */
    public Kind kind() {
        return kind;
    }

    /** {@link Status#OK}, or why it failed. */
    public int status() {
        return status;
    }

    /** The host's number of the operation. */
    public long tag() {
        return tag;
    }

    /** The selector's number. */
    public long selectorId() {
        return selectorId;
    }

    /** Monotonic time. */
    public long timeNanos() {
        return timeNanos;
    }

    /** URI, name or key. */
    public String subject() {
        return subject;
    }

    /** The route, or null. */
    public Route route() {
        return route;
    }

    /** Proxies; a null entry is DIRECT. */
    public List<Proxy> proxies() {
        return proxies;
    }

    /** Addresses, in the resolver's order. */
    public List<InetAddress> addresses() {
        return addresses;
    }

    /** The whole error, or null. */
    public BywayException error() {
        return error;
    }

    @Override
    public String toString() {
        return kind + " " + subject + (route == null ? "" : " " + route) + (error == null ? "" : " " + error);
    }
}
