package io.byway;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;

/** An event listener; {@link #close} ends it. */
public final class Listener extends Handle {
    private final Engine engine;

    Listener(Engine engine, Collection<Event.Kind> kinds, Consumer<Event> onEvent, Queue queue) {
        super(made(engine, kinds, onEvent, queue), Listener::release);
        this.engine = engine;
    }

    private static long made(
            Engine engine, Collection<Event.Kind> kinds, Consumer<Event> onEvent, Queue queue) {
        java.util.Objects.requireNonNull(onEvent, "onEvent");
        long mask = 0;
        for (Event.Kind kind : kinds) {
            mask |= 1L << kind.number();
        }
        try (Held held = new Held()) {
            return make(held.of(engine), onEvent, mask, held.of(queue));
        }
    }

    /** Takes the listener back. Idempotent. */
    @Override
    public void close() {
        engine.forget(this);
        try {
            long self = enter();
            try {
                remove(self);
            } finally {
                exit();
            }
        } catch (BywayException.Handle closed) {
            return;
        }
        super.close();
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        @SuppressWarnings("unchecked")
        static void event(
                Object target,
                int kind,
                int status,
                long tag,
                long selectorId,
                long timeNanos,
                byte[] subject,
                long route,
                long[] proxies,
                byte[] addresses,
                Throwable error) {
            try {
                List<Proxy> offered = new ArrayList<>(proxies.length);
                for (long proxy : proxies) {
                    offered.add(proxy == 0 ? null : new Proxy(proxy));
                }
                List<InetAddress> found = Ip.unpackAll(addresses);
                Event event =
                        new Event(
                                kind,
                                status,
                                tag,
                                selectorId,
                                timeNanos,
                                Texts.of(subject),
                                route == 0 ? null : Route.owned(route),
                                offered,
                                found,
                                (BywayException) error);
                ((Consumer<Event>) target).accept(event);
            } catch (Throwable thrown) {
                Errors.report(thrown);
            }
        }
    }

    private static native long make(long engine, Object target, long mask, long queue);

    private static native void remove(long self);

    private static native void release(long self);
}
