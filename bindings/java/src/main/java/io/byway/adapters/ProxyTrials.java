package io.byway.adapters;

import io.byway.Failure;
import io.byway.Proxy;
import java.io.EOFException;
import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.ProtocolException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongSupplier;
import javax.net.ssl.SSLException;

/**
 * What {@code connectFailed} says of proxies, without ever hearing of success.
 *
 * <p>A machine that is offline hears nothing from any proxy, and must not mark them all. So an answer that condemns a
 * proxy (refused, reset, not its protocol) counts at once: somebody answered. Silence (timeout, no such name, no route)
 * is held back, and counts when another proxy of the list answers, or when one behind it has had the time to fall silent
 * too and did not. What this machine itself could not do, and what lies behind the proxy, counts for nothing.
 */
final class ProxyTrials {
    /** Origins remembered. */
    private static final int MOST = 256;
    /** What a try may take beyond the one before it. */
    private static final long GRACE = 1_000_000_000L;

    /** What one failure says. */
    enum Verdict {
        /** Nothing of the proxy. */
        NOTHING,
        /** It is there; what lies behind it failed. */
        THERE,
        /** Nobody answered, which a machine that is offline sees too. */
        SILENT,
        /** Somebody answered and is not the proxy that was wanted. */
        CONDEMNED
    }

    /** One that failed. */
    static final class Marked {
        final Proxy proxy;
        final Failure failure;

        Marked(Proxy proxy, Failure failure) {
            this.proxy = proxy;
            this.failure = failure;
        }
    }

    private static final class Held {
        final Failure failure;
        final long at;
        final long took;

        Held(Failure failure, long at, long took) {
            this.failure = failure;
            this.at = at;
            this.took = took;
        }
    }

    private static final class Round {
        List<Proxy> list = List.of();
        long since;
        final Map<Proxy, Held> silent = new LinkedHashMap<>();
    }

    private final LongSupplier nanos;
    private final Map<String, Round> rounds =
            new LinkedHashMap<>(16, 0.75f, true) {
                private static final long serialVersionUID = 1L;

                @Override
                protected boolean removeEldestEntry(Map.Entry<String, Round> eldest) {
                    return size() > MOST;
                }
            };

    ProxyTrials(LongSupplier nanos) {
        this.nanos = nanos;
    }

    /** The origin is asked for again: which proxies have failed before. */
    synchronized List<Marked> again(String origin) {
        Round round = rounds.get(origin);
        if (round == null || round.silent.isEmpty()) {
            return List.of();
        }
        long now = nanos.getAsLong();
        List<Marked> marked = new ArrayList<>();
        Map<Proxy, Held> silent = Map.copyOf(round.silent);
        for (Map.Entry<Proxy, Held> one : silent.entrySet()) {
            Held last = one.getValue();
            boolean behind = false;
            boolean followed = false;
            for (Proxy next : round.list) {
                if (behind && next != null) {
                    Held after = silent.get(next);
                    if (after == null) {
                        followed = true;
                        break;
                    }
                    last = after.at - last.at > 0 ? after : last;
                }
                behind |= one.getKey().equals(next);
            }
            if (now - last.at <= last.took + GRACE) {
                continue;
            }
            round.silent.remove(one.getKey());
            // Otherwise nobody is behind it but DIRECT, whose success nobody tells, and silence.
            if (followed) {
                marked.add(new Marked(one.getKey(), one.getValue().failure));
            }
        }
        return marked;
    }

    /** What the origin's list is now. */
    synchronized void listed(String origin, List<Proxy> list) {
        Round round = rounds.computeIfAbsent(origin, key -> new Round());
        round.list = list;
        round.since = nanos.getAsLong();
    }

    /** The list last given for an origin; null when it is forgotten. */
    synchronized List<Proxy> list(String origin) {
        Round round = rounds.get(origin);
        return round == null ? null : round.list;
    }

    /** A proxy of the origin's list failed: who is known to have failed now. */
    synchronized List<Marked> failed(String origin, Proxy proxy, IOException why) {
        Verdict verdict = verdict(why);
        if (verdict == Verdict.NOTHING) {
            return List.of();
        }
        Round round = rounds.computeIfAbsent(origin, key -> new Round());
        long now = nanos.getAsLong();
        if (verdict == Verdict.SILENT) {
            round.silent.put(proxy, new Held(failure(why), now, now - round.since));
            return List.of();
        }
        // Somebody answered: whoever was silent just before was not so for want of a network.
        List<Marked> marked = new ArrayList<>();
        round.silent.remove(proxy);
        round.silent.forEach((silent, held) -> marked.add(new Marked(silent, held.failure)));
        round.silent.clear();
        if (verdict == Verdict.CONDEMNED) {
            marked.add(new Marked(proxy, failure(why)));
        }
        return marked;
    }

    /** Reads the exceptions of the JDK and of OkHttp, which wraps them; several kinds differ in their texts only. */
    static Verdict verdict(IOException why) {
        Throwable root = root(why);
        String text = String.valueOf(root.getMessage()).toLowerCase(Locale.ROOT);
        if (why instanceof SSLException || root instanceof SSLException) {
            // TLS is spoken through the proxy, never to it.
            return Verdict.THERE;
        }
        if (root instanceof SocketTimeoutException
                || root instanceof UnknownHostException
                || root instanceof NoRouteToHostException) {
            return Verdict.SILENT;
        }
        if (root instanceof BindException) {
            return Verdict.NOTHING;
        }
        if (root instanceof SocketException) {
            if (text.startsWith("socks")) {
                // The proxy's own answer about the target.
                return Verdict.THERE;
            }
            if (text.contains("refused") || text.contains("reset") || text.contains("pipe") || text.contains("malformed")) {
                return Verdict.CONDEMNED;
            }
            if (text.contains("timed out") || text.contains("host is unreachable") || text.contains("no route to host")) {
                return Verdict.SILENT;
            }
            return root instanceof ConnectException && !text.contains("unreachable") ? Verdict.SILENT : Verdict.NOTHING;
        }
        if (root instanceof ProtocolException || root instanceof EOFException || text.contains("unexpected end of stream")) {
            return Verdict.CONDEMNED;
        }
        if (text.contains("unexpected response code for connect") || text.contains("failed to authenticate with proxy")) {
            return Verdict.THERE;
        }
        return Verdict.NOTHING;
    }

    static Failure failure(IOException why) {
        Throwable root = root(why);
        String text = String.valueOf(root.getMessage()).toLowerCase(Locale.ROOT);
        if (root instanceof SocketTimeoutException || text.contains("timed out")) {
            return Failure.TIMEOUT;
        }
        if (root instanceof UnknownHostException) {
            return Failure.UNKNOWN_HOST;
        }
        if (root instanceof NoRouteToHostException) {
            return Failure.UNREACHABLE;
        }
        if (text.contains("refused")) {
            return Failure.REFUSED;
        }
        if (text.contains("reset") || text.contains("pipe")) {
            return Failure.RESET;
        }
        return root instanceof ProtocolException || text.contains("malformed") ? Failure.PROXY_PROTOCOL : Failure.IO;
    }

    private static Throwable root(Throwable why) {
        Throwable root = why;
        while (root.getCause() instanceof IOException && root.getCause() != root) {
            root = root.getCause();
        }
        return root;
    }
}
