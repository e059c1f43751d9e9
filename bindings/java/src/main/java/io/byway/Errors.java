package io.byway;

import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * From a failed call to an exception, and the way of what callbacks throw to whoever sees the failure. Natives call
 * this; it must not touch a class that loads the library, which may be what is happening.
 */
final class Errors {
    /** Statuses of a callback from here on: it threw, {@link #here} has the exception, and the rest is its status. */
    private static final int RAISED = Integer.MIN_VALUE;

    /** Marks host codes that name an entry of {@link #KEPT}; no host counts that low. */
    private static final long MARK = 0x8b79_7761_0000_0000L;

    private static final int MOST = 256;
    private static final AtomicLong NUMBERS = new AtomicLong();

    /** Exceptions that answers of requests carry by number: the failure may show on any thread. */
    private static final Map<Long, Throwable> KEPT =
            new LinkedHashMap<>() {
                private static final long serialVersionUID = 1L;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Long, Throwable> eldest) {
                    return size() > MOST;
                }
            };

    /** What a callback on this thread threw, for the call it runs inside. */
    private static final ThreadLocal<Throwable> here = new ThreadLocal<>();

    private Errors() {}

    /** For callbacks with a request: the number that goes with its failure. */
    static long keep(Throwable thrown) {
        long number = MARK | (NUMBERS.incrementAndGet() & 0xffff_ffffL);
        synchronized (KEPT) {
            KEPT.put(number, thrown);
        }
        return number;
    }

    /** For callbacks that answer with a status. */
    static int raise(Throwable thrown) {
        here.set(thrown);
        return RAISED - statusOf(thrown);
    }

    /** What a callback's exception means to the library. */
    static int statusOf(Throwable thrown) {
        if (thrown instanceof BywayException && ((BywayException) thrown).code() < 0) {
            return ((BywayException) thrown).code();
        }
        return thrown instanceof UnknownHostException ? Abi.E_UNKNOWN_HOST : Abi.E_HOST;
    }

    /** For what has no caller that could be told. */
    static void report(Throwable thrown) {
        Thread thread = Thread.currentThread();
        try {
            thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
        } catch (Throwable ignored) {
            // A handler that throws has had its chance.
        }
    }

    /** A native ended well although a callback inside it threw. */
    static void unclaimed() {
        Throwable thrown = here.get();
        here.remove();
        if (thrown != null) {
            report(thrown);
        }
    }

    /** Another callback begins: what it does must not take what an earlier one threw. Called by natives. */
    static Throwable setAside() {
        Throwable thrown = here.get();
        here.remove();
        return thrown;
    }

    /** It has ended. Called by natives. */
    static void putBack(Throwable thrown) {
        if (here.get() == null) {
            here.set(thrown);
        }
    }

    /** Called by natives. */
    static Throwable make(
            int code,
            byte[] message,
            byte[] subject,
            long offset,
            int line,
            int column,
            int osErrno,
            long hostCode,
            int source,
            Throwable[] parts) {
        List<BywayException> causes = new ArrayList<>();
        if (parts != null) {
            for (Throwable part : parts) {
                causes.add((BywayException) part);
            }
        }
        String text = message == null || message.length == 0 ? Status.message(code) : Texts.of(message);
        BywayException made =
                classOf(
                        new BywayException.Fields(
                                code,
                                text,
                                Texts.of(subject),
                                offset,
                                line,
                                column,
                                osErrno,
                                hostCode,
                                source,
                                List.copyOf(causes)));
        Throwable thrown = kept(hostCode);
        if (thrown == null) {
            thrown = here.get();
            here.remove();
        }
        for (int i = 0; thrown == null && i < causes.size(); i++) {
            thrown = causes.get(i).getCause();
        }
        if (thrown != null) {
            made.initCause(thrown);
        }
        return made;
    }

    private static Throwable kept(long hostCode) {
        if ((hostCode & 0xffff_ffff_0000_0000L) != MARK) {
            return null;
        }
        synchronized (KEPT) {
            return KEPT.get(hostCode);
        }
    }

    /** An exception of this library's own, for what never reaches it. */
    static BywayException of(int code, String message, String subject) {
        return classOf(new BywayException.Fields(code, message, subject, -1, 0, 0, 0, 0, 0, List.of()));
    }

    private static BywayException classOf(BywayException.Fields fields) {
        int code = fields.code;
        switch (code) {
            case Abi.E_BUSY:
            case Abi.E_BAD_HANDLE:
            case Abi.E_REENTRANT:
            case Abi.E_POISONED:
                return new BywayException.Handle(fields);
            case Abi.E_CANCELED:
                return new BywayException.Canceled(fields);
            case Abi.E_TIMEOUT:
                return new BywayException.Timeout(fields);
            case Abi.E_SHUTDOWN:
            case Abi.E_FORKED:
                return new BywayException.Shutdown(fields);
            case Abi.E_UNSUPPORTED:
                return new BywayException.Unsupported(fields);
            case Abi.E_HOST:
                return new BywayException.Host(fields);
            case Abi.E_FILTERED:
                return new BywayException.Filtered(fields);
            case Abi.E_INVOKERS:
                return new BywayException.Invokers(fields);
            case Abi.E_NO_INVOKER:
                return new BywayException.NoInvoker(fields);
            case Abi.E_INVALID_HOST:
            case Abi.E_INVALID_PORT:
            case Abi.E_INVALID_IP:
            case Abi.E_INVALID_URL:
                return new BywayException.Argument(fields);
            default:
                break;
        }
        if (code >= -199) {
            return new BywayException.Argument(fields);
        }
        if (code >= -299) {
            return new BywayException.Proxy(fields);
        }
        if (code >= -399) {
            return new BywayException.Dns(fields);
        }
        if (code >= -499) {
            return new BywayException.Rule(fields);
        }
        if (code >= -599) {
            return new BywayException.Connect(fields);
        }
        return new BywayException(fields);
    }
}
