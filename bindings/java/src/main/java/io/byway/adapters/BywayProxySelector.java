package io.byway.adapters;

import io.byway.Engine;
import io.byway.Failure;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.Route;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.PortUnreachableException;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.LongSupplier;

/**
 * A JVM's or an OkHttp client's proxies come from byway: environment, system settings, scripts, rules, and what failed
 * lately goes behind the others.
 *
 * <pre>{@code
 * ProxySelector.setDefault(new BywayProxySelector(engine, io.byway.ProxySelector.environment(engine, System.getenv())));
 * }</pre>
 *
 * A selector that fails makes {@link #select} throw: nothing goes DIRECT that was meant for a proxy. An engine made with
 * {@link Engine.Options#directOnProxySelectorError} says DIRECT instead. {@link java.net.Proxy} knows HTTP and SOCKS and
 * no credentials: proxies over TLS throw, and credentials are the client's own ({@link java.net.Authenticator},
 * OkHttp's {@code proxyAuthenticator}). Usable from every thread.
 */
public final class BywayProxySelector extends ProxySelector {
    private final Engine engine;
    private final io.byway.ProxySelector chooser;
    private final io.byway.Dns dns;
    private final Duration timeout;
    private final ProxyTrials trials;

    /**
     * Proxies as this selector has them.
     */
    public BywayProxySelector(Engine engine, io.byway.ProxySelector chooser) {
        this(engine, chooser, null, null);
    }

    /**
     * The same with its own resolver and limit.
     *
     * @param dns resolves what a script asks for; null for the system's
     * @param timeout how long one question may take; null for the engine's default
     */
    public BywayProxySelector(
            Engine engine, io.byway.ProxySelector chooser, io.byway.Dns dns, Duration timeout) {
        this.engine = Objects.requireNonNull(engine, "engine");
        this.chooser = Objects.requireNonNull(chooser, "chooser");
        this.dns = dns;
        this.timeout = timeout;
        this.trials = new ProxyTrials(System::nanoTime);
    }

    /** The same on a clock of the test's. */
    BywayProxySelector(Engine engine, io.byway.ProxySelector chooser, LongSupplier nanos) {
        this.engine = engine;
        this.chooser = chooser;
        this.dns = null;
        this.timeout = null;
        this.trials = new ProxyTrials(nanos);
    }

    /**
     * Any proxy selector of the JVM's as one of byway's. It is told of failures as OkHttp tells it. SOCKS means that the
     * proxy resolves, as in OkHttp.
     */
    public static io.byway.ProxySelector adapt(Engine engine, ProxySelector selector) {
        return new io.byway.ProxySelector(engine, new Adapted(Objects.requireNonNull(selector, "selector")));
    }

    @Override
    public List<java.net.Proxy> select(URI uri) {
        if (uri == null) {
            throw new IllegalArgumentException("uri is null");
        }
        String origin = origin(uri);
        mark(trials.again(origin));
        List<Proxy> list = engine.proxiesForUrl(chooser, uri.toString(), dns, timeout);
        trials.listed(origin, list);
        List<java.net.Proxy> chosen = new ArrayList<>();
        for (Proxy proxy : list) {
            chosen.add(proxy == null ? java.net.Proxy.NO_PROXY : javas(proxy));
        }
        return chosen;
    }

    /**
     * A proxy that failed goes behind the others for a while; DIRECT keeps its place.
     *
     * <p>Nobody tells a proxy selector what worked, and a machine that is offline must not mark its proxies: one that
     * answers and refuses, resets or speaks another protocol is marked at once. One that is silent (timeout, unknown
     * name, no route) is marked when another proxy of the list answers, or by a later {@link #select} for the same origin
     * when the proxy behind it in the list has had as long and has not failed; with nothing but DIRECT behind it, it is
     * not. What this machine could not do (no network, no descriptors), and what lies behind a proxy (its refusals, TLS
     * to the target), marks nothing.
     */
    @Override
    public void connectFailed(URI uri, SocketAddress address, IOException failure) {
        if (uri == null || address == null || failure == null) {
            throw new IllegalArgumentException("uri, address and failure are needed");
        }
        if (!(address instanceof InetSocketAddress)) {
            return;
        }
        InetSocketAddress at = (InetSocketAddress) address;
        String origin = origin(uri);
        List<Proxy> list = trials.list(origin);
        if (list == null) {
            list = engine.proxiesForUrl(chooser, uri.toString(), dns, timeout);
            trials.listed(origin, list);
        }
        for (Proxy proxy : list) {
            if (proxy != null && names(proxy, at)) {
                mark(trials.failed(origin, proxy, failure));
                return;
            }
        }
    }

    private void mark(List<ProxyTrials.Marked> failed) {
        for (ProxyTrials.Marked one : failed) {
            engine.markProxy(one.proxy, one.failure, 0);
        }
    }

    private static String origin(URI uri) {
        return uri.getScheme() + "://" + uri.getRawAuthority();
    }

    private static boolean names(Proxy proxy, InetSocketAddress at) {
        if (proxy.port() != at.getPort()) {
            return false;
        }
        InetAddress resolved = at.getAddress();
        return proxy.host().equalsIgnoreCase(at.getHostString())
                || resolved != null && resolved.getHostAddress().equals(proxy.host());
    }

    private static java.net.Proxy javas(Proxy proxy) {
        return new java.net.Proxy(type(proxy), InetSocketAddress.createUnresolved(proxy.host(), proxy.port()));
    }

    private static java.net.Proxy.Type type(Proxy proxy) {
        switch (proxy.kind()) {
            case HTTP:
                return java.net.Proxy.Type.HTTP;
            case HTTPS:
                throw new UnsupportedOperationException(
                        proxy + ": java.net.Proxy has no proxy over TLS, and without TLS it would be another one");
            default:
                return java.net.Proxy.Type.SOCKS;
        }
    }

    /** Where byway asks the JVM's selector. */
    private static final class Adapted implements io.byway.ProxySelector.Choice {
        private final ProxySelector selector;

        Adapted(ProxySelector selector) {
            this.selector = selector;
        }

        @Override
        public List<Proxy> select(String uri) {
            List<java.net.Proxy> chosen = selector.select(URI.create(uri));
            if (chosen == null) {
                throw new NullPointerException("the proxy selector returned null");
            }
            List<Proxy> proxies = new ArrayList<>();
            for (java.net.Proxy proxy : chosen) {
                proxies.add(byways(proxy));
            }
            return proxies;
        }

        @Override
        public void connectFailed(String uri, Route route, Failure failure, int osErrno) {
            Proxy proxy = route.proxy();
            if (proxy != null) {
                selector.connectFailed(URI.create(uri), javas(proxy).address(), exception(failure));
            }
        }

        private static Proxy byways(java.net.Proxy proxy) {
            if (proxy == null) {
                throw new NullPointerException("the proxy selector's list has a null in it");
            }
            if (proxy.type() == java.net.Proxy.Type.DIRECT) {
                return null;
            }
            if (!(proxy.address() instanceof InetSocketAddress)) {
                throw new IllegalArgumentException("Proxy.address() is not an InetSocketAddress: " + proxy.address());
            }
            InetSocketAddress at = (InetSocketAddress) proxy.address();
            ProxyKind kind = proxy.type() == java.net.Proxy.Type.HTTP ? ProxyKind.HTTP : ProxyKind.SOCKS5H;
            return at.isUnresolved()
                    ? new Proxy(kind, at.getHostString(), at.getPort())
                    : new Proxy(kind, at.getHostString(), at.getAddress(), at.getPort());
        }

        private static IOException exception(Failure failure) {
            switch (failure) {
                case REFUSED:
                    return new ConnectException(failure.text());
                case TIMEOUT:
                    return new SocketTimeoutException(failure.text());
                case UNREACHABLE:
                    return new NoRouteToHostException(failure.text());
                case UNKNOWN_HOST:
                    return new UnknownHostException(failure.text());
                default:
                    return new IOException(failure.text());
            }
        }
    }
}
