package io.byway;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Where rules and provider lists come from; a chain follows it, see {@link Chain#bind}. Shared. */
public final class Source extends Handle {
    /** How a ZooKeeper ensemble is reached, beside its connection string. */
    public static final class ZooKeeperOptions {
        private String username = "";
        private String password = "";
        private String root = "";
        private Duration sessionTimeout = Duration.ZERO;
        private Duration connectTimeout = Duration.ZERO;
        private Duration retryLongest = Duration.ZERO;

        /** User and password of the digest scheme; by default what the connection string has. */
        public ZooKeeperOptions credentials(String username, String password) {
            this.username = username;
            this.password = password;
            return this;
        }

        /** Dubbo's root; by default what the connection string says, else {@code /dubbo}. */
        public ZooKeeperOptions root(String root) {
            this.root = root;
            return this;
        }

        /** Session timeout to ask for; by default what the connection string says, else 15 s. */
        public ZooKeeperOptions sessionTimeout(Duration timeout) {
            sessionTimeout = timeout;
            return this;
        }

        /** Longest wait for one server; by default what the connection string says, else 5 s. */
        public ZooKeeperOptions connectTimeout(Duration timeout) {
            connectTimeout = timeout;
            return this;
        }

        /** Longest wait between two tries when no server answers; 10 s. Tries never end. */
        public ZooKeeperOptions retryLongest(Duration wait) {
            retryLongest = wait;
            return this;
        }
    }

    private final Engine engine;

    private Source(Engine engine, long pointer) {
        super(pointer, Source::release);
        this.engine = engine;
    }

    /** A source that the host fills itself, with {@link #put}. */
    public static Source memory(Engine engine) {
        long self = engine.enter();
        try {
            return new Source(engine, makeMemory(self));
        } finally {
            engine.exit();
        }
    }

    /** A directory in Dubbo's layout, or one file; changes are followed. A path that is not there yet may come. */
    public static Source file(Engine engine, String path) {
        return file(engine, path, "");
    }

    /** One file whose content belongs under {@code key}, as {@link #put} takes it. */
    public static Source file(Engine engine, String path, String key) {
        byte[] where = Texts.utf8(path, "path");
        byte[] what = Texts.utf8(key, "key");
        long self = engine.enter();
        try {
            return new Source(engine, makeFile(self, where, what));
        } finally {
            engine.exit();
        }
    }

    /**
     * Dubbo's layout in ZooKeeper.
     *
     * @param servers {@code host:port,host:port/chroot}, or Dubbo's {@code zookeeper://host:port?backup=...}
     */
    public static Source zooKeeper(Engine engine, String servers) {
        return zooKeeper(engine, servers, new ZooKeeperOptions());
    }

    /** The same with options. */
    public static Source zooKeeper(Engine engine, String servers, ZooKeeperOptions options) {
        byte[] where = Texts.utf8(servers, "servers");
        byte[] username = Texts.utf8(options.username, "username");
        byte[] password = Texts.utf8(options.password, "password");
        byte[] root = Texts.utf8(options.root, "root");
        long self = engine.enter();
        try {
            return new Source(
                    engine,
                    makeZooKeeper(
                            self,
                            where,
                            username,
                            password,
                            root,
                            option(options.sessionTimeout, "sessionTimeout"),
                            option(options.connectTimeout, "connectTimeout"),
                            option(options.retryLongest, "retryLongest")));
        } finally {
            engine.exit();
        }
    }

    /** The engine it belongs to. */
    public Engine engine() {
        return engine;
    }

    /**
     * Sets one key of a memory source; when this returns, bound chains route by it. A key is a rule's ({@code
     * com.foo.Bar::.condition-router}) or a path in Dubbo's tree, such as {@code com.foo.Bar/providers}; the text of a
     * list has one entry a line. A rule that is refused is told by an event and the status.
     */
    public void put(String key, String text) {
        byte[] name = Texts.utf8(key, "key");
        byte[] content = Texts.utf8(text, "text");
        long self = enter();
        try {
            put(self, name, content);
        } finally {
            exit();
        }
    }

    /** Removes one key of a memory source; one that is not there is fine. */
    public void remove(String key) {
        byte[] name = Texts.utf8(key, "key");
        long self = enter();
        try {
            remove(self, name);
        } finally {
            exit();
        }
    }

    /** Several changes of a memory source as one moment: bound chains see all of them or none. Null removes a key. */
    public void apply(Map<String, String> changes) {
        List<String> texts = new ArrayList<>(changes.size());
        int[] gone = new int[changes.size()];
        for (String text : changes.values()) {
            gone[texts.size()] = text == null ? 1 : 0;
            texts.add(text == null ? "" : text);
        }
        Texts keys = Texts.pack(changes.keySet(), "changes");
        Texts contents = Texts.pack(texts, "changes");
        long self = enter();
        try {
            apply(self, keys.bytes, keys.lengths, contents.bytes, contents.lengths, gone);
        } finally {
            exit();
        }
    }

    /**
     * What the source holds under a key, read now if nobody follows it.
     *
     * <p>The wait ends with its time or the engine, not when the source is closed.
     *
     * @param timeout null for the engine's default
     * @throws BywayException.Argument when it does not have it
     */
    public String get(String key, Duration timeout) {
        byte[] name = Texts.utf8(key, "key");
        long self = enter();
        try {
            return Texts.of(get(self, name, millis(timeout)));
        } finally {
            exit();
        }
    }

    /** How it stands. */
    public SourceStatus status() {
        long[] fields = new long[6];
        long self = enter();
        try {
            Throwable last = status(self, fields);
            return new SourceStatus(fields, (BywayException) last);
        } finally {
            exit();
        }
    }

    private static native long makeMemory(long engine);

    private static native long makeFile(long engine, byte[] path, byte[] key);

    private static native long makeZooKeeper(
            long engine,
            byte[] servers,
            byte[] username,
            byte[] password,
            byte[] root,
            long sessionTimeoutMillis,
            long connectTimeoutMillis,
            long retryLongestMillis);

    private static native void put(long self, byte[] key, byte[] text);

    private static native void remove(long self, byte[] key);

    private static native void apply(
            long self, byte[] keys, int[] keyLengths, byte[] texts, int[] textLengths, int[] gone);

    private static native byte[] get(long self, byte[] key, long timeoutMillis);

    private static native Throwable status(long self, long[] state);

    private static native void release(long self);
}
