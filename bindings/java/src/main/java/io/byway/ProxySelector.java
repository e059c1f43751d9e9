package io.byway;

import java.util.ArrayList;
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
        this(made(engine, java.util.Objects.requireNonNull(choice, "choice")));
    }

    private ProxySelector(long pointer) {
        super(pointer, ProxySelector::release);
    }

    /** A proxy selector from something that may answer later. */
    public static ProxySelector answering(Engine engine, Answerer answerer) {
        return new ProxySelector(made(engine, java.util.Objects.requireNonNull(answerer, "answerer")));
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
            long self = held.needed(engine, "engine");
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

    /** What Windows' {@code ProxyServer} and {@code ProxyOverride} say. */
    public static ProxySelector windows(Engine engine, String server, String bypass) {
        byte[] settings = Texts.utf8(server, "server");
        byte[] exceptions = Texts.utf8(bypass, "bypass");
        long self = engine.enter();
        try {
            return new ProxySelector(makeWindows(self, settings, exceptions));
        } finally {
            engine.exit();
        }
    }

    /** DIRECT for the hosts of a list, {@code inner} for all others. */
    public static ProxySelector bypass(Engine engine, BypassOptions options, ProxySelector inner) {
        byte[] list = Texts.utf8(options.list, "list");
        byte[] dialect = Texts.utf8(options.dialect, "dialect");
        try (Held held = new Held()) {
            return new ProxySelector(
                    makeBypass(
                            held.needed(engine, "engine"),
                            list,
                            options.style.number(),
                            options.flags,
                            dialect,
                            held.of(inner)));
        }
    }

    /** One of others by the URL's scheme; null among them is DIRECT. */
    public static ProxySelector perScheme(
            Engine engine, Map<String, ProxySelector> schemes, ProxySelector otherwise) {
        return oneOf(engine, true, List.copyOf(schemes.entrySet()), otherwise);
    }

    /**
     * The one of the first pattern that covers the target ({@code *.corp;10.0.0.0/8}, {@code *} for every host); an
     * entry whose value is null is DIRECT. Without a match {@code otherwise}; without that the request fails.
     *
     * @param patterns {@link Map#entry} with {@link #direct}, or any other entries
     */
    public static ProxySelector rules(
            Engine engine, List<Map.Entry<String, ProxySelector>> patterns, ProxySelector otherwise) {
        return oneOf(engine, false, patterns, otherwise);
    }

    private static ProxySelector oneOf(
            Engine engine,
            boolean byScheme,
            List<Map.Entry<String, ProxySelector>> parts,
            ProxySelector otherwise) {
        List<String> names = new ArrayList<>();
        for (Map.Entry<String, ProxySelector> part : parts) {
            names.add(part.getKey());
        }
        Texts words = Texts.pack(names, byScheme ? "schemes" : "patterns");
        try (Held held = new Held()) {
            long[] selectors = new long[parts.size()];
            int i = 0;
            for (Map.Entry<String, ProxySelector> part : parts) {
                selectors[i++] = held.of(part.getValue());
            }
            return new ProxySelector(
                    makeOneOf(
                            held.needed(engine, "engine"),
                            byScheme,
                            words.bytes,
                            words.lengths,
                            selectors,
                            held.of(otherwise)));
        }
    }

    /**
     * A proxy auto-configuration script: its text, a file, or what {@code fetcher} gives when the first question comes;
     * that may be null.
     */
    public static ProxySelector pac(Engine engine, PacOptions options, ScriptRequest.Fetcher fetcher) {
        try (Held held = new Held()) {
            return new ProxySelector(
                    makePac(
                            held.needed(engine, "engine"),
                            options.parts(),
                            held.of(options.dns),
                            options.addresses(),
                            options.numbers,
                            fetcher));
        }
    }

    /**
     * The system's settings, a snapshot: environment, GNOME, KDE, {@code /etc/sysconfig/proxy}. {@code fetcher}, which may
     * be null, fetches a script they name.
     */
    public static ProxySelector system(Engine engine, SystemSettings settings, ScriptRequest.Fetcher fetcher) {
        PacOptions pac = settings.pac;
        try (Held held = new Held()) {
            return new ProxySelector(
                    makeSystem(
                            held.needed(engine, "engine"),
                            settings.names == null ? null : settings.names.bytes,
                            settings.names == null ? null : settings.names.lengths,
                            settings.names == null ? null : settings.values.bytes,
                            settings.names == null ? null : settings.values.lengths,
                            settings.parts,
                            pac == null ? 0 : held.of(pac.dns),
                            pac == null ? null : pac.addresses(),
                            pac == null ? null : pac.numbers,
                            fetcher));
        }
    }

    /** Has the system's settings read from elsewhere from now on. */
    public void setSystem(SystemSettings settings) {
        long self = enter();
        try {
            setSystem(
                    self,
                    settings.names == null ? null : settings.names.bytes,
                    settings.names == null ? null : settings.names.lengths,
                    settings.names == null ? null : settings.values.bytes,
                    settings.names == null ? null : settings.values.lengths,
                    settings.parts);
        } finally {
            exit();
        }
    }

    /** A newer text of its script, in force from the next run on; {@code charset} null: as its first bytes say. */
    public void setScript(byte[] source, String charset) {
        byte[] name = Texts.utf8OrNull(charset, "charset");
        long self = enter();
        try {
            setScript(self, source, name);
        } finally {
            exit();
        }
    }

    /** URL of the script behind it, empty when it is to be discovered; null when there is no script. */
    public String scriptUrl() {
        long self = enter();
        try {
            byte[] url = scriptUrl(self);
            return url == null ? null : Texts.of(url);
        } finally {
            exit();
        }
    }

    /** Reads what it, and the selectors inside it, are made from again: the system's settings, a script's file. */
    public void refresh() {
        long self = enter();
        try {
            refresh(self);
        } finally {
            exit();
        }
    }

    /**
     * What is to be known about its configuration: entries that are not in use, variables that were ignored, where
     * settings came from, why a script was not fetched.
     */
    public List<String> diagnostics() {
        long self = enter();
        try {
            String lines = Texts.of(diagnostics(self));
            return lines.isEmpty() ? List.of() : List.of(lines.split("\n"));
        } finally {
            exit();
        }
    }

    private static long made(Engine engine, Object target) {
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

    private static native long makeWindows(long engine, byte[] server, byte[] bypass);

    private static native long makeBypass(
            long engine, byte[] list, int style, int flags, byte[] dialect, long inner);

    private static native long makeOneOf(
            long engine, boolean byScheme, byte[] words, int[] wordLengths, long[] selectors, long otherwise);

    private static native long makePac(
            long engine,
            byte[][] parts,
            long dns,
            byte[] addresses,
            long[] numbers,
            ScriptRequest.Fetcher fetcher);

    private static native long makeSystem(
            long engine,
            byte[] names,
            int[] nameLengths,
            byte[] values,
            int[] valueLengths,
            byte[][] parts,
            long dns,
            byte[] addresses,
            long[] numbers,
            ScriptRequest.Fetcher fetcher);

    private static native void setSystem(
            long self, byte[] names, int[] nameLengths, byte[] values, int[] valueLengths, byte[][] parts);

    static native void setScript(long self, byte[] source, byte[] charset);

    private static native byte[] scriptUrl(long self);

    private static native void refresh(long self);

    private static native byte[] diagnostics(long self);

    private static native long makeScript(long engine, byte[] name, byte[] source);

    private static native void release(long self);
}
