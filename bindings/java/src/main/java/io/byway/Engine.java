package io.byway;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Holds what must be remembered between calls: failed routes, rules, counters, callbacks. Made once per client, usable
 * from every thread. {@link #close} shuts it down.
 */
public final class Engine extends Handle {
    /** How long {@link #close} waits for callbacks on other threads. */
    private static final Duration CLOSING = Duration.ofSeconds(5);

    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

    /** What an engine is made with. */
    public static final class Options {
        private Queue queue;
        private long seed;
        private int flags;
        private Compat compat = Compat.BYWAY;
        private Dialect dialect = Dialect.BYWAY;
        private long defaultTimeout;
        private long postponeFor = -1;
        private long postponeAtMost = -1;
        private int databaseCapacity;
        private boolean commitOnSuccess;
        private int routing;
        private boolean directOnProxySelectorError;
        private int dnsCache;
        private long badProxy = -1;
        private Filter targetFilter;
        private Filter proxyFilter;
        private final Sources sources = new Sources();

        /** Inbox of everything that names none of its own; null makes one. */
        public Options queue(Queue queue) {
            this.queue = queue;
            return this;
        }

        /** Seed of every random draw; 0 takes one from the system. */
        public Options seed(long seed) {
            this.seed = seed;
            return this;
        }

        /** Events of rules, chains and sources come at once on a thread of the library's, without anybody polling. */
        public Options callbacksAnyThread(boolean on) {
            flags = on ? Abi.CALLBACKS_ANY_THREAD : 0;
            return this;
        }

        /** Which behaviour the first half shows. */
        public Options compat(Compat compat) {
            this.compat = compat;
            return this;
        }

        /** Whose reading of rules is wanted where a chain does not say. */
        public Options dialect(Dialect dialect) {
            this.dialect = dialect;
            return this;
        }

        /** How long a call with no timeout of its own waits; 30 s. */
        public Options defaultTimeout(Duration timeout) {
            defaultTimeout = option(timeout, "defaultTimeout");
            return this;
        }

        /** First postponement of a failed route; 5 minutes, zero until it is reported connected. */
        public Options postponeFor(Duration time) {
            postponeFor = option(time, "postponeFor");
            return this;
        }

        /** Longest postponement; 30 minutes. */
        public Options postponeAtMost(Duration time) {
            postponeAtMost = option(time, "postponeAtMost");
            return this;
        }

        /** Failed routes remembered, the oldest goes first; 0 means 4096. */
        public Options databaseCapacity(int capacity) {
            databaseCapacity = capacity;
            return this;
        }

        /** A failure counts when its selector reports a route connected: a machine that is offline learns nothing wrong. */
        public Options commitOnSuccess(boolean on) {
            commitOnSuccess = on;
            return this;
        }

        /** Families alternate, IPv6 first; on by default. Off keeps the resolver's order. */
        public Options fastFallback(boolean on) {
            return routing(Abi.ROUTING_NO_FAST_FALLBACK, !on);
        }

        /** Ask the resolver for IP literals too. */
        public Options resolveLiterals(boolean on) {
            return routing(Abi.ROUTING_RESOLVE_LITERALS, on);
        }

        /** An empty proxy list means DIRECT, not an error. */
        public Options emptyIsDirect(boolean on) {
            return routing(Abi.ROUTING_EMPTY_IS_DIRECT, on);
        }

        /** Refuse targets whose address byway never sees, because a proxy resolves the name. */
        public Options denyUnresolvedTargets(boolean on) {
            return routing(Abi.ROUTING_DENY_UNRESOLVED_TARGETS, on);
        }

        /** Try an address that a resolver names twice only once. */
        public Options deduplicate(boolean on) {
            return routing(Abi.ROUTING_DEDUPLICATE, on);
        }

        private Options routing(int bit, boolean on) {
            routing = on ? routing | bit : routing & ~bit;
            return this;
        }

        /** A proxy selector that fails means DIRECT, not an error. */
        public Options directOnProxySelectorError(boolean on) {
            directOnProxySelectorError = on;
            return this;
        }

        /** For how long addresses of a name are kept; zero keeps none. */
        public Options dnsCache(Duration time) {
            dnsCache = millis32(time, "dnsCache");
            return this;
        }

        /** For how long a proxy that failed is tried last; 5 minutes, zero keeps every list as it is. */
        public Options badProxy(Duration time) {
            badProxy = option(time, "badProxy");
            return this;
        }

        /** Judges targets: resolved addresses and literals, also literals sent to a proxy. */
        public Options targetFilter(Filter filter) {
            targetFilter = filter;
            return this;
        }

        /** Judges the addresses of proxies. */
        public Options proxyFilter(Filter filter) {
            proxyFilter = filter;
            return this;
        }

        /** Nanoseconds since a fixed moment, never going back. Any thread; must be quick and must not call byway. */
        public Options monotonicNanos(LongSupplier clock) {
            sources.monotonicNanos = clock;
            return this;
        }

        /** Milliseconds since 1970-01-01 UTC. Any thread; must be quick and must not call byway. */
        public Options wallMillis(LongSupplier clock) {
            sources.wallMillis = clock;
            return this;
        }

        /** 64 uniformly distributed bits, for every random draw. Any thread; must be quick and must not call byway. */
        public Options random(LongSupplier random) {
            sources.random = random;
            return this;
        }
    }

    /** Clocks and the random source. */
    private static final class Sources {
        private LongSupplier monotonicNanos;
        private LongSupplier wallMillis;
        private LongSupplier random;

        int given() {
            return (monotonicNanos != null ? 1 : 0) | (wallMillis != null ? 2 : 0) | (random != null ? 4 : 0);
        }

        Sources copy() {
            Sources copy = new Sources();
            copy.monotonicNanos = monotonicNanos;
            copy.wallMillis = wallMillis;
            copy.random = random;
            return copy;
        }
    }

    /** It listens until it is closed, whether or not the caller keeps it. */
    private final Set<Listener> listeners = ConcurrentHashMap.newKeySet();

    /** Likewise, routers of chains to come. */
    private final Set<Router> routers = ConcurrentHashMap.newKeySet();

    private final Queue queue;

    /** An engine with the default options. */
    public Engine() {
        this(new Options());
    }

    /** An engine. */
    public Engine(Options options) {
        this(made(options), options.queue);
    }

    private Engine(long pointer, Queue given) {
        super(pointer, Engine::release);
        queue = given != null ? given : new Queue(queue(pointer));
    }

    private static long made(Options options) {
        try (Held held = new Held()) {
            return make(
                    held.of(options.queue),
                    options.seed,
                    options.flags,
                    options.compat.number(),
                    options.defaultTimeout,
                    options.postponeFor,
                    options.postponeAtMost,
                    options.databaseCapacity,
                    options.commitOnSuccess ? Abi.COMMIT_ON_SUCCESS : Abi.COMMIT_ALWAYS,
                    options.dialect.number(),
                    options.routing,
                    options.directOnProxySelectorError
                            ? Abi.ON_PROXY_SELECTOR_ERROR_DIRECT
                            : Abi.ON_PROXY_SELECTOR_ERROR_FAIL,
                    options.dnsCache,
                    options.badProxy,
                    held.of(options.targetFilter),
                    held.of(options.proxyFilter),
                    options.sources.copy(),
                    options.sources.given());
        }
    }

    /**
     * Cancels everything, waits for running callbacks, drops every callback object.
     *
     * @return true when done: no callback ever runs again; false when one is still running, call again
     */
    public boolean shutdown(Duration timeout) {
        long self = enter();
        try {
            return shutdown(self, millis(timeout)) == Abi.OK;
        } finally {
            exit();
        }
    }

    /** Shuts the engine down, waiting a little for callbacks on other threads, and gives the reference back. */
    @Override
    public void close() {
        if (!isClosed()) {
            try {
                shutdown(CLOSING);
            } catch (BywayException inside) {
                // Closed from its own callback, or by another thread meanwhile: release does the rest.
            }
        }
        super.close();
    }

    /** The engine's queue. */
    public Queue queue() {
        return queue;
    }

    /** Reports that a route works: it is no longer postponed. */
    public void connected(Route route) {
        try (Held held = new Held()) {
            connected(held.of(this), held.of(Objects.requireNonNull(route, "route").handle()));
        }
    }

    /** Reports that a route failed; the proxy selector that chose it is told too. */
    public void connectFailed(Route route, Failure failure) {
        connectFailed(route, failure, Phase.TCP, 0);
    }

    /** Reports that a route failed, with where and the system's number. */
    public void connectFailed(Route route, Failure failure, Phase phase, int osErrno) {
        try (Held held = new Held()) {
            connectFailed(
                    held.of(this),
                    held.of(Objects.requireNonNull(route, "route").handle()),
                    failure.number(),
                    phase.number(),
                    osErrno);
        }
    }

    /** True when the route failed and its time has not passed. */
    public boolean shouldPostpone(Route route) {
        try (Held held = new Held()) {
            return shouldPostpone(held.of(this), held.of(Objects.requireNonNull(route, "route").handle()));
        }
    }

    /** Forgets failures and cached names; returns the new generation. */
    public long networkChanged() {
        long self = enter();
        try {
            return networkChanged(self);
        } finally {
            exit();
        }
    }

    /** Who is asked where an address names nobody and a callback passes. Null: nobody, DIRECT. */
    public void setProxySelector(ProxySelector selector) {
        try (Held held = new Held()) {
            setProxySelector(held.of(this), held.of(selector));
        }
    }

    /**
     * The proxies of a URL, in the order to try them; a null entry is DIRECT. For hosts that connect by themselves: a
     * {@link Selector} asks on its own.
     *
     * @param dns resolves what a script wants to know; null for the system's
     * @param timeout null for the engine's default
     */
    public List<Proxy> proxiesForUrl(ProxySelector selector, String url, Dns dns, Duration timeout) {
        byte[] text = Texts.utf8(url, "url");
        long[] pointers;
        try (Held held = new Held()) {
            pointers = proxiesForUrl(held.of(this), held.of(selector), text, held.of(dns), millis(timeout));
        }
        List<Proxy> proxies = new ArrayList<>();
        for (long pointer : pointers) {
            proxies.add(pointer == 0 ? null : new Proxy(pointer));
        }
        return proxies;
    }

    /** The same with the system's names and the engine's default timeout. */
    public List<Proxy> proxiesForUrl(ProxySelector selector, String url) {
        return proxiesForUrl(selector, url, null, null);
    }

    /** The same list with its reasons, as JSON. */
    public String explainProxiesForUrl(ProxySelector selector, String url) {
        return explainProxiesForUrl(selector, url, null, null);
    }

    /** The same list with its reasons, as JSON. */
    public String explainProxiesForUrl(ProxySelector selector, String url, Dns dns, Duration timeout) {
        byte[] text = Texts.utf8(url, "url");
        try (Held held = new Held()) {
            return Texts.of(
                    explainProxiesForUrl(held.of(this), held.of(selector), text, held.of(dns), millis(timeout)));
        }
    }

    /**
     * Says that a proxy failed that was tried outside this library: it goes behind the others for a while. Routes that are
     * reported need this not.
     *
     * @param osErrno the system's number, 0 for none
     */
    public void markProxy(Proxy proxy, Failure failure, int osErrno) {
        try (Held held = new Held()) {
            markProxy(held.of(this), held.of(proxy), failure.number(), osErrno);
        }
    }

    /** The same without saying how. */
    public void markProxy(Proxy proxy) {
        markProxy(proxy, Failure.IO, 0);
    }

    /**
     * The proxies that failed lately and are tried last for a while, as JSON: {@code kind}, {@code host}, {@code port},
     * {@code remaining_ms}, and how each failed last, {@code failure}, {@code os_errno}, {@code age_ms}.
     */
    public String badProxies() {
        long self = enter();
        try {
            return Texts.of(badProxies(self));
        } finally {
            exit();
        }
    }

    /** All proxies are tried in their configured order again. */
    public void forgetBadProxies() {
        long self = enter();
        try {
            forgetBadProxies(self);
        } finally {
            exit();
        }
    }

    /** What may be done about a call that failed. */
    public Recovery recover(FailedCall failed) {
        long self = enter();
        try {
            return Recovery.of(recover(self, failed.failure.number(), failed.phase.number(), failed.flags));
        } finally {
            exit();
        }
    }

    /** What failed and is remembered. */
    public List<FailedRoute> databaseSnapshot() {
        byte[] packed;
        long self = enter();
        try {
            packed = databaseSnapshot(self);
        } finally {
            exit();
        }
        List<FailedRoute> routes = new ArrayList<>();
        int size = Ip.SIZE + 8 * 8;
        for (int at = 0; at + size <= packed.length; at += size) {
            long[] numbers = new long[8];
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = (long) LONG.get(packed, at + Ip.SIZE + 8 * i);
            }
            routes.add(new FailedRoute(Ip.unpack(packed, at), numbers));
        }
        return routes;
    }

    /** What failed, as JSON. */
    public String databaseExport() {
        long self = enter();
        try {
            return Texts.of(databaseExport(self));
        } finally {
            exit();
        }
    }

    /** Takes back what {@link #databaseExport} gave; returns how many records were taken. */
    public long databaseImport(String json) {
        byte[] text = Texts.utf8(json, "json");
        long self = enter();
        try {
            return databaseImport(self, text);
        } finally {
            exit();
        }
    }

    /** Figures of the engine. */
    public Statistics stats() {
        long self = enter();
        try {
            return new Statistics(stats(self));
        } finally {
            exit();
        }
    }

    /** Has {@code onEvent} told of the given kinds of event. Nothing is built for other kinds. */
    public Listener addListener(Collection<Event.Kind> kinds, Consumer<Event> onEvent) {
        return addListener(kinds, onEvent, null);
    }

    /** The same, where whoever polls {@code queue} (null: the engine's) hears of rules and chains. */
    public Listener addListener(Collection<Event.Kind> kinds, Consumer<Event> onEvent, Queue queue) {
        Listener listener = new Listener(this, kinds, onEvent, queue);
        listeners.add(listener);
        return listener;
    }

    /** Has {@code onEvent} told of every event. */
    public Listener addListener(Consumer<Event> onEvent) {
        return addListener(EnumSet.allOf(Event.Kind.class), onEvent);
    }

    void forget(Listener listener) {
        listeners.remove(listener);
    }

    void keep(Router router) {
        routers.add(router);
    }

    void forget(Router router) {
        routers.remove(router);
    }

    /**
     * Adds or changes the rule with this key, also before a chain wants it. A rule that does not parse leaves the last
     * good one in force.
     *
     * @throws BywayException.Rule with line and column
     */
    public void setRule(String key, String text) {
        byte[] name = Texts.utf8(key, "key");
        byte[] rule = Texts.utf8(text, "text");
        long self = enter();
        try {
            setRule(self, name, rule);
        } finally {
            exit();
        }
    }

    /** Removes the rule with this key. */
    public void removeRule(String key) {
        byte[] name = Texts.utf8(key, "key");
        long self = enter();
        try {
            removeRule(self, name);
        } finally {
            exit();
        }
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static long source(Object target, int which) {
            try {
                Sources sources = (Sources) target;
                switch (which) {
                    case 0:
                        return sources.monotonicNanos.getAsLong();
                    case 1:
                        return sources.wallMillis.getAsLong();
                    default:
                        return sources.random.getAsLong();
                }
            } catch (Throwable thrown) {
                Errors.report(thrown);
                return 0;
            }
        }
    }

    private static native long[] proxiesForUrl(long self, long selector, byte[] url, long dns, long timeoutMillis);

    private static native byte[] explainProxiesForUrl(long self, long selector, byte[] url, long dns, long timeoutMillis);

    private static native void markProxy(long self, long proxy, int failure, int osErrno);

    private static native byte[] badProxies(long self);

    private static native void forgetBadProxies(long self);

    private static native long make(
            long queue,
            long seed,
            int flags,
            int compat,
            long defaultTimeoutMillis,
            long postponeForMillis,
            long postponeAtMostMillis,
            int databaseCapacity,
            int commitFailures,
            int dialect,
            int routingFlags,
            int onProxySelectorError,
            int dnsCacheMillis,
            long badProxyMillis,
            long targetFilter,
            long proxyFilter,
            Object sources,
            int given);

    private static native void release(long self);

    private static native int shutdown(long self, long timeoutMillis);

    private static native long queue(long self);

    private static native void connected(long self, long route);

    private static native void connectFailed(long self, long route, int failure, int phase, int osErrno);

    private static native boolean shouldPostpone(long self, long route);

    private static native long networkChanged(long self);

    private static native void setProxySelector(long self, long selector);

    private static native int recover(long self, int failure, int phase, int flags);

    private static native byte[] databaseSnapshot(long self);

    private static native byte[] databaseExport(long self);

    private static native long databaseImport(long self, byte[] json);

    private static native long[] stats(long self);

    private static native void setRule(long self, byte[] key, byte[] text);

    private static native void removeRule(long self, byte[] key);
}
