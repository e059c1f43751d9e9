package io.byway;

/** A host's own router: a chain asks it for every call, behind the routers of smaller priority. Shared. */
public final class Router extends Handle {
    /** The decision. */
    @FunctionalInterface
    public interface Route {
        /**
         * Says which providers stay, with {@link RouterRequest#keep} for each, or {@link RouterRequest#pass} for all. Runs on
         * the routing thread and must not block. What it throws becomes the cause of what the caller sees.
         */
        void route(RouterRequest request) throws Exception;
    }

    /** What a router is made with. */
    public static final class Options {
        private long priority;
        private int flags;

        /** Routers run in ascending priority, equal ones in the order they were added; 0. */
        public Options priority(long priority) {
            this.priority = priority;
            return this;
        }

        /**
         * Every chain made from now on has it, unless its {@code router=} takes it away; until it is closed and no chain
         * has it.
         */
        public Options everyChain() {
            flags = Abi.ROUTER_EVERY_CHAIN;
            return this;
        }

        /** Every chain made from now on has it if its {@code router=} names it; until it is closed and no chain has it. */
        public Options byName() {
            flags = Abi.ROUTER_BY_NAME;
            return this;
        }
    }

    private final Engine engine;

    /** A router of priority 0 for the chains it is added to. */
    public Router(Engine engine, String name, Route route) {
        this(engine, name, route, new Options());
    }

    /**
     * A router.
     *
     * @param name what {@code router=} lists, explanations and errors call it
     */
    public Router(Engine engine, String name, Route route, Options options) {
        super(made(engine, name, route, options), Router::release);
        this.engine = engine;
        if (options.flags != 0) {
            // It serves chains whether or not the caller keeps it.
            engine.keep(this);
        }
    }

    private static long made(Engine engine, String name, Route route, Options options) {
        java.util.Objects.requireNonNull(route, "route");
        byte[] text = Texts.utf8(name, "name");
        long self = engine.enter();
        try {
            return make(self, text, options.priority, options.flags, route);
        } finally {
            engine.exit();
        }
    }

    /** Takes it back from chains to come; those that have it keep it. */
    @Override
    public void close() {
        engine.forget(this);
        super.close();
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static int route(
                Object target, long pointer, long[] tags, byte[] method, boolean explaining, byte[] keep) {
            RouterRequest request = new RouterRequest(pointer, tags, method, explaining, keep);
            try {
                ((Route) target).route(request);
                return request.outcome();
            } catch (Throwable thrown) {
                return Errors.raise(thrown);
            } finally {
                request.returned();
            }
        }
    }

    private static native long make(long engine, byte[] name, long priority, int flags, Object target);

    private static native void release(long self);
}
