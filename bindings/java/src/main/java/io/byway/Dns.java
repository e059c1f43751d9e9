package io.byway;

import java.net.InetAddress;
import java.util.List;

/** Who resolves names: a lookup of the host's, the system, or a fixed table. Shared. */
public final class Dns extends Handle {
    /** A lookup that answers in place. */
    @FunctionalInterface
    public interface Lookup {
        /**
         * The addresses of a canonical name, in the order in which routes are to be tried. An empty list: there are none;
         * null: the system is asked. What it throws becomes the cause of what the caller sees.
         */
        List<? extends InetAddress> lookup(String host) throws Exception;
    }

    /** A lookup that answers through the request, now or later. */
    public interface Answerer {
        /**
         * Adds the answer to {@code request}, or calls {@link DnsRequest#later} and answers from any thread afterwards,
         * or {@link DnsRequest#pass}. Returning without any of these means that there are no addresses.
         */
        void answer(DnsRequest request) throws Exception;

        /** Nobody waits for this request any more; a late answer is harmless. */
        default void canceled(long id) {}
    }

    /** A resolver from a function. */
    public Dns(Engine engine, Lookup lookup) {
        this(made(engine, java.util.Objects.requireNonNull(lookup, "lookup")));
    }

    /** A resolver from something that may answer later. */
    public static Dns answering(Engine engine, Answerer answerer) {
        return new Dns(made(engine, java.util.Objects.requireNonNull(answerer, "answerer")));
    }

    private Dns(long pointer) {
        super(pointer, Dns::release);
    }

    /** getaddrinfo on the library's own bounded pool of threads. */
    public static Dns system(Engine engine) {
        long self = engine.enter();
        try {
            return new Dns(makeSystem(self));
        } finally {
            engine.exit();
        }
    }

    /** A fixed table in the form of a hosts file. */
    public static Dns hosts(Engine engine, String text) {
        byte[] table = Texts.utf8(text, "text");
        long self = engine.enter();
        try {
            return new Dns(makeHosts(self, table));
        } finally {
            engine.exit();
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

        static int lookup(Object target, long pointer, byte[] host, long tag, long deadlineMillis) {
            DnsRequest request = new DnsRequest(pointer, Texts.of(host), tag, deadlineMillis);
            try {
                if (target instanceof Lookup) {
                    List<? extends InetAddress> found = ((Lookup) target).lookup(request.host());
                    if (found == null) {
                        return Abi.PASS;
                    }
                    request.add(found);
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

    private static native long makeSystem(long engine);

    private static native long makeHosts(long engine, byte[] text);

    private static native void release(long self);
}
