package io.byway;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/**
 * Chooses proxies: a function of the host's, a fixed list, the environment's variables, Java's system properties, a
 * script. Shared.
 */
public final class ProxySelector extends Handle {
    /** A choice that is made in place. */
    @FunctionalInterface
    public interface Choice {
        /**
         * The proxies for a URI, in the order to try them; a null entry is DIRECT. Null instead of a list: the engine's
         * default is asked. What it throws becomes the cause of what the caller sees.
         */
        List<Proxy> select(String uri) throws Exception;

        /** A proxy that this chose failed. */
        default void connectFailed(String uri, Route route, Failure failure, int osErrno) {}
    }

    /** A choice that is made through the request, now or later. */
    public interface Answerer {
        /**
         * Adds the proxies to {@code request}, or calls {@link ProxyRequest#later} and answers from any thread
         * afterwards, or {@link ProxyRequest#pass}.
         */
        void answer(ProxyRequest request) throws Exception;

        /** A proxy that this chose failed. */
        default void connectFailed(String uri, Route route, Failure failure, int osErrno) {}

        /** Nobody waits for this request any more; a late answer is harmless. */
        default void canceled(long id) {}
    }

    /** A proxy selector from a function. */
    public ProxySelector(Engine engine, Choice choice) {
        this(made(engine, choice));
    }

    private ProxySelector(long pointer) {
        super(pointer, ProxySelector::release);
    }

    /** A proxy selector from something that may answer later. */
    public static ProxySelector answering(Engine engine, Answerer answerer) {
        return new ProxySelector(made(engine, answerer));
    }

    /** Never a proxy. */
    public static ProxySelector direct(Engine engine) {
        long self = engine.enter();
        try {
            return new ProxySelector(makeDirect(self));
        } finally {
            engine.exit();
        }
    }

    /** Always these. */
    public static ProxySelector fixed(Engine engine, Collection<Proxy> proxies) {
        try (Held held = new Held()) {
            long self = held.of(engine);
            long[] each = new long[proxies.size()];
            int i = 0;
            for (Proxy proxy : proxies) {
                each[i++] = held.of(proxy);
            }
            return new ProxySelector(makeFixed(self, each));
        }
    }

    /**
     * What {@code http_proxy}, {@code NO_PROXY} and their kin say; give {@link System#getenv()} or any table.
     *
     * @param dialect whose reading of NO_PROXY decides: {@code byway}, {@code curl}, {@code go}, {@code python}, {@code
     *     chromium}, {@code node}
     */
    public static ProxySelector environment(Engine engine, Map<String, String> variables, String dialect) {
        Texts names = Texts.pack(variables.keySet(), "variables");
        Texts values = Texts.pack(variables.values(), "variables");
        byte[] word = Texts.utf8(dialect, "dialect");
        long self = engine.enter();
        try {
            return new ProxySelector(
                    makeEnvironment(self, names.bytes, names.lengths, values.bytes, values.lengths, word));
        } finally {
            engine.exit();
        }
    }

    /** The same in byway's own dialect. */
    public static ProxySelector environment(Engine engine, Map<String, String> variables) {
        return environment(engine, variables, "byway");
    }

    /**
     * What Java's system properties say: {@code http.proxyHost}, {@code nonProxyHosts}, {@code socksProxyHost} and so
     * on; give {@link System#getProperties()} or any table. Entries that are not texts are not looked at.
     */
    public static ProxySelector properties(Engine engine, Properties properties, boolean webSockets) {
        Map<String, String> texts = new TreeMap<>();
        for (String name : properties.stringPropertyNames()) {
            texts.put(name, properties.getProperty(name));
        }
        Texts names = Texts.pack(texts.keySet(), "properties");
        Texts values = Texts.pack(texts.values(), "properties");
        long self = engine.enter();
        try {
            return new ProxySelector(
                    makeProperties(self, names.bytes, names.lengths, values.bytes, values.lengths, webSockets));
        } finally {
            engine.exit();
        }
    }

    /** What this JVM's own system properties say now. */
    public static ProxySelector properties(Engine engine) {
        return properties(engine, System.getProperties(), false);
    }

    /**
     * A proxy auto-configuration script.
     *
     * @throws BywayException.Unsupported in a library built without scripts
     */
    public static ProxySelector script(Engine engine, String name, String source) {
        byte[] title = Texts.utf8(name, "name");
        byte[] text = Texts.utf8(source, "source");
        long self = engine.enter();
        try {
            return new ProxySelector(makeScript(self, title, text));
        } finally {
            engine.exit();
        }
    }

    private static long made(Engine engine, Object target) {
        java.util.Objects.requireNonNull(target, "choice");
        long self = engine.enter();
        try {
            return make(self, target);
        } finally {
            engine.exit();
        }
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static int select(Object target, long pointer, byte[] uri, long tag) {
            ProxyRequest request = new ProxyRequest(pointer, Texts.of(uri), tag);
            try {
                if (target instanceof Choice) {
                    List<Proxy> chosen = ((Choice) target).select(request.uri());
                    if (chosen == null) {
                        return Abi.PASS;
                    }
                    for (Proxy proxy : chosen) {
                        if (proxy == null) {
                            request.addDirect();
                        } else {
                            request.add(proxy);
                        }
                    }
                } else {
                    ((Answerer) target).answer(request);
                }
                return request.outcome();
            } catch (Throwable thrown) {
                return request.thrown(thrown);
            } finally {
                request.returned();
            }
        }

        static void connectFailed(Object target, byte[] uri, long route, int failure, int osErrno) {
            try {
                Route told = Route.owned(route);
                String about = Texts.of(uri);
                if (target instanceof Choice) {
                    ((Choice) target).connectFailed(about, told, Failure.of(failure), osErrno);
                } else {
                    ((Answerer) target).connectFailed(about, told, Failure.of(failure), osErrno);
                }
            } catch (Throwable thrown) {
                Errors.report(thrown);
            }
        }

        static void canceled(Object target, long id) {
            try {
                if (target instanceof Answerer) {
                    ((Answerer) target).canceled(id);
                }
            } catch (Throwable thrown) {
                Errors.report(thrown);
            }
        }
    }

    private static native long make(long engine, Object target);

    private static native long makeDirect(long engine);

    private static native long makeFixed(long engine, long[] proxies);

    private static native long makeEnvironment(
            long engine, byte[] names, int[] nameLengths, byte[] values, int[] valueLengths, byte[] dialect);

    private static native long makeProperties(
            long engine, byte[] names, int[] nameLengths, byte[] values, int[] valueLengths, boolean webSockets);

    private static native long makeScript(long engine, byte[] name, byte[] source);

    private static native void release(long self);
}
