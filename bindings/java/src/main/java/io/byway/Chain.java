package io.byway;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Routers over one provider list for one consumer; Dubbo's RouterChain. Rules and lists change while calls are routed: a
 * call sees one world. Usable from every thread; a thread that routes again and again makes itself a {@link Session}.
 *
 * <pre>{@code
 * Chain chain = new Chain(engine, "consumer://10.20.1.9/HelloService?interface=HelloService");
 * chain.setInvokers(new Invokers(engine, urls));
 * engine.setRule("HelloService::.condition-router", "scope: service\nforce: true\nconditions: ['method=hello => address=*:20880']\n");
 * try (Session session = chain.session(); Invocation call = new Invocation("hello")) {
 *     Picked picked = session.pick(call);
 *     System.out.println(chain.explain(call));
 * }
 * }</pre>
 */
public final class Chain extends Handle {
    /** How a chain differs from what its engine says. */
    public static final class Options {
        private int dialect = -1;
        private int flags;
        private long memoBytes;

        /** Whose reading of rules decides; by default the engine's. */
        public Options dialect(Dialect dialect) {
            this.dialect = dialect.number();
            return this;
        }

        /** True: an empty list ends the chain; false: later routers still see it. By default as the dialect does. */
        public Options failFast(boolean on) {
            flags = flags & ~(Abi.CHAIN_FAIL_FAST | Abi.CHAIN_RUN_ON) | (on ? Abi.CHAIN_FAIL_FAST : Abi.CHAIN_RUN_ON);
            return this;
        }

        /** Keep results for calls of the same class; on by default. */
        public Options memo(boolean on) {
            flags = on ? flags & ~Abi.CHAIN_NO_MEMO : flags | Abi.CHAIN_NO_MEMO;
            return this;
        }

        /** Bytes of memoised results one world may keep; 0 means 32 MiB. */
        public Options memoBytes(long bytes) {
            memoBytes = bytes;
            return this;
        }

        /** Keep the last 32 calls for {@link Chain#recent} from the start. */
        public Options keepRecent(boolean on) {
            flags = on ? flags | Abi.CHAIN_KEEP_RECENT : flags & ~Abi.CHAIN_KEEP_RECENT;
            return this;
        }
    }

    /** How a chain follows a source. */
    public static final class BindOptions {
        private int flags;
        private EmptyProtection emptyProtection = EmptyProtection.VANISHED;
        private Discovery discovery = Discovery.AUTO;
        private Queue queue;
        private long tag;
        private Consumer<SourceEvent> onEvent;

        /** Follow the rules only: the host gives the provider list itself. */
        public BindOptions rulesOnly(boolean on) {
            flags = on ? flags | Abi.BIND_RULES_ONLY : flags & ~Abi.BIND_RULES_ONLY;
            return this;
        }

        /** When another source takes the place of this one, or none does, the providers stay. */
        public BindOptions keepList(boolean on) {
            flags = on ? flags | Abi.BIND_KEEP_LIST : flags & ~Abi.BIND_KEEP_LIST;
            return this;
        }

        /** When an empty list in the centre empties the chain's. */
        public BindOptions emptyProtection(EmptyProtection protection) {
            emptyProtection = protection;
            return this;
        }

        /** Where providers are looked for. */
        public BindOptions discovery(Discovery discovery) {
            this.discovery = discovery;
            return this;
        }

        /** Who is told what happens, on the thread that polls the queue. */
        public BindOptions onEvent(Consumer<SourceEvent> onEvent) {
            this.onEvent = onEvent;
            return this;
        }

        /** Where events and the completion record go; by default the engine's queue. */
        public BindOptions queue(Queue queue) {
            this.queue = queue;
            return this;
        }

        /** The number of the completion record that tells that a first state which had not come in time is there. */
        public BindOptions tag(long tag) {
            this.tag = tag;
            return this;
        }
    }

    private final Engine engine;

    /** A chain with the default options, without providers. */
    public Chain(Engine engine, String consumerUrl) {
        this(engine, consumerUrl, new Options());
    }

    /**
     * A chain for a consumer URL ({@code consumer://host/interface?application=...}), without providers. It follows the
     * engine's rules, also those set before.
     */
    public Chain(Engine engine, String consumerUrl, Options options) {
        super(made(engine, consumerUrl, options), Chain::release);
        this.engine = engine;
    }

    private static long made(Engine engine, String consumerUrl, Options options) {
        byte[] url = Texts.utf8(consumerUrl, "consumerUrl");
        long self = engine.enter();
        try {
            return make(self, url, options.dialect, options.flags, options.memoBytes);
        } finally {
            engine.exit();
        }
    }

    /** The engine it lives in. */
    public Engine engine() {
        return engine;
    }

    /** Puts a list in force; when this returns, calls route over it. The number of a world that has it. */
    public long setInvokers(Invokers invokers) {
        Objects.requireNonNull(invokers, "invokers");
        try (Held held = new Held()) {
            return setInvokers(held.of(this), held.of(invokers));
        }
    }

    /** The list calls route over now: the one given last, or a bound source's. */
    public Invokers invokers() {
        long self = enter();
        try {
            return new Invokers(invokers(self));
        } finally {
            exit();
        }
    }

    /**
     * A number for {@link Invocation#methodId}, the same in every chain of the process for ever. Meant for the methods of
     * an interface, not for names from the network.
     */
    public int internMethod(String name) {
        byte[] text = Texts.utf8(name, "name");
        long self = enter();
        try {
            return internMethod(self, text);
        } finally {
            exit();
        }
    }

    /** Adds a router of the host's; when this returns, calls ask it. */
    public void addRouter(Router router) {
        Objects.requireNonNull(router, "router");
        try (Held held = new Held()) {
            addRouter(held.of(this), held.of(router));
        }
    }

    /** Static rules as a registry gives them ({@code condition://...}); replaces the earlier ones. */
    public void setRuleUrls(Collection<String> urls) {
        Texts texts = Texts.pack(urls, "urls");
        long self = enter();
        try {
            setRuleUrls(self, texts.bytes, texts.lengths);
        } finally {
            exit();
        }
    }

    /** Routes a call. An empty result is no error, see {@link Choice#emptiedBy}. */
    public Choice route(Invocation invocation) {
        Objects.requireNonNull(invocation, "invocation");
        invocation.checkOwner();
        try (Held held = new Held()) {
            long self = held.of(this);
            long asked = held.of(invocation);
            Choice choice = new Choice(route(self, asked, invocation.address(), invocation.length()));
            invocation.wasRead();
            return choice;
        }
    }

    /** Routes a call; the tags of the providers that may serve it, in one crossing. */
    public long[] tags(Invocation invocation) {
        Objects.requireNonNull(invocation, "invocation");
        invocation.checkOwner();
        try (Held held = new Held()) {
            long self = held.of(this);
            long asked = held.of(invocation);
            long[] tags = tags(self, asked, invocation.address(), invocation.length());
            invocation.wasRead();
            return tags;
        }
    }

    /**
     * Routes several calls in one crossing, all in one world. Each is an object of its own.
     *
     * @return for each call the tags of its providers
     */
    public List<long[]> routeMany(Collection<Invocation> invocations) {
        int room = 64;
        while (true) {
            long[] flat = new long[Math.multiplyExact(invocations.size(), room)];
            long[] totals = new long[invocations.size()];
            int most = 0;
            routeMany(invocations, flat, room, totals);
            for (long total : totals) {
                most = Math.max(most, (int) total);
            }
            if (most <= room) {
                List<long[]> each = new ArrayList<>(totals.length);
                for (int i = 0; i < totals.length; i++) {
                    each.add(Arrays.copyOfRange(flat, i * room, i * room + (int) totals[i]));
                }
                return each;
            }
            room = most;
        }
    }

    /**
     * The same without allocation of results: of call {@code i} as many tags as fit begin at {@code i * room}.
     *
     * @param tags {@code room} places for each call
     * @param totals one place for each call: how many providers may serve it
     * @return the number of the world that answered
     */
    public long routeMany(Collection<Invocation> invocations, long[] tags, int room, long[] totals) {
        int count = invocations.size();
        if (room < 0 || tags.length < (long) count * room || totals.length < count) {
            throw Errors.of(Abi.E_ARGUMENT, "too small for " + count + " calls of " + room + " tags", "tags");
        }
        long self = enter();
        try (Filled filled = new Filled(invocations)) {
            return routeMany(self, filled.pointers, tags, room, totals);
        } finally {
            exit();
        }
    }

    /** Several invocations that are held with everything read. */
    private static final class Filled implements AutoCloseable {
        private final Invocation[] each;
        private final long[] pointers;
        private int held;

        Filled(Collection<Invocation> invocations) {
            each = invocations.toArray(new Invocation[0]);
            pointers = new long[each.length];
            try {
                for (; held < each.length; held++) {
                    pointers[held] = each[held].filled();
                }
            } catch (Throwable thrown) {
                close();
                throw thrown;
            }
        }

        @Override
        public void close() {
            while (held > 0) {
                each[--held].exit();
            }
        }
    }

    /**
     * Routes a call and picks one provider.
     *
     * @throws BywayException.NoInvoker naming the router that left nobody
     */
    public Picked pick(Invocation invocation) {
        return pick(invocation, PickOptions.DEFAULT);
    }

    /**
     * Routes a call and picks one provider: the sticky one, else the load balance's choice, and if that was tried before
     * or cannot be called, another one.
     *
     * @throws BywayException.NoInvoker naming the router that left nobody
     */
    public Picked pick(Invocation invocation, PickOptions options) {
        Objects.requireNonNull(invocation, "invocation");
        invocation.checkOwner();
        long[] picked = new long[4];
        try (Held held = new Held()) {
            long self = held.of(this);
            long asked = held.of(invocation);
            pick(
                    self,
                    asked,
                    invocation.address(),
                    invocation.length(),
                    options.balance,
                    options.flags,
                    options.exclude,
                    options.available,
                    options.availableList,
                    picked);
            invocation.wasRead();
        }
        return new Picked(picked);
    }

    /**
     * Says how a picked call went, so that calls in flight and response times are known; the time from pick to now is its
     * length. False when there was nothing to end: ended before, or the provider is gone.
     */
    public boolean pickEnd(Picked picked, boolean ok) {
        return pickEnd(Objects.requireNonNull(picked, "picked").ticket(), ok, null);
    }

    /** The same for a ticket; {@code latency} null is the time from pick to now. */
    public boolean pickEnd(long ticket, boolean ok, Duration latency) {
        long self = enter();
        try {
            return pickEnd(self, ticket, ok, nanos(latency));
        } finally {
            exit();
        }
    }

    /** The same, with what the provider reported about itself. */
    public boolean pickEnd(long ticket, boolean ok, Duration latency, CallReport report) {
        Objects.requireNonNull(report, "report");
        long self = enter();
        try {
            return pickEndWith(
                    self, ticket, ok, nanos(latency), report.timeMillis, report.load, report.latencyMillis);
        } finally {
            exit();
        }
    }

    private static long nanos(Duration latency) {
        if (latency == null) {
            return -1;
        }
        try {
            return latency.toNanos();
        } catch (ArithmeticException huge) {
            throw Errors.of(Abi.E_ARGUMENT, "nanoseconds of 64 bits have no room for " + latency, "latency");
        }
    }

    /** Per router what came in and out, and for each provider that is gone the sentence that dropped it. Text for people. */
    public String explain(Invocation invocation) {
        return explained(invocation, Abi.FORMAT_TEXT);
    }

    /** The same as JSON. */
    public String explainJson(Invocation invocation) {
        return explained(invocation, Abi.FORMAT_JSON);
    }

    private String explained(Invocation invocation, int format) {
        invocation.checkOwner();
        try (Held held = new Held()) {
            long self = held.of(this);
            long asked = held.of(invocation);
            String text = Texts.of(explain(self, asked, invocation.address(), invocation.length(), format));
            invocation.wasRead();
            return text;
        }
    }

    /** Keeps the last 32 calls from now on, or no longer; those kept so far go either way. */
    public void keepRecent(boolean on) {
        long self = enter();
        try {
            keepRecent(self, on);
        } finally {
            exit();
        }
    }

    /** The calls kept, oldest first, each explained by the world that answered it. Text for people. */
    public String recent() {
        return recent(Abi.FORMAT_TEXT);
    }

    /** The same as JSON. */
    public String recentJson() {
        return recent(Abi.FORMAT_JSON);
    }

    private String recent(int format) {
        long self = enter();
        try {
            return Texts.of(recent(self, format));
        } finally {
            exit();
        }
    }

    /**
     * What a proposed rule would change: per call how many providers before and after, and the tags that come and go.
     * Nothing is set. Text for people.
     *
     * @param text null: without the rule
     */
    public String diff(String key, String text, Collection<Invocation> invocations) {
        return compared(key, text, invocations, Abi.FORMAT_TEXT);
    }

    /** The same as JSON. */
    public String diffJson(String key, String text, Collection<Invocation> invocations) {
        return compared(key, text, invocations, Abi.FORMAT_JSON);
    }

    private String compared(String key, String text, Collection<Invocation> invocations, int format) {
        byte[] name = Texts.utf8(key, "key");
        byte[] rule = Texts.utf8OrNull(text, "text");
        long self = enter();
        try (Filled filled = new Filled(invocations)) {
            return Texts.of(diff(self, name, rule, filled.pointers, format));
        } finally {
            exit();
        }
    }

    /**
     * Keys of the rules the chain wants at the moment, in router order. They depend on the first provider's application;
     * {@link Event.Kind#CHAIN_KEYS} tells when they change.
     */
    public List<String> keys() {
        long self = enter();
        try {
            String lines = Texts.of(keys(self));
            return lines.isEmpty() ? List.of() : List.of(lines.split("\n"));
        } finally {
            exit();
        }
    }

    /** How each router stands, as JSON: name, priority, key, revision, version, in force, last error with its place. */
    public String status() {
        long self = enter();
        try {
            return Texts.of(status(self));
        } finally {
            exit();
        }
    }

    /** Number of the world that calls see now; grows with every change of list, rules or routers. */
    public long generation() {
        long self = enter();
        try {
            return generation(self);
        } finally {
            exit();
        }
    }

    /** Follows a source with the default options. */
    public boolean bind(Source source, Duration timeout) {
        return bind(source, timeout, new BindOptions());
    }

    /**
     * Follows a source: waits for the first state, then stays up to date; what was known last is served while the source
     * is away. Tags of its providers are the library's own: one keeps its tag as long as it is there, and {@link
     * Invokers#url} of a choice's list names it.
     *
     * <p>The wait ends with its time, with {@link #cancelBind}, {@link #unbind} and {@link #close}, which undo it, and
     * with the engine, {@link Engine#close} and {@link Engine#shutdown}; closing the source does not end it.
     *
     * @param timeout null for the engine's default, 30 s
     * @return false when the first state has not come in time: it comes later, and a {@link Completion#SOURCE} record tells;
     *     until then the source the chain was bound to before goes on serving
     */
    public boolean bind(Source source, Duration timeout, BindOptions options) {
        Objects.requireNonNull(source, "source");
        Objects.requireNonNull(options, "options");
        return bound(source, timeout, options);
    }

    /**
     * Ends every {@code bind} that is waiting on this chain now: a {@link BywayException.Canceled}, and the chain follows what
     * it followed before. Nothing to later calls. Any thread.
     */
    public void cancelBind() {
        long self = enter();
        try {
            cancelBind(self);
        } finally {
            exit();
        }
    }

    @Override
    void interrupt(long pointer) {
        cancelBind(pointer);
    }

    /** Stops following a source; the providers it gave go too. */
    public void unbind() {
        bound(null, Duration.ZERO, new BindOptions());
    }

    /** Stops following a source; the providers it gave stay. */
    public void unbindKeepingList() {
        bound(null, Duration.ZERO, new BindOptions().keepList(true));
    }

    private boolean bound(Source source, Duration timeout, BindOptions options) {
        try (Held held = new Held()) {
            return bind(
                    held.of(this),
                    held.of(source),
                    options.flags,
                    options.emptyProtection.number(),
                    options.discovery.number(),
                    held.of(options.queue),
                    options.tag,
                    options.onEvent,
                    millis(timeout));
        }
    }

    /**
     * How a bound chain stands, as JSON: ready, topics followed, worlds so far, providers, what was refused last, its
     * source.
     */
    public String bindStatus() {
        long self = enter();
        try {
            return Texts.of(bindStatus(self));
        } finally {
            exit();
        }
    }

    /** The fast way for one thread that routes again and again. */
    public Session session() {
        return new Session(this);
    }

    private static native long make(long engine, byte[] consumerUrl, int dialect, int flags, long memoBytes);

    private static native long setInvokers(long self, long invokers);

    private static native long invokers(long self);

    private static native int internMethod(long self, byte[] name);

    private static native void addRouter(long self, long router);

    private static native void setRuleUrls(long self, byte[] urls, int[] lengths);

    private static native long route(long self, long invocation, long notes, int length);

    private static native long[] tags(long self, long invocation, long notes, int length);

    private static native long routeMany(long self, long[] invocations, long[] tags, int room, long[] totals);

    private static native void pick(
            long self,
            long invocation,
            long notes,
            int length,
            int balance,
            int flags,
            long[] exclude,
            long[] available,
            long availableList,
            long[] picked);

    private static native boolean pickEnd(long self, long ticket, boolean ok, long latencyNanos);

    private static native boolean pickEndWith(
            long self,
            long ticket,
            boolean ok,
            long latencyNanos,
            long reportTimeMillis,
            double reportLoad,
            double reportLatencyMillis);

    private static native byte[] explain(long self, long invocation, long notes, int length, int format);

    private static native void keepRecent(long self, boolean on);

    private static native byte[] recent(long self, int format);

    private static native byte[] diff(long self, byte[] key, byte[] text, long[] invocations, int format);

    private static native byte[] keys(long self);

    private static native byte[] status(long self);

    private static native long generation(long self);

    private static native boolean bind(
            long self,
            long source,
            int flags,
            int emptyProtection,
            int discovery,
            long queue,
            long tag,
            Object onEvent,
            long timeoutMillis);

    private static native void cancelBind(long self);

    private static native byte[] bindStatus(long self);

    private static native void release(long self);
}
