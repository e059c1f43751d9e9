package io.byway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class SourceTest {
    private static final String SERVICE = "com.foo.Bar";
    private static final String KEY = SERVICE + "::.condition-router";
    private static final Duration AMPLE = Duration.ofMinutes(4);

    private Engine engine;
    private Chain chain;
    private final List<SourceEvent> events = new ArrayList<>();

    @BeforeEach
    void open() {
        engine = new Engine();
        chain = new Chain(engine, "consumer://10.20.1.9/" + SERVICE + "?interface=" + SERVICE + "&application=shop");
    }

    @AfterEach
    void close() {
        engine.close();
    }

    private static String providers(int... ports) {
        StringBuilder lines = new StringBuilder();
        for (int port : ports) {
            lines.append("tri://10.0.0.1:").append(port).append('/').append(SERVICE);
            lines.append("?interface=").append(SERVICE).append('\n');
        }
        return lines.toString();
    }

    private static String rule(int port) {
        return "scope: service\nforce: true\nconditions: ['method=hello => address=*:" + port + "']\n";
    }

    private List<String> hello() {
        List<String> addresses = new ArrayList<>();
        try (Invocation call = new Invocation("hello");
                Choice choice = chain.route(call);
                Invokers list = choice.invokers()) {
            for (long tag : choice.tags()) {
                addresses.add(list.url(list.rowOf(tag)).replaceAll("^tri://[^/]*:(\\d+)/.*", "$1"));
            }
        }
        return addresses;
    }

    /** Polls until an event has come. */
    private SourceEvent await(Predicate<SourceEvent> wanted) {
        while (true) {
            for (SourceEvent event : events) {
                if (wanted.test(event)) {
                    return event;
                }
            }
            engine.queue().poll(Duration.ofSeconds(30));
        }
    }

    @Test
    void aChainFollowsAMemorySource() {
        Source source = Source.memory(engine);
        source.put(SERVICE + "/providers", providers(20880, 20881));
        source.put(KEY, rule(20880));
        assertTrue(chain.bind(source, AMPLE, new Chain.BindOptions().onEvent(events::add)));
        assertEquals(List.of("20880"), hello());
        await(event -> event.kind() == SourceEvent.Kind.READY);
        assertEquals(rule(20880), source.get(KEY, Duration.ZERO));
        assertEquals(
                Status.E_NOT_FOUND,
                assertThrows(BywayException.class, () -> source.get("x::.condition-router", Duration.ZERO)).code());

        Map<String, String> changes = new LinkedHashMap<>();
        changes.put(SERVICE + "/providers", providers(20880, 20882));
        changes.put(KEY, rule(20882));
        source.apply(changes);
        assertEquals(List.of("20882"), hello());
        assertTrue(await(event -> event.kind() == SourceEvent.Kind.CHANGED).worlds() > 0);

        source.put(KEY, "conditions: [[[");
        assertEquals(List.of("20882"), hello(), "the last good one");
        SourceEvent refused = await(event -> event.kind() == SourceEvent.Kind.REFUSED);
        assertTrue(refused.subject().contains(KEY), refused.toString());
        assertNotNull(refused.error());
        assertEquals(refused.error().code(), refused.status());

        source.remove(KEY);
        assertEquals(List.of("20880", "20882"), hello());
        changes.clear();
        changes.put(KEY, null);
        changes.put(SERVICE + "/providers", providers(20881));
        source.apply(changes);
        assertEquals(List.of("20881"), hello());
        assertTrue(chain.bindStatus().contains("\"ready\":true"), chain.bindStatus());
        SourceStatus status = source.status();
        assertTrue(status.isConnected());
        assertTrue(status.keys() > 0 && status.generation() > 0, status.toString());
        assertNotNull(status.since());
        assertEquals(Status.E_ARGUMENT, assertThrows(BywayException.class, () -> source.put("", "")).code());

        chain.unbindKeepingList();
        source.put(SERVICE + "/providers", providers(1));
        assertEquals(List.of("20881"), hello());
        assertEquals(Status.E_STATE, assertThrows(BywayException.class, chain::bindStatus).code());
        assertTrue(chain.bind(source, AMPLE));
        assertEquals(List.of("1"), hello());
        chain.unbind();
        assertEquals(List.of(), hello());
    }

    @Test
    void rulesAloneMayBeFollowed() {
        Source source = Source.memory(engine);
        source.put(SERVICE + "/providers", providers(20880, 20881));
        source.put(KEY, rule(20880));
        chain.setInvokers(
                new Invokers(
                        engine,
                        List.of(providers(20880).trim(), providers(20889).trim()),
                        new long[] {5, 9},
                        new Invokers.Options().keepUrls(true)));
        assertTrue(
                chain.bind(
                        source,
                        AMPLE,
                        new Chain.BindOptions()
                                .rulesOnly(true)
                                .emptyProtection(EmptyProtection.ON)
                                .discovery(Discovery.INTERFACE)));
        try (Invocation call = new Invocation("hello")) {
            assertArrayEquals(new long[] {5}, chain.tags(call));
            source.put(KEY, rule(20889));
            assertArrayEquals(new long[] {9}, chain.tags(call));
        }
    }

    @Test
    void aChainFollowsFiles(@TempDir Path folder) throws IOException {
        Path list = folder.resolve(SERVICE + ".providers");
        Files.writeString(list, providers(20880, 20881));
        Source source = Source.file(engine, folder.toString());
        assertTrue(chain.bind(source, AMPLE, new Chain.BindOptions().onEvent(events::add)));
        assertEquals(List.of("20880", "20881"), hello());
        Path fresh = folder.resolve("fresh.tmp");
        Files.writeString(fresh, rule(20881));
        Files.move(fresh, folder.resolve(KEY));
        while (!hello().equals(List.of("20881"))) {
            engine.queue().poll(Duration.ofSeconds(1));
        }
        assertEquals(
                Status.E_UNSUPPORTED, assertThrows(BywayException.class, () -> source.put(KEY, rule(1))).code());
    }

    @Test
    void aZooKeeperThatIsNotThereIsWaitedFor() {
        Source source =
                Source.zooKeeper(
                        engine,
                        "127.0.0.1:1/chroot",
                        new Source.ZooKeeperOptions()
                                .credentials("me", "secret")
                                .sessionTimeout(Duration.ofSeconds(5))
                                .connectTimeout(Duration.ofMillis(200))
                                .retryLongest(Duration.ofSeconds(1)));
        assertFalse(source.status().isConnected());
        assertNull(source.status().since());
        assertNull(source.status().age());
        assertFalse(chain.bind(source, Duration.ZERO));
        while (source.status().lastError() == null) {
            engine.queue().poll(Duration.ofMillis(100));
        }
        assertFalse(source.status().lastError().toString().contains("secret"));
        assertTrue(source.status().errors() > 0);
        assertThrows(BywayException.Argument.class, () -> Source.zooKeeper(engine, "zk1:port"));
        source.close();
        assertThrows(BywayException.Handle.class, source::status);
    }

    @Test
    void aBindThatWaitsEndsWithItsEngine() throws Exception {
        // Accepts and says nothing.
        try (java.net.ServerSocket silent = new java.net.ServerSocket(0, 1, Ip.parse("127.0.0.1"))) {
            Source source = Source.zooKeeper(engine, "127.0.0.1:" + silent.getLocalPort());
            CompletableFuture<Boolean> bound =
                    CompletableFuture.supplyAsync(() -> chain.bind(source, Duration.ofMinutes(4)));
            silent.accept().close();
            assertFalse(bound.isDone());
            engine.close();
            Throwable ended =
                    assertThrows(Exception.class, () -> bound.get(120, TimeUnit.SECONDS)).getCause();
            assertEquals(BywayException.Shutdown.class, ended.getClass());
        }
    }
}
