package io.byway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class DialTest {
    private static final InetAddress LOOPBACK = Ip.parse("127.0.0.1");
    private Engine engine;
    private ServerSocket server;
    private ExecutorService threads;
    private final List<Socket> kept = new ArrayList<>();

    @BeforeEach
    void open() throws IOException {
        engine = new Engine();
        server = new ServerSocket(0, 16, LOOPBACK);
        threads = Executors.newCachedThreadPool();
    }

    @AfterEach
    void close() throws IOException {
        engine.close();
        server.close();
        for (Socket bound : kept) {
            bound.close();
        }
        threads.shutdownNow();
    }

    /** Accepts one connection and answers the first line with {@code hello LINE}. */
    private CompletableFuture<String> serve() {
        CompletableFuture<String> line = new CompletableFuture<>();
        threads.execute(
                () -> {
                    try (Socket socket = server.accept()) {
                        String said = line(socket.getInputStream());
                        socket.getOutputStream().write(("hello " + said + "\n").getBytes(StandardCharsets.UTF_8));
                        line.complete(said);
                    } catch (IOException error) {
                        line.completeExceptionally(error);
                    }
                });
        return line;
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next >= 0 && next != '\n'; next = in.read()) {
            line.append((char) next);
        }
        return line.toString().trim();
    }

    private Address local(int port) {
        return new Address(engine, new Address.Options("127.0.0.1", port).direct(true));
    }

    /** A port on which nobody listens, and nobody can: it stays bound. */
    private int deadPort() throws IOException {
        Socket bound = new Socket();
        bound.bind(new InetSocketAddress(LOOPBACK, 0));
        kept.add(bound);
        return bound.getLocalPort();
    }

    @Test
    void aDialGivesASocketOfJava() throws Exception {
        serve();
        try (Dial dial = new Dial(local(server.getLocalPort()));
                Socket socket = dial.run(Duration.ofMinutes(2)).socket()) {
            assertTrue(socket.isConnected());
            assertEquals(server.getLocalPort(), socket.getPort());
            socket.getOutputStream().write("you\n".getBytes(StandardCharsets.UTF_8));
            assertEquals("hello you", line(socket.getInputStream()));
            assertTrue(dial.explain().contains("127.0.0.1"), dial.explain());
        }
    }

    @Test
    void aDialGivesAChannelThatWorksWithASelectorOfJava() throws Exception {
        serve();
        Connected connected;
        try (Dial dial = new Dial(local(server.getLocalPort()))) {
            connected = dial.run();
        }
        assertFalse(connected.needsProxyTls());
        assertEquals(server.getLocalPort(), connected.route().hopPort());
        try (SocketChannel channel = connected.channel();
                java.nio.channels.Selector selector = java.nio.channels.Selector.open()) {
            assertThrows(BywayException.Handle.class, connected::detach);
            connected.close();
            channel.configureBlocking(false);
            channel.register(selector, java.nio.channels.SelectionKey.OP_READ);
            channel.write(ByteBuffer.wrap("nio\n".getBytes(StandardCharsets.UTF_8)));
            assertEquals(1, selector.select(20_000));
            ByteBuffer answer = ByteBuffer.allocate(100);
            channel.read(answer);
            assertEquals("hello nio\n", new String(answer.array(), 0, answer.position(), StandardCharsets.UTF_8));
        }
    }

    @Test
    void whatIsNotTakenIsClosed() throws Exception {
        CompletableFuture<String> line = serve();
        try (Dial dial = new Dial(local(server.getLocalPort()));
                Connected connected = dial.run()) {
            assertTrue(connected.fd() > 0);
        }
        assertEquals("", line.get(120, TimeUnit.SECONDS));
    }

    @Test
    void aRefusedRouteIsReportedAndShownAsACause() throws Exception {
        int dead = deadPort();
        try (Dial dial = new Dial(local(dead), new DialOptions().events(true))) {
            BywayException error = assertThrows(BywayException.Connect.class, dial::run);
            assertEquals(1, error.causes().size());
            assertEquals(Status.E_REFUSED, error.causes().get(0).code());
            assertEquals(111, error.causes().get(0).osErrno());
            DialFailure failure = dial.failures().get(0);
            assertEquals("REFUSED", failure.name());
            assertEquals(dead, failure.route().hopPort());
            assertTrue(engine.shouldPostpone(failure.route()));
            assertEquals(DialEvent.Kind.START, dial.nextEvent().kind());
            DialEvent ended = dial.nextEvent();
            while (ended.kind() == DialEvent.Kind.FD_CLOSING) {
                ended = dial.nextEvent();
            }
            assertEquals(DialEvent.Kind.FAILED, ended.kind());
            assertEquals(Status.E_REFUSED, ended.status());
        }
    }

    @Test
    void closingItsSelectorEndsADial() {
        Selector selector = new Selector(local(server.getLocalPort()));
        try (Dial dial = Dial.over(engine, selector, new DialOptions())) {
            selector.close();
            assertThrows(BywayException.Canceled.class, dial::run);
        }
    }

    @Test
    void aProxyThatAsksGetsTheHooksCredentials() throws Exception {
        CompletableFuture<String> tunnel = new CompletableFuture<>();
        threads.execute(
                () -> {
                    try (Socket socket = server.accept()) {
                        InputStream in = socket.getInputStream();
                        while (!line(in).isEmpty()) {}
                        socket.getOutputStream()
                                .write(
                                        ("HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"r\"\r\n"
                                                        + "Content-Length: 0\r\n\r\n")
                                                .getBytes(StandardCharsets.UTF_8));
                        String credentials = "";
                        for (String header = line(in); !header.isEmpty(); header = line(in)) {
                            if (header.startsWith("Proxy-Authorization")) {
                                credentials = header;
                            }
                        }
                        socket.getOutputStream().write("HTTP/1.1 200 ok\r\n\r\n".getBytes(StandardCharsets.UTF_8));
                        tunnel.complete(credentials);
                    } catch (IOException error) {
                        tunnel.completeExceptionally(error);
                    }
                });
        Proxy proxy = new Proxy(ProxyKind.HTTP, "127.0.0.1", server.getLocalPort());
        Address address = new Address(engine, new Address.Options("origin.example", 443).tls(true).proxy(proxy));
        CompletableFuture<Integer> asked = new CompletableFuture<>();
        Hooks hooks =
                new Hooks() {
                    @Override
                    public String proxyAuth(int attempt, Route route, List<String> challenges) {
                        assertEquals(List.of("Basic realm=\"r\""), challenges);
                        asked.complete(attempt);
                        return LATER;
                    }
                };
        try (Dial dial = new Dial(address, new DialOptions().hooks(hooks))) {
            asked.thenAcceptAsync(attempt -> dial.authenticate(attempt, "Basic dTpw"), threads);
            Connected connected = dial.run(Duration.ofMinutes(2));
            assertEquals(ProxyKind.HTTP, connected.route().proxyKind());
            connected.close();
        }
        assertEquals("Proxy-Authorization: Basic dTpw", tunnel.get(120, TimeUnit.SECONDS));
    }

    @Test
    void whatAHookThrowsIsTheCause() {
        IllegalStateException mine = new IllegalStateException("no protection");
        Hooks hooks =
                new Hooks() {
                    @Override
                    public void configure(int fd, Route route) {
                        assertTrue(fd > 0);
                        throw mine;
                    }
                };
        try (Dial dial = new Dial(local(server.getLocalPort()), new DialOptions().hooks(hooks))) {
            BywayException error = assertThrows(BywayException.class, dial::run);
            assertSame(mine, error.getCause());
        }
    }

    @Test
    void whatAHookThrowsIsTheCauseWhoeverListens() {
        IllegalStateException mine = new IllegalStateException("no protection");
        List<Hooks> throwing =
                List.of(
                        new Hooks() {
                            @Override
                            public int openSocket(int family, int protocol, Route route) {
                                throw mine;
                            }
                        },
                        new Hooks() {
                            @Override
                            public void configure(int fd, Route route) {
                                throw mine;
                            }

                            @Override
                            public boolean closeSocket(int fd) {
                                // Calls of its own, good and bad, take nothing from the dial.
                                assertNotNull(Rule.key("com.foo.Bar"));
                                assertNull(refused().getCause());
                                return false;
                            }
                        });
        List<Integer> heard = new java.util.concurrent.CopyOnWriteArrayList<>();
        engine.addListener(event -> heard.add(String.valueOf(event.route()).length()));
        for (Hooks hooks : throwing) {
            try (Dial dial = new Dial(local(server.getLocalPort()), new DialOptions().hooks(hooks))) {
                BywayException error = assertThrows(BywayException.class, dial::run);
                assertSame(mine, error.getCause(), error.toString());
            }
        }
        assertFalse(heard.isEmpty());
        assertNull(refused().getCause());
    }

    private BywayException refused() {
        return assertThrows(BywayException.class, () -> Source.zooKeeper(engine, "zk1:port"));
    }

    @Test
    void aSocketThatIsGoneSaysWhere() throws Exception {
        serve();
        Connected connected;
        try (Dial dial = new Dial(local(server.getLocalPort()))) {
            connected = dial.run();
        }
        try (Socket socket = connected.socket()) {
            assertTrue(socket.isConnected());
            BywayException again = assertThrows(BywayException.Handle.class, connected::detach);
            assertEquals("the socket was handed over", again.reason());
            connected.close();
            again = assertThrows(BywayException.Handle.class, connected::fd);
            assertEquals("the socket was handed over", again.reason());
        }
        serve();
        try (Dial dial = new Dial(local(server.getLocalPort()))) {
            connected = dial.run();
        }
        connected.close();
        assertEquals(
                "the socket is closed", assertThrows(BywayException.Handle.class, connected::detach).reason());
    }

    @Test
    void closeEndsARunOnAnotherThread() throws Exception {
        CompletableFuture<DnsRequest> asked = new CompletableFuture<>();
        Dns dns =
                Dns.answering(
                        engine,
                        request -> {
                            request.later();
                            asked.complete(request);
                        });
        Address address = new Address(engine, new Address.Options("a.example", 80).dns(dns));
        Dial dial = new Dial(address);
        CompletableFuture<Connected> running = dial.runAsync(Duration.ofMinutes(4), threads);
        asked.get(120, TimeUnit.SECONDS);
        dial.close();
        Throwable thrown = assertThrows(Exception.class, () -> running.get(120, TimeUnit.SECONDS)).getCause();
        assertEquals(BywayException.Canceled.class, thrown.getClass());

        CompletableFuture<DnsRequest> again = new CompletableFuture<>();
        CompletableFuture<Long> givenUp = new CompletableFuture<>();
        Dns other =
                Dns.answering(
                        engine,
                        new Dns.Answerer() {
                            @Override
                            public void answer(DnsRequest request) {
                                request.later();
                                again.complete(request);
                            }

                            @Override
                            public void canceled(long id) {
                                givenUp.complete(id);
                            }
                        });
        Dial second = new Dial(new Address(engine, new Address.Options("b.example", 80).dns(other)));
        CompletableFuture<Connected> canceled = second.runAsync(Duration.ofMinutes(4), threads);
        DnsRequest request = again.get(120, TimeUnit.SECONDS);
        canceled.cancel(true);
        assertThrows(CancellationException.class, canceled::join);
        long id = request.id();
        second.close();
        assertEquals(id, givenUp.get(120, TimeUnit.SECONDS));
    }

    @Test
    void routesThatWereKeptCanBeDialledInSteps() throws Exception {
        CompletableFuture<String> line = serve();
        List<Route> kept =
                List.of(
                        Route.of(local(deadPort()), null, LOOPBACK, deadPort()),
                        Route.of(local(server.getLocalPort()), null, LOOPBACK, server.getLocalPort()));
        try (Dial dial = Dial.over(engine, kept, new DialOptions())) {
            assertTrue(dial.fd() > 0);
            Connected connected = dial.step();
            while (connected == null) {
                assertFalse(dial.pollset().isEmpty());
                connected = dial.step();
            }
            try (Socket socket = connected.socket()) {
                socket.getOutputStream().write("step\n".getBytes(StandardCharsets.UTF_8));
                assertEquals("step", line.get(120, TimeUnit.SECONDS));
            }
            assertNull(dial.nextEvent());
        }
    }

    @Test
    void aHandshakeIsBytesInAndBytesOut() {
        try (Handshake dialogue =
                Handshake.to(ProxyKind.SOCKS5H, "o.example", 443, "user", "secret", new DialOptions())) {
            assertEquals(Handshake.Want.WRITE, dialogue.want());
            assertArrayEquals(new byte[] {5, 2, 0, 2}, dialogue.output());
            dialogue.sent(4);
            assertEquals(Handshake.Want.READ, dialogue.want());
            assertEquals(2, dialogue.limit());
            assertEquals(2, dialogue.feed(new byte[] {5, 2}));
            assertEquals("\u0001\u0004user\u0006secret", new String(dialogue.output(), StandardCharsets.ISO_8859_1));
            dialogue.sent(dialogue.output().length);
            assertThrows(BywayException.Connect.class, () -> dialogue.feed(new byte[] {1, 1}));
            assertEquals(Handshake.Want.FAILED, dialogue.want());
            assertThrows(IndexOutOfBoundsException.class, () -> dialogue.feed(new byte[4], 2, 3));
        }
    }
}
