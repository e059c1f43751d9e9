package io.byway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class RoutesTest {
    private Engine engine;

    @BeforeEach
    void open() {
        engine = new Engine();
    }

    @AfterEach
    void close() {
        engine.close();
    }

    static List<InetAddress> ips(String... texts) {
        List<InetAddress> addresses = new ArrayList<>();
        for (String text : texts) {
            addresses.add(Ip.parse(text));
        }
        return addresses;
    }

    static List<Route> all(Address address) {
        List<Route> routes = new ArrayList<>();
        try (Selector selector = new Selector(address)) {
            for (Selection selection : selector) {
                routes.addAll(selection.routes());
            }
        }
        return routes;
    }

    private Address address(Dns dns) {
        return new Address(engine, new Address.Options("a.example", 443).tls(true).dns(dns));
    }

    @Test
    void routesFollowTheLookupInOrder() {
        Dns dns = new Dns(engine, host -> ips("192.0.2.1", "2001:db8::1", "192.0.2.2"));
        List<Route> routes = all(address(dns));
        assertEquals(3, routes.size());
        assertEquals(Ip.parse("2001:db8::1"), routes.get(0).hop());
        assertEquals(Ip.parse("192.0.2.1"), routes.get(1).hop());
        assertEquals("a.example", routes.get(0).host());
        assertEquals("a.example", routes.get(1).hop().getHostName());
        assertEquals(443, routes.get(1).hopPort());
        assertEquals(443, routes.get(1).targetPort());
        assertEquals(ProxyKind.DIRECT, routes.get(1).proxyKind());
        assertEquals("", routes.get(1).proxyHost());
        assertNull(routes.get(1).proxy());
        assertNull(routes.get(1).service());
        assertTrue(routes.get(1).toString().contains("192.0.2.1"), routes.get(1).toString());
    }

    @Test
    void metadataOfNamesRidesOnTheRoutes() {
        List<InetAddress> hints = ips("192.0.2.5", "2001:db8::5");
        Service given = new Service().port(8443).alpn(List.of("h3", "h2")).ech(new byte[] {0, 1}).hints(hints);
        Dns dns = Dns.answering(engine, request -> request.addService(given).add(ips("192.0.2.1").get(0)));
        Service service = all(address(dns)).get(0).service();
        assertEquals(8443, service.port());
        assertEquals(List.of("h3", "h2"), service.alpn());
        assertEquals(2, service.ech().length);
        assertEquals(hints, service.hints());
    }

    @Test
    void aFailedRouteGoesBehindTheOthersUntilItIsConnected() {
        Address address = address(Dns.hosts(engine, "192.0.2.1 a.example\n192.0.2.2 a.example\n"));
        List<Route> routes = all(address);
        engine.connectFailed(routes.get(0), Failure.REFUSED, Phase.TCP, 111);
        assertTrue(engine.shouldPostpone(routes.get(0)));
        assertEquals(1, engine.stats().postponed());
        FailedRoute failed = engine.databaseSnapshot().get(0);
        assertEquals(Failure.REFUSED, failed.failure());
        assertEquals(111, failed.osErrno());
        assertEquals(443, failed.hopPort());
        List<Route> after = all(address);
        assertEquals(routes.get(1), after.get(0));
        assertEquals(routes.get(1).hashCode(), after.get(0).hashCode());
        assertNotEquals(routes.get(0), after.get(0));
        assertTrue(after.get(1).isPostponed());
        String json = engine.databaseExport();
        try (Engine other = new Engine()) {
            assertEquals(1, other.databaseImport(json));
        }
        engine.connected(routes.get(0));
        assertFalse(engine.shouldPostpone(routes.get(0)));
        assertFalse(all(address).get(0).isPostponed());
    }

    @Test
    void routesOutliveTheirSelectionSelectorAndAddress() {
        Address address = address(Dns.hosts(engine, "192.0.2.1 a.example\n"));
        Selector selector = new Selector(address);
        Selection selection = selector.next();
        Route route = selection.get(0);
        selection.close();
        selector.close();
        address.close();
        assertEquals(Ip.parse("192.0.2.1"), route.hop());
        engine.connectFailed(route, Failure.IO);
        assertTrue(engine.shouldPostpone(route));
    }

    @Test
    void proxiesComeFromEveryKindOfSelector() {
        Proxy proxy = new Proxy(ProxyKind.SOCKS5H, "192.0.2.9", 1080).withCredentials("user", "secret");
        assertFalse(proxy.toString().contains("secret"), proxy.toString());
        Dns dns = Dns.hosts(engine, "192.0.2.1 a.example\n192.0.2.9 p.example\n");
        Map<String, ProxySelector> selectors =
                Map.of(
                        "fixed", ProxySelector.fixed(engine, List.of(proxy)),
                        "function", new ProxySelector(engine, uri -> List.of(proxy)),
                        "environment", ProxySelector.environment(engine, Map.of("https_proxy", "http://p.example:3128")),
                        "properties", ProxySelector.properties(engine, properties(), false),
                        "direct", ProxySelector.direct(engine));
        Map<String, String> expected =
                Map.of(
                        "fixed", "SOCKS5H 192.0.2.9 1080",
                        "function", "SOCKS5H 192.0.2.9 1080",
                        "environment", "HTTP p.example 3128",
                        "properties", "HTTP p.example 8080",
                        "direct", "DIRECT  443");
        selectors.forEach(
                (name, selector) -> {
                    Address address =
                            new Address(
                                    engine,
                                    new Address.Options("a.example", 443)
                                            .tls(true)
                                            .dns(dns)
                                            .proxySelector(selector));
                    Route route = all(address).get(0);
                    assertEquals(
                            expected.get(name),
                            route.proxyKind() + " " + route.proxyHost() + " " + route.hopPort(),
                            name);
                });
        Address through =
                new Address(engine, new Address.Options("b.example", 80).proxySelector(selectors.get("function")));
        Route route = all(through).get(0);
        assertEquals(proxy, route.proxy());
        assertNull(route.target());
        assertEquals("b.example", route.socketAddress().getHostString());
        assertTrue(route.socketAddress().isUnresolved());
    }

    private static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("https.proxyHost", "p.example");
        properties.setProperty("https.proxyPort", "8080");
        return properties;
    }

    @Test
    void aScriptChoosesProxies() {
        if (!Library.hasFeature("script")) {
            assertThrows(
                    BywayException.Unsupported.class, () -> ProxySelector.script(engine, "proxy.pac", "whatever"));
            return;
        }
        ProxySelector selector =
                ProxySelector.script(
                        engine, "proxy.pac", "function FindProxyForURL(url, host) { return 'PROXY 192.0.2.7:3128'; }");
        Address address = new Address(engine, new Address.Options("a.example", 443).tls(true).proxySelector(selector));
        assertEquals("192.0.2.7", all(address).get(0).proxyHost());
    }

    @Test
    void aProxySelectorHearsOfFailures() {
        List<String> told = new ArrayList<>();
        ProxySelector selector =
                new ProxySelector(
                        engine,
                        new ProxySelector.Choice() {
                            @Override
                            public List<Proxy> select(String uri) {
                                return List.of(new Proxy(ProxyKind.HTTP, "192.0.2.7", 3128));
                            }

                            @Override
                            public void connectFailed(String uri, Route route, Failure failure, int osErrno) {
                                told.add(uri + " " + route.hopPort() + " " + failure + " " + osErrno);
                            }
                        });
        Address address = new Address(engine, new Address.Options("a.example", 80).proxySelector(selector));
        engine.connectFailed(all(address).get(0), Failure.REFUSED, Phase.TCP, 111);
        assertEquals(List.of("http://a.example/ 3128 REFUSED 111"), told);
    }

    @Test
    void whatACallbackThrowsIsTheCauseOfWhatTheCallerSees() {
        IllegalStateException mine = new IllegalStateException("no such zone");
        Dns dns =
                new Dns(
                        engine,
                        host -> {
                            throw mine;
                        });
        BywayException error = assertThrows(BywayException.class, () -> new Selector(address(dns)).next());
        assertSame(mine, error.getCause());
        ProxySelector selector =
                new ProxySelector(
                        engine,
                        uri -> {
                            throw new StackOverflowError("deep");
                        });
        Address address = new Address(engine, new Address.Options("a.example", 80).proxySelector(selector));
        error = assertThrows(BywayException.Proxy.class, () -> new Selector(address).next());
        assertEquals("deep", error.getCause().getMessage());
    }

    @Test
    void whatTheFilterRefusesIsAnErrorOfItsOwn() {
        try (Engine guarded = new Engine(new Engine.Options().targetFilter(Filter.publicOnly()))) {
            Address inside = new Address(guarded, new Address.Options("127.0.0.1", 80));
            assertThrows(BywayException.Filtered.class, () -> new Selector(inside).next());
        }
    }

    @Test
    void errorsHaveTheirFields() {
        BywayException error =
                assertThrows(BywayException.class, () -> Dns.hosts(engine, "192.0.2.1 a.example\nnonsense b.example\n"));
        assertEquals(2, error.line());
        assertTrue(error.column() >= 1);
        assertTrue(error.offset() >= 20, error.toString());
        assertEquals(2, error.source());
        error = assertThrows(BywayException.Argument.class, () -> new Address(engine, new Address.Options("a b", 80)));
        assertEquals("BYWAY_E_INVALID_HOST", error.name());
        assertThrows(BywayException.Argument.class, () -> new Address(engine, new Address.Options("\ud800", 80)));
        assertThrows(BywayException.Argument.class, () -> new Address(engine, new Address.Options("a.example", 0)));
    }

    @Test
    void closedObjectsSaySo() {
        Filter filter = new Filter("deny 10.0.0.0/8\n");
        assertFalse(filter.allows(Ip.parse("10.1.2.3")));
        assertTrue(filter.allows(Ip.parse("192.0.2.1")));
        filter.close();
        filter.close();
        assertTrue(filter.isClosed());
        assertThrows(BywayException.Handle.class, () -> filter.allows(Ip.parse("10.1.2.3")));
        assertFalse(Filter.publicOnly().allows(Ip.parse("127.0.0.1")));
    }

    @Test
    void anAsynchronousWaitEndsWithTheEnginesDefaultTime() {
        ExecutorService driver = Executors.newSingleThreadExecutor();
        List<DnsRequest> asked = new ArrayList<>();
        try (Engine impatient = new Engine(new Engine.Options().defaultTimeout(Duration.ofMillis(1)))) {
            impatient.queue().drive(driver);
            Dns silent =
                    Dns.answering(
                            impatient,
                            request -> {
                                request.later();
                                asked.add(request);
                            });
            Selector selector =
                    new Selector(new Address(impatient, new Address.Options("a.example", 443).dns(silent)));
            ExecutionException failed =
                    assertThrows(
                            ExecutionException.class, () -> selector.nextAsync().get(120, TimeUnit.SECONDS));
            assertEquals(Status.E_TIMEOUT, ((BywayException) failed.getCause()).code());
            assertEquals(1, asked.size());
        } finally {
            driver.shutdownNow();
        }
    }

    @Test
    void anAnswerMayComeLaterFromAnyThread() throws Exception {
        ExecutorService answers = Executors.newSingleThreadExecutor();
        CompletableFuture<DnsRequest> again = new CompletableFuture<>();
        Dns dns =
                Dns.answering(
                        engine,
                        request -> {
                            request.later();
                            answers.execute(
                                    () -> {
                                        request.add(ips("192.0.2.1")).finish();
                                        again.complete(request);
                                    });
                        });
        assertEquals(1, all(address(dns)).size());
        DnsRequest answered = again.get(120, TimeUnit.SECONDS);
        BywayException second = assertThrows(BywayException.Handle.class, answered::finish);
        assertEquals("the request has its answer already", second.reason());
        // The same while the callback has not returned yet: the answer comes from elsewhere before it does.
        CompletableFuture<BywayException> early = new CompletableFuture<>();
        Dns slow =
                Dns.answering(
                        engine,
                        request -> {
                            request.later();
                            CompletableFuture.runAsync(() -> request.add(ips("192.0.2.1")).finish(), answers).join();
                            early.complete(assertThrows(BywayException.Handle.class, request::finish));
                            assertFalse(request.isCanceled());
                        });
        assertEquals(1, all(address(slow)).size());
        assertEquals("the request has its answer already", early.get(40, TimeUnit.SECONDS).reason());
        Dns failing =
                Dns.answering(
                        engine,
                        request -> {
                            request.later();
                            answers.execute(() -> request.fail(new java.net.UnknownHostException(request.host())));
                        });
        BywayException error = assertThrows(BywayException.class, () -> all(address(failing)));
        assertEquals(java.net.UnknownHostException.class, error.getCause().getClass());
        answers.shutdown();
        assertTrue(answers.awaitTermination(40, TimeUnit.SECONDS));
    }

    @Test
    void aDrivenQueueCompletesFutures() throws Exception {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        engine.queue().drive(executor);
        CompletableFuture<DnsRequest> first = new CompletableFuture<>();
        Dns dns =
                Dns.answering(
                        engine,
                        request -> {
                            request.later();
                            first.complete(request);
                        });
        Selector selector = new Selector(address(dns));
        CompletableFuture<Selection> selection = selector.nextAsync();
        DnsRequest request = first.get(120, TimeUnit.SECONDS);
        assertFalse(selection.isDone());
        request.add(ips("192.0.2.1")).finish();
        assertEquals(1, selection.get(120, TimeUnit.SECONDS).size());
        assertNull(selector.nextAsync().get(120, TimeUnit.SECONDS));
        executor.shutdown();
    }

    @Test
    void cancelEndsAWaitOnAnotherThread() throws Exception {
        CompletableFuture<DnsRequest> asked = new CompletableFuture<>();
        CompletableFuture<Long> canceled = new CompletableFuture<>();
        Dns dns =
                Dns.answering(
                        engine,
                        new Dns.Answerer() {
                            @Override
                            public void answer(DnsRequest request) {
                                request.later();
                                asked.complete(request);
                            }

                            @Override
                            public void canceled(long id) {
                                canceled.complete(id);
                            }
                        });
        Selector selector = new Selector(address(dns));
        CompletableFuture<Throwable> ended = new CompletableFuture<>();
        Thread waiting =
                new Thread(
                        () -> {
                            try {
                                selector.next(Duration.ofMinutes(4));
                                ended.complete(null);
                            } catch (Throwable thrown) {
                                ended.complete(thrown);
                            }
                        });
        waiting.start();
        DnsRequest request = asked.get(120, TimeUnit.SECONDS);
        long id = request.id();
        selector.close();
        assertEquals(BywayException.Canceled.class, ended.get(120, TimeUnit.SECONDS).getClass());
        assertEquals(id, canceled.get(120, TimeUnit.SECONDS));
        assertTrue(request.isCanceled());
        assertThrows(BywayException.Canceled.class, request::finish);
        waiting.join();
    }

    @Test
    void listenersAreToldOfTheKindsTheyWant() {
        List<Event> events = new ArrayList<>();
        Listener listener = engine.addListener(List.of(Event.Kind.DNS_START, Event.Kind.DNS_END), events::add);
        Address address = address(new Dns(engine, host -> ips("192.0.2.1")));
        all(address);
        assertEquals(2, events.size());
        assertEquals(Event.Kind.DNS_START, events.get(0).kind());
        assertEquals("a.example", events.get(0).subject());
        assertEquals(ips("192.0.2.1"), events.get(1).addresses());
        listener.close();
        all(address);
        assertEquals(2, events.size());
    }

    @Test
    void aPlanIsReadInOneCrossing() {
        Address address = address(Dns.hosts(engine, "192.0.2.1 a.example\n192.0.2.2 a.example\n"));
        List<Route> plan = Selector.plan(address);
        assertEquals(2, plan.size());
        assertEquals(Ip.parse("192.0.2.2"), plan.get(1).hop());
        BywayException error = assertThrows(BywayException.class, () -> engine.connected(plan.get(0)));
        assertEquals(Status.E_STATE, error.code());
    }

    @Test
    void twelveThousandRoutesComeInThreeSelections() {
        List<InetAddress> many = new ArrayList<>();
        for (int i = 0; i < 4_000; i++) {
            many.add(Ip.parse("10.0." + (i >> 8 & 255) + "." + (i & 255)));
        }
        Dns dns = new Dns(engine, host -> many);
        List<Proxy> proxies = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            proxies.add(new Proxy(ProxyKind.HTTP, "p" + i + ".example", 3128));
        }
        Address address =
                new Address(
                        engine,
                        new Address.Options("a.example", 443)
                                .tls(true)
                                .dns(dns)
                                .proxySelector(ProxySelector.fixed(engine, proxies)));
        try (Selector selector = new Selector(address)) {
            int number = 0;
            for (Selection selection : selector) {
                assertEquals(4_000, selection.size());
                for (Route route : selection) {
                    assertEquals(many.get(number % 4_000), route.hop());
                    assertEquals("p" + number / 4_000 + ".example", route.proxyHost());
                    number++;
                }
            }
            assertEquals(12_000, number);
        }
        assertEquals(12_000, Selector.plan(address).size());
    }

    @Test
    void shutdownEndsCallbacksForGood() {
        Dns dns = new Dns(engine, host -> ips("192.0.2.1"));
        Address address = address(dns);
        assertTrue(engine.shutdown(Duration.ofSeconds(10)));
        assertThrows(BywayException.Shutdown.class, () -> new Selector(address).next());
    }

    @Test
    void hostsAndAddressesAreAskedAboutAsTheEngineSeesThem() {
        assertEquals("xn--bcher-kva.example", Host.canonical("B\u00fccher.example", Compat.BYWAY));
        assertTrue(Host.isLiteral("[2001:db8::1]", Compat.BYWAY));
        assertEquals("2001:db8::1", Ip.text(Ip.parse("2001:DB8:0::1")));
        assertEquals(
                ips("2001:db8::1", "192.0.2.1", "192.0.2.2"),
                Ip.order(ips("192.0.2.1", "192.0.2.2", "2001:db8::1"), FirstFamily.V6, 1));
        assertEquals(Recovery.RETRY, engine.recover(new FailedCall(Failure.REFUSED, Phase.TCP).retryEnabled(true).moreRoutes(true)));
        assertEquals(Failure.REFUSED, Failure.fromErrno(111));
    }
}
