package io.byway.adapters;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.byway.Address;
import io.byway.BywayException;
import io.byway.Compat;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.Failure;
import io.byway.Filter;
import io.byway.Phase;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import io.byway.Route;
import io.byway.Selection;
import io.byway.Selector;
import java.io.IOException;
import java.lang.reflect.Method;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import javax.net.SocketFactory;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.mockwebserver.MockResponse;
import okhttp3.mockwebserver.MockWebServer;
import okhttp3.tls.HandshakeCertificates;
import okhttp3.tls.HeldCertificate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A real OkHttp client over byway. Compiled and run with OkHttp 5 and with 4.12. */
@Timeout(300)
class OkHttpTest {
    /** Nobody listens there. */
    private static final int CLOSED = 1;

    /** Since OkHttp 5. */
    private static final Method FAST_FALLBACK = fastFallback();

    /** OkHttp 4 remembers and reports only what failed once it was connected. */
    private static final boolean REPORTS_CONNECT = FAST_FALLBACK != null;

    private final MockWebServer server = new MockWebServer();
    private Engine engine;

    @BeforeEach
    void open() throws IOException {
        engine = new Engine();
        server.start(InetAddress.getByName("127.0.0.1"), 0);
    }

    @AfterEach
    void close() throws IOException {
        server.shutdown();
        engine.close();
    }

    /** HTTP/1.1, where each answer of these tests ends its connection; patient, so that a busy machine does not fail it. */
    private static OkHttpClient.Builder client() {
        return sequential(
                new OkHttpClient.Builder()
                        .protocols(List.of(Protocol.HTTP_1_1))
                        .connectTimeout(1, TimeUnit.MINUTES)
                        .readTimeout(1, TimeUnit.MINUTES)
                        .writeTimeout(1, TimeUnit.MINUTES));
    }

    /** One attempt after the other, as before OkHttp 5. */
    private static OkHttpClient.Builder sequential(OkHttpClient.Builder builder) {
        if (FAST_FALLBACK != null) {
            try {
                FAST_FALLBACK.invoke(builder, false);
            } catch (ReflectiveOperationException broken) {
                throw new AssertionError(broken);
            }
        }
        return builder;
    }

    private static Method fastFallback() {
        try {
            return OkHttpClient.Builder.class.getMethod("fastFallback", boolean.class);
        } catch (NoSuchMethodException four) {
            return null;
        }
    }

    private String get(OkHttpClient client, String url) throws IOException {
        server.enqueue(new MockResponse().setBody("served").setHeader("Connection", "close"));
        try (Response response = client.newCall(new Request.Builder().url(url).build()).execute()) {
            return response.body().string();
        }
    }

    private Dns hosts(String... lines) {
        return Dns.hosts(engine, String.join("\n", lines));
    }

    @Test
    void namesAreByways() throws Exception {
        OkHttpClient client = client().dns(new BywayDns(engine, hosts("127.0.0.1 service.example"))).build();
        assertEquals("served", get(client, "http://service.example:" + server.getPort() + "/"));
        UnknownHostException unknown =
                assertThrows(UnknownHostException.class, () -> get(client, "http://other.example/"));
        assertTrue(unknown.getMessage().contains("other.example"), unknown.getMessage());
        assertInstanceOf(BywayException.class, unknown.getCause());
    }

    @Test
    void theAddressFilterJudgesNamesAndLiterals() throws Exception {
        try (Engine guarded = new Engine(new Engine.Options().targetFilter(Filter.publicOnly()))) {
            BywayDns dns = new BywayDns(guarded, Dns.hosts(guarded, "127.0.0.1 inside.example\n8.8.8.8 outside.example"));
            assertEquals(List.of(InetAddress.getByName("8.8.8.8")), dns.lookup("outside.example"));
            assertThrows(UnknownHostException.class, () -> dns.lookup("inside.example"));
            assertThrows(UnknownHostException.class, () -> dns.lookup("127.0.0.1"));
        }
    }

    @Test
    void plainAndTunnelledRequestsGoThroughTheProxy() throws Exception {
        HeldCertificate certificate = new HeldCertificate.Builder().addSubjectAlternativeName("secret.example").build();
        HandshakeCertificates ours = new HandshakeCertificates.Builder().heldCertificate(certificate).build();
        HandshakeCertificates theirs =
                new HandshakeCertificates.Builder().addTrustedCertificate(certificate.certificate()).build();
        try (LocalProxy proxy = new LocalProxy(name -> "127.0.0.1");
                MockWebServer secret = new MockWebServer()) {
            secret.useHttps(ours.sslSocketFactory(), false);
            secret.start(InetAddress.getByName("127.0.0.1"), 0);
            String at = "http://proxy.example:" + proxy.port();
            ProxySelector chooser =
                    ProxySelector.environment(
                            engine,
                            Map.of("http_proxy", at, "https_proxy", at, "no_proxy", "direct.example"));
            OkHttpClient client =
                    client()
                            .dns(new BywayDns(engine, hosts("127.0.0.1 proxy.example", "127.0.0.1 direct.example")))
                            .proxySelector(new BywayProxySelector(engine, chooser))
                            .sslSocketFactory(theirs.sslSocketFactory(), theirs.trustManager())
                            .build();
            assertEquals("served", get(client, "http://plain.example:" + server.getPort() + "/a"));
            assertEquals("served", get(client, "http://direct.example:" + server.getPort() + "/b"));
            secret.enqueue(new MockResponse().setBody("whispered").setHeader("Connection", "close"));
            String url = "https://secret.example:" + secret.getPort() + "/c";
            try (Response response = client.newCall(new Request.Builder().url(url).build()).execute()) {
                assertEquals("whispered", response.body().string());
            }
            assertEquals(
                    List.of(
                            "GET http://plain.example:" + server.getPort() + "/a HTTP/1.1",
                            "CONNECT secret.example:" + secret.getPort() + " HTTP/1.1"),
                    proxy.asked());
        }
    }

    @Test
    void aBrokenSelectorIsNotDirect() {
        ProxySelector broken =
                new ProxySelector(
                        engine,
                        uri -> {
                            throw new IllegalStateException("no configuration");
                        });
        OkHttpClient client = client().proxySelector(new BywayProxySelector(engine, broken)).build();
        BywayException seen = assertThrows(BywayException.class, () -> get(client, server.url("/").toString()));
        assertEquals("no configuration", seen.getCause().getMessage());
        assertEquals(0, server.getRequestCount());
    }

    @Test
    void aProxyOverTlsIsNotTakenForAnother() {
        ProxySelector chooser =
                ProxySelector.fixed(engine, List.of(new Proxy(ProxyKind.HTTPS, "proxy.example", 3129)));
        BywayProxySelector selector = new BywayProxySelector(engine, chooser);
        UnsupportedOperationException refused =
                assertThrows(UnsupportedOperationException.class, () -> selector.select(URI.create("http://a.example/")));
        assertTrue(refused.getMessage().contains("proxy.example"), refused.getMessage());
    }

    @Test
    void aHostThatJavaDislikesHasItsProxyToo() {
        ProxySelector chooser =
                ProxySelector.fixed(engine, List.of(new Proxy(ProxyKind.HTTP, "proxy.example", 3128)));
        List<java.net.Proxy> chosen = new BywayProxySelector(engine, chooser).select(URI.create("http://host_a/"));
        assertEquals(
                List.of(
                        new java.net.Proxy(
                                java.net.Proxy.Type.HTTP, InetSocketAddress.createUnresolved("proxy.example", 3128))),
                chosen);
    }

    @Test
    void aProxyThatOkHttpReportsGoesBehindTheOthers() throws Exception {
        try (LocalProxy proxy = new LocalProxy(name -> "127.0.0.1")) {
            ProxySelector chooser =
                    ProxySelector.fixed(
                            engine,
                            List.of(
                                    new Proxy(ProxyKind.HTTP, "127.0.0.9", CLOSED),
                                    new Proxy(ProxyKind.HTTP, "127.0.0.1", proxy.port())));
            BywayProxySelector selector = new BywayProxySelector(engine, chooser);
            OkHttpClient client = client().proxySelector(selector).build();
            assertEquals("served", get(client, "http://a.example:" + server.getPort() + "/"));
            List<java.net.Proxy> later = selector.select(URI.create("http://b.example/"));
            if (REPORTS_CONNECT) {
                assertEquals(proxy.port(), ((InetSocketAddress) later.get(0).address()).getPort());
                assertEquals(CLOSED, ((InetSocketAddress) later.get(1).address()).getPort());
            }
            engine.networkChanged();
            later = selector.select(URI.create("http://b.example/"));
            assertEquals(CLOSED, ((InetSocketAddress) later.get(0).address()).getPort());
        }
    }

    /** Sockets that fail to connect to all but one port. */
    private static SocketFactory unreachable(Supplier<IOException> why, int port) {
        return new SocketFactory() {
            @Override
            public Socket createSocket() {
                return new Socket() {
                    @Override
                    public void connect(SocketAddress address, int timeout) throws IOException {
                        if (((InetSocketAddress) address).getPort() != port) {
                            throw why.get();
                        }
                        super.connect(address, timeout);
                    }
                };
            }

            @Override
            public Socket createSocket(String host, int port) {
                throw new UnsupportedOperationException();
            }

            @Override
            public Socket createSocket(String host, int port, InetAddress local, int localPort) {
                throw new UnsupportedOperationException();
            }

            @Override
            public Socket createSocket(InetAddress host, int port) {
                throw new UnsupportedOperationException();
            }

            @Override
            public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) {
                throw new UnsupportedOperationException();
            }
        };
    }

    /** Ports of the proxies as they are tried, 0 for DIRECT. */
    private static List<Integer> order(BywayProxySelector selector, String url) {
        List<Integer> ports = new ArrayList<>();
        for (java.net.Proxy proxy : selector.select(URI.create(url))) {
            ports.add(proxy.address() == null ? 0 : ((InetSocketAddress) proxy.address()).getPort());
        }
        return ports;
    }

    @Test
    void beingOfflineMarksNoProxy() {
        List<Proxy> proxies = new ArrayList<>();
        proxies.add(new Proxy(ProxyKind.HTTP, "127.0.0.9", 3128));
        proxies.add(new Proxy(ProxyKind.HTTP, "127.0.0.9", 3129));
        proxies.add(null);
        ProxySelector chooser = ProxySelector.fixed(engine, proxies);
        String url = "http://127.0.0.9:8080/";
        for (Supplier<IOException> why :
                List.<Supplier<IOException>>of(
                        () -> new ConnectException("Network is unreachable"),
                        () -> new NoRouteToHostException("No route to host"),
                        () -> new SocketTimeoutException("Connect timed out"))) {
            AtomicLong now = new AtomicLong();
            BywayProxySelector selector = new BywayProxySelector(engine, chooser, now::get);
            OkHttpClient client = client().proxySelector(selector).socketFactory(unreachable(why, 0)).build();
            for (int call = 0; call < 3; call++) {
                assertThrows(IOException.class, () -> get(client, url));
                assertEquals(List.of(3128, 3129, 0), order(selector, url));
                now.addAndGet(TimeUnit.MINUTES.toNanos(5));
                assertEquals(List.of(3128, 3129, 0), order(selector, url));
            }
            assertEquals("[]", engine.badProxies());
        }
    }

    @Test
    void aSilentProxyGoesBehindTheOneThatServesOnceThatHadItsTime() throws Exception {
        try (LocalProxy proxy = new LocalProxy(name -> "127.0.0.1")) {
            ProxySelector chooser =
                    ProxySelector.fixed(
                            engine,
                            List.of(
                                    new Proxy(ProxyKind.HTTP, "127.0.0.9", CLOSED),
                                    new Proxy(ProxyKind.HTTP, "127.0.0.1", proxy.port())));
            AtomicLong now = new AtomicLong();
            BywayProxySelector selector = new BywayProxySelector(engine, chooser, now::get);
            Supplier<IOException> silence =
                    () -> {
                        now.addAndGet(TimeUnit.SECONDS.toNanos(10));
                        return new SocketTimeoutException("Connect timed out");
                    };
            OkHttpClient client =
                    client().proxySelector(selector).socketFactory(unreachable(silence, proxy.port())).build();
            String url = "http://a.example:" + server.getPort() + "/";
            assertEquals("served", get(client, url));
            now.addAndGet(TimeUnit.SECONDS.toNanos(10));
            assertEquals(List.of(CLOSED, proxy.port()), order(selector, url), "the other one may still be waited for");
            now.addAndGet(TimeUnit.SECONDS.toNanos(2));
            if (REPORTS_CONNECT) {
                assertEquals(List.of(proxy.port(), CLOSED), order(selector, url));
                assertTrue(engine.badProxies().contains("\"failure\":\"timeout\""), engine.badProxies());
            }
        }
    }

    @Test
    void whatFailsBehindAProxyIsNotItsFault() {
        Map<IOException, ProxyTrials.Verdict> verdicts = new java.util.LinkedHashMap<>();
        verdicts.put(new ConnectException("Connection refused"), ProxyTrials.Verdict.CONDEMNED);
        verdicts.put(new java.net.SocketException("Connection reset"), ProxyTrials.Verdict.CONDEMNED);
        verdicts.put(new java.net.SocketException("Malformed reply from SOCKS server"), ProxyTrials.Verdict.CONDEMNED);
        verdicts.put(new java.net.ProtocolException("Unexpected status line: SSH-2.0"), ProxyTrials.Verdict.CONDEMNED);
        verdicts.put(new java.net.SocketException("SOCKS: Connection refused"), ProxyTrials.Verdict.THERE);
        verdicts.put(new javax.net.ssl.SSLHandshakeException("no"), ProxyTrials.Verdict.THERE);
        verdicts.put(new IOException("Unexpected response code for CONNECT: 403"), ProxyTrials.Verdict.THERE);
        verdicts.put(new java.net.BindException("Cannot assign requested address"), ProxyTrials.Verdict.NOTHING);
        verdicts.put(new java.net.SocketException("Too many open files"), ProxyTrials.Verdict.NOTHING);
        verdicts.put(new java.net.SocketException("Socket closed"), ProxyTrials.Verdict.NOTHING);
        verdicts.put(new IOException("Canceled"), ProxyTrials.Verdict.NOTHING);
        verdicts.forEach((why, verdict) -> assertEquals(verdict, ProxyTrials.verdict(why), why.toString()));
    }

    @Test
    void whatAnAdaptedResolverThrowsIsTheCause() {
        UnknownHostException thrown = new UnknownHostException("not today");
        Dns dns =
                BywayDns.adapt(
                        engine,
                        host -> {
                            throw thrown;
                        });
        try (Selector selector =
                new Selector(new Address(engine, new Address.Options("a.example", 443).dns(dns)))) {
            Throwable seen = assertThrows(BywayException.class, selector::next);
            while (seen.getCause() != null) {
                seen = seen.getCause();
            }
            assertEquals(thrown, seen);
        }
    }

    /** What one client is told and connects to. */
    private static final class Attempts extends EventListener {
        private final List<String> seen = new CopyOnWriteArrayList<>();

        @Override
        public void connectStart(Call call, InetSocketAddress address, java.net.Proxy proxy) {
            seen.add(line(proxy.type().name(), proxy.address(), address));
        }
    }

    private static String line(String kind, SocketAddress proxy, InetSocketAddress to) {
        String at = proxy == null ? "" : plain((InetSocketAddress) proxy);
        return kind + " " + at + " -> " + plain(to);
    }

    private static String plain(InetSocketAddress address) {
        return address.isUnresolved()
                ? address.getHostString() + ":" + address.getPort()
                : address.getAddress().getHostAddress() + ":" + address.getPort();
    }

    private static final class Told extends java.net.ProxySelector {
        private final List<java.net.Proxy> proxies;
        private final List<String> failures = new CopyOnWriteArrayList<>();

        Told(List<java.net.Proxy> proxies) {
            this.proxies = proxies;
        }

        @Override
        public List<java.net.Proxy> select(URI uri) {
            return proxies;
        }

        @Override
        public void connectFailed(URI uri, SocketAddress address, IOException failure) {
            failures.add(uri + " " + plain((InetSocketAddress) address));
        }
    }

    /**
     * Random lists of proxies and addresses, some dead: OkHttp by itself, OkHttp with the same lists through byway, and
     * byway's selector alone try the same routes in the same order, call after call, and tell the same failures.
     */
    @Test
    void theOrderIsOkHttps() throws Exception {
        Random random = new Random(20261130);
        for (int round = 0; round < 60; round++) {
            boolean alive = random.nextInt(4) > 0;
            List<InetAddress> addresses = new ArrayList<>();
            for (int i = random.nextInt(4); i >= 0; i--) {
                addresses.add(InetAddress.getByName("127.0.1." + (1 + i)));
            }
            if (alive) {
                addresses.add(random.nextInt(addresses.size() + 1), InetAddress.getByName("127.0.0.1"));
            }
            List<java.net.Proxy> proxies = new ArrayList<>();
            for (int i = random.nextInt(3); i > 0; i--) {
                java.net.Proxy.Type type = random.nextBoolean() ? java.net.Proxy.Type.HTTP : java.net.Proxy.Type.SOCKS;
                proxies.add(new java.net.Proxy(type, new InetSocketAddress("127.0.2." + i, CLOSED)));
            }
            proxies.add(random.nextInt(proxies.size() + 1), java.net.Proxy.NO_PROXY);
            compare(round + ": " + proxies + " " + addresses, addresses, proxies, alive);
        }
    }

    private void compare(String what, List<InetAddress> addresses, List<java.net.Proxy> proxies, boolean alive) {
        String url = "http://a.example:" + server.getPort() + "/";
        Told own = new Told(proxies);
        Attempts plain = new Attempts();
        OkHttpClient alone = client().dns(host -> addresses).proxySelector(own).eventListener(plain).build();
        try (Engine engine = new Engine(new Engine.Options().compat(Compat.OKHTTP_5).fastFallback(false));
                Engine third = new Engine(new Engine.Options().compat(Compat.OKHTTP_5).fastFallback(false))) {
            Attempts through = new Attempts();
            OkHttpClient over =
                    client()
                            .dns(new BywayDns(engine, BywayDns.adapt(engine, host -> addresses)))
                            .proxySelector(
                                    new BywayProxySelector(engine, BywayProxySelector.adapt(engine, new Told(proxies))))
                            .eventListener(through)
                            .build();
            Told told = new Told(proxies);
            Address address =
                    new Address(
                            third,
                            new Address.Options("a.example", server.getPort())
                                    .dns(BywayDns.adapt(third, host -> addresses))
                                    .proxySelector(BywayProxySelector.adapt(third, told)));
            List<String> selected = new ArrayList<>();
            for (int call = 0; call < 3; call++) {
                assertEquals(alive, works(alone, url), what);
                assertEquals(alive, works(over, url), what);
                assertEquals(alive, walk(third, address, selected), what);
                assertEquals(plain.seen, through.seen, () -> "OkHttp over byway: " + what);
                assertEquals(plain.seen, selected, () -> "byway alone: " + what);
                assertEquals(own.failures, told.failures, () -> "failures told: " + what);
            }
        }
    }

    private boolean works(OkHttpClient client, String url) {
        try {
            return get(client, url).equals("served");
        } catch (IOException refused) {
            return false;
        }
    }

    /** Goes through the routes as OkHttp does, with 127.0.0.1 the only host that is there. */
    private static boolean walk(Engine engine, Address address, List<String> seen) {
        try (Selector selector = new Selector(address)) {
            for (Selection selection : selector) {
                for (Route route : selection) {
                    Proxy proxy = route.proxy();
                    String kind =
                            proxy == null ? "DIRECT" : proxy.kind() == ProxyKind.HTTP ? "HTTP" : "SOCKS";
                    SocketAddress at = proxy == null ? null : new InetSocketAddress(proxy.host(), proxy.port());
                    seen.add(line(kind, at, route.socketAddress()));
                    if (route.hop() != null && route.hop().getHostAddress().equals("127.0.0.1")) {
                        engine.connected(route);
                        return true;
                    }
                    if (REPORTS_CONNECT) {
                        engine.connectFailed(route, Failure.REFUSED, Phase.TCP, 111);
                    }
                }
            }
        }
        return false;
    }
}
