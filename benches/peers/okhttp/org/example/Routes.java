package org.example;

import io.byway.Dns;
import io.byway.Engine;
import io.byway.Failure;
import io.byway.Selection;
import io.byway.Selector;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.SocketFactory;
import javax.net.ssl.SSLSocketFactory;
import okhttp3.Address;
import okhttp3.Authenticator;
import okhttp3.CertificatePinner;
import okhttp3.ConnectionSpec;
import okhttp3.Protocol;
import okhttp3.Route;
import okhttp3.internal.connection.RouteDatabase;
import okhttp3.internal.connection.RouteSelector;
import okhttp3.internal.tls.OkHostnameVerifier;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/**
 * Where to connect: two IPv4 and two IPv6 addresses of one name, from a new selector to the last route. {@code okhttp} is
 * OkHttp's own selector over a resolver that answers at once, {@code byway} the same through JNI.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Routes {
    private static final String HOST = "a.example";
    private static final String[] IPS = {"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"};

    /** No proxy, as byway's proxy selectors say it. */
    private static final List<io.byway.Proxy> DIRECT = Collections.singletonList(null);

    /** A proxy selector that says what most say. */
    private static final class Direct extends ProxySelector {
        private static final List<Proxy> ANSWER = List.of(Proxy.NO_PROXY);

        @Override
        public List<Proxy> select(URI uri) {
            return ANSWER;
        }

        @Override
        public void connectFailed(URI uri, SocketAddress address, IOException failure) {}
    }

    private final Peer peer = new Peer();
    private final RouteDatabase none = new RouteDatabase();
    private final RouteDatabase one = new RouteDatabase();
    private Address direct;
    private Address asking;
    private Route fresh;
    private Route failed;

    private io.byway.Address table;
    private io.byway.Address looking;
    private io.byway.Address tableAsking;
    private io.byway.Address lookingAsking;
    private io.byway.Address tableFailed;
    private io.byway.Address lookingFailed;
    private Engine failures;
    private io.byway.Route freshRoute;
    private io.byway.Route failedRoute;

    /** Both sides with the same addresses, once without a failed route and once with one. */
    @Setup
    public void prepare() throws Exception {
        List<InetAddress> addresses = List.of(
                InetAddress.getByName(IPS[0]), InetAddress.getByName(IPS[1]), InetAddress.getByName(IPS[2]),
                InetAddress.getByName(IPS[3]));
        direct = address(addresses, Proxy.NO_PROXY);
        asking = address(addresses, null);
        fresh = new Route(direct, Proxy.NO_PROXY, new InetSocketAddress(addresses.get(1), 443));
        failed = new Route(direct, Proxy.NO_PROXY, new InetSocketAddress(addresses.get(0), 443));
        one.failed(failed);

        Engine engine = new Engine();
        failures = new Engine();
        table = byway(engine, addresses, true, false);
        looking = byway(engine, addresses, false, false);
        tableAsking = byway(engine, addresses, true, true);
        lookingAsking = byway(engine, addresses, false, true);
        tableFailed = byway(failures, addresses, true, false);
        lookingFailed = byway(failures, addresses, false, false);
        Selection routes = new Selector(tableFailed).next();
        failedRoute = routes.get(0);
        freshRoute = routes.get(1);
        failures.connectFailed(failedRoute, Failure.REFUSED);
    }

    private static Address address(List<InetAddress> addresses, Proxy proxy) {
        okhttp3.Dns dns = host -> addresses;
        return new Address(
                HOST, 443, dns, SocketFactory.getDefault(), (SSLSocketFactory) SSLSocketFactory.getDefault(),
                OkHostnameVerifier.INSTANCE, CertificatePinner.DEFAULT, Authenticator.NONE, proxy,
                List.of(Protocol.HTTP_2, Protocol.HTTP_1_1), List.of(ConnectionSpec.MODERN_TLS), new Direct());
    }

    private static io.byway.Address byway(Engine engine, List<InetAddress> addresses, boolean table, boolean asking) {
        StringBuilder hosts = new StringBuilder();
        for (String ip : IPS) {
            hosts.append(ip).append(' ').append(HOST).append('\n');
        }
        Dns dns = table ? Dns.hosts(engine, hosts.toString()) : new Dns(engine, host -> addresses);
        io.byway.Address.Options options = new io.byway.Address.Options(HOST, 443).tls(true).dns(dns);
        if (asking) {
            options.proxySelector(new io.byway.ProxySelector(engine, Routes::noProxy));
        } else {
            options.direct(true);
        }
        return new io.byway.Address(engine, options);
    }

    private static List<io.byway.Proxy> noProxy(String uri) {
        return DIRECT;
    }

    private void okhttp(Address address, RouteDatabase database, Blackhole hole) throws IOException {
        RouteSelector selector = peer.selector(address, database);
        while (selector.hasNext()) {
            RouteSelector.Selection selection = selector.next();
            while (selection.hasNext()) {
                hole.consume(selection.next());
            }
        }
    }

    private static void plan(io.byway.Address address, Blackhole hole) {
        List<io.byway.Route> routes = Selector.plan(address);
        for (int at = 0; at < routes.size(); at++) {
            hole.consume(routes.get(at));
        }
    }

    @Benchmark
    public void okhttp(Blackhole hole) throws IOException {
        okhttp(direct, none, hole);
    }

    @Benchmark
    public void okhttpFailed(Blackhole hole) throws IOException {
        okhttp(direct, one, hole);
    }

    @Benchmark
    public void okhttpProxySelector(Blackhole hole) throws IOException {
        okhttp(asking, none, hole);
    }

    @Benchmark
    public boolean okhttpPostponed() {
        return one.shouldPostpone(failed);
    }

    @Benchmark
    public boolean okhttpNotPostponed() {
        return one.shouldPostpone(fresh);
    }

    @Benchmark
    public void bywayTable(Blackhole hole) {
        plan(table, hole);
    }

    @Benchmark
    public void bywayTableFailed(Blackhole hole) {
        plan(tableFailed, hole);
    }

    @Benchmark
    public void bywayTableProxySelector(Blackhole hole) {
        plan(tableAsking, hole);
    }

    @Benchmark
    public void bywayLookup(Blackhole hole) {
        plan(looking, hole);
    }

    @Benchmark
    public void bywayLookupFailed(Blackhole hole) {
        plan(lookingFailed, hole);
    }

    @Benchmark
    public void bywayLookupProxySelector(Blackhole hole) {
        plan(lookingAsking, hole);
    }

    /** As {@code bywayTable}, with a socket address made of every route. */
    @Benchmark
    public void bywayTableAddresses(Blackhole hole) {
        List<io.byway.Route> routes = Selector.plan(table);
        for (int at = 0; at < routes.size(); at++) {
            hole.consume(routes.get(at).hopAddress());
        }
    }

    /** As {@code bywayTable}, with a selector that is asked for one selection after the other. */
    @Benchmark
    public void bywayTableSelector(Blackhole hole) {
        try (Selector selector = new Selector(table)) {
            for (Selection selection : selector) {
                for (int at = 0; at < selection.size(); at++) {
                    hole.consume(selection.get(at));
                }
            }
        }
    }

    @Benchmark
    public boolean bywayPostponed() {
        return failures.shouldPostpone(failedRoute);
    }

    @Benchmark
    public boolean bywayNotPostponed() {
        return failures.shouldPostpone(freshRoute);
    }
}
