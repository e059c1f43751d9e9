package io.byway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ChainTest {
    private static final String SERVICE = "com.foo.Bar";
    private static final String KEY = SERVICE + "::.condition-router";
    private static final String CONSUMER =
            "consumer://10.20.1.9/" + SERVICE + "?interface=" + SERVICE + "&application=shop";

    private Engine engine;
    private Chain chain;

    @BeforeEach
    void open() {
        engine = new Engine(new Engine.Options().seed(7));
        chain = new Chain(engine, CONSUMER);
    }

    @AfterEach
    void close() {
        engine.close();
    }

    private static String url(int port) {
        return url(port, "");
    }

    private static String url(int port, String more) {
        return "tri://10.0.0.1:" + port + "/" + SERVICE + "?interface=" + SERVICE + "&application=depot" + more;
    }

    private void three() {
        chain.setInvokers(
                new Invokers(engine, List.of(url(20880), url(20881), url(20882)), new long[] {80, 81, 82}));
    }

    private static String rule(String... conditions) {
        return "scope: service\nforce: true\nconditions: ['" + String.join("', '", conditions) + "']\n";
    }

    @Test
    void aRuleDecidesByMethodAndArgumentsAndAttachments() {
        three();
        engine.setRule(
                KEY,
                rule(
                        "method=hello => address=*:20880",
                        "method=pay&arguments[0]=big => address=*:20881",
                        "attachments[zone]=north => address=*:20882"));
        try (Invocation call = new Invocation("hello");
                Session session = chain.session()) {
            assertArrayEquals(new long[] {80}, chain.tags(call));
            assertArrayEquals(new long[] {80}, session.tags(call));
            assertArrayEquals(new long[] {80}, session.route(call).tags());
            call.reset().method("pay").types("java.lang.String", "int").arguments("big", null);
            assertArrayEquals(new long[] {81}, session.route(call).tags());
            assertArrayEquals(new long[] {81}, chain.tags(call));
            call.reset().method("other").attach("zone", "south").attach("zone", "north");
            assertArrayEquals(new long[] {82}, session.tags(call));
            call.reset().method("other").attachments(Map.of("zone", "north", "tenant", "ü"));
            assertArrayEquals(new long[] {82}, session.route(call).tags());
            call.reset().method("other");
            assertArrayEquals(new long[] {80, 81, 82}, session.route(call).tags());
            call.arguments(List.of("small"));
            assertEquals(3, session.route(call).size());
        }
    }

    @Test
    void aMethodHasANumberInEveryChain() {
        three();
        engine.setRule(KEY, rule("method=hello => address=*:20881"));
        int hello = chain.internMethod("hello");
        assertEquals(hello, new Chain(engine, CONSUMER).internMethod("hello"));
        assertNotEquals(hello, chain.internMethod("hello2"));
        try (Invocation call = new Invocation().methodId(hello);
                Session session = chain.session()) {
            for (int i = 0; i < 3; i++) {
                assertArrayEquals(new long[] {81}, session.route(call).tags());
            }
            BywayException none =
                    assertThrows(
                            BywayException.Argument.class, () -> session.route(call.reset().methodId(1 << 30)));
            assertEquals(Status.E_NOT_FOUND, none.code());
            assertArrayEquals(new long[] {81}, session.tags(call.reset().methodId(hello)));
        }
    }

    @Test
    void aViewShowsTheLastResultOfItsSession() {
        three();
        engine.setRule(KEY, rule("method=hello => address=*:20880", "method=nobody => address=*:1"));
        try (Invocation hello = new Invocation("hello");
                Invocation other = new Invocation("other");
                Invocation nobody = new Invocation("nobody");
                Session session = chain.session()) {
            Session.View view = session.route(hello);
            assertEquals(1, view.size());
            assertEquals(80, view.tag(0));
            assertNull(view.emptiedBy());
            assertEquals(chain.generation(), view.generation());
            assertEquals(3, view.invokers().size());
            assertSame(view, session.route(other));
            assertEquals(3, view.size());
            long[] room = new long[2];
            assertEquals(3, view.tags(room));
            assertArrayEquals(new long[] {80, 81}, room);
            assertEquals(3, session.tags(other, room));
            long[] large = new long[4];
            assertEquals(3, session.tags(other, large));
            assertArrayEquals(new long[] {80, 81, 82, 0}, large);
            assertEquals(Status.E_NOT_FOUND, assertThrows(BywayException.class, () -> view.tag(3)).code());
            assertTrue(session.route(nobody).isEmpty());
            assertEquals("service", view.emptiedBy());
            session.idle();
            assertEquals(0, view.size());
            assertEquals(1, session.route(hello).size());
        }
    }

    @Test
    void aSessionAndAnInvocationBelongToTheirThread() {
        three();
        Session session = chain.session();
        Invocation call = new Invocation("hello");
        assertEquals(3, session.route(call).size());
        Session.View view = session.route(call);
        CompletableFuture.runAsync(
                        () -> {
                            assertEquals(Status.E_BUSY, busy(() -> session.route(call)));
                            assertEquals(Status.E_BUSY, busy(view::size));
                            assertEquals(Status.E_BUSY, busy(session::idle));
                            assertEquals(Status.E_BUSY, busy(() -> call.method("x")));
                            assertEquals(Status.E_BUSY, busy(() -> chain.tags(call)));
                            session.adopt();
                            assertEquals(Status.E_BUSY, busy(() -> session.tags(call)));
                            call.reset().method("hello");
                            assertEquals(3, session.route(call).size());
                        },
                        task -> {
                            Thread other = new Thread(task);
                            other.start();
                        })
                .join();
        assertEquals(Status.E_BUSY, busy(() -> session.route(call)));
        session.adopt();
        assertEquals(Status.E_BUSY, busy(() -> session.route(call)));
        assertEquals(3, session.route(call.reset()).size());
        session.close();
        assertThrows(BywayException.Handle.class, () -> session.route(call));
        assertThrows(BywayException.Handle.class, view::size);
        call.close();
        assertThrows(BywayException.Handle.class, () -> chain.tags(call));
        assertThrows(BywayException.Handle.class, () -> chain.session().route(call));
    }

    private static int busy(Runnable body) {
        return assertThrows(BywayException.Handle.class, body::run).code();
    }

    @Test
    void whatIsReplacedInAnInvocationTakesNoMemoryForEver() {
        three();
        engine.setRule(KEY, rule("attachments[zone]=v199999 => address=*:20882"));
        try (Invocation call = new Invocation("hello");
                Session session = chain.session()) {
            for (int i = 0; i < 200_000; i++) {
                call.attach("zone", "v" + i);
            }
            assertTrue(call.length() < 100_000, "" + call.length());
            assertArrayEquals(new long[] {82}, session.tags(call));
            char[] long_ = new char[100_000];
            Arrays.fill(long_, 'x');
            call.attach("long", new String(long_)).method("other").arguments("a", null, "c").types("A", "B");
            assertArrayEquals(new long[] {82}, session.tags(call));
            call.method("$invoke");
            assertArrayEquals(new long[] {82}, session.tags(call));
        }
    }

    @Test
    void listsAreMadeWholeOrAsAnUpdate() {
        AtomicInteger ended = new AtomicInteger();
        Invokers first =
                new Invokers(
                        engine,
                        List.of(url(1), url(2), url(3)),
                        new long[] {101, 102, 103},
                        new Invokers.Options().keepUrls(true).onEnd(ended::incrementAndGet));
        assertEquals(3, first.size());
        assertEquals(102, first.tag(1));
        assertEquals(2, first.rowOf(103));
        assertEquals(url(2), first.url(1));
        assertThrows(BywayException.Argument.class, () -> first.rowOf(5));
        assertThrows(BywayException.Argument.class, () -> first.tag(3));
        InvokersBuilder builder = new InvokersBuilder(engine, first);
        builder.set(url(2, "&weight=50"), 102).remove(101).add(url(4), 104);
        builder.addMany(List.of(url(5), url(6)), new long[] {105, 106});
        assertThrows(BywayException.Argument.class, () -> builder.remove(7));
        Invokers second = builder.finish();
        assertTrue(builder.isClosed());
        assertArrayEquals(new long[] {102, 103, 104, 105, 106}, second.tags());
        assertNotEquals(first.generation(), second.generation());
        assertEquals(3, first.size());
        long before = chain.generation();
        assertTrue(chain.setInvokers(second) > before);
        assertEquals(second.generation(), chain.invokers().generation());
        BywayException refused =
                assertThrows(
                        BywayException.Invokers.class,
                        () -> new Invokers(engine, List.of(url(1), "tri://10.0.0.1:port/x"), null));
        assertEquals("invoker 1", refused.subject());
        assertThrows(BywayException.Rule.class, () -> new Invokers(engine, List.of(url(1)), new long[] {0}));
        assertThrows(
                BywayException.Argument.class, () -> new Invokers(engine, List.of(url(1)), new long[] {1, 2}));
        assertArrayEquals(new long[] {0, 1}, new Invokers(engine, List.of(url(1), url(2))).tags());
        first.close();
        second.close();
        assertEquals(0, ended.get(), "the chain has it");
        chain.setInvokers(new Invokers(engine, List.of()));
        engine.shutdown(Duration.ofSeconds(30));
        assertEquals(1, ended.get());
    }

    @Test
    void choicesPinTheirWorld() {
        three();
        try (Invocation call = new Invocation("hello")) {
            Choice choice = chain.route(call);
            chain.setInvokers(new Invokers(engine, List.of(url(9)), new long[] {9}));
            assertEquals(3, choice.size());
            assertEquals(81, choice.tag(1));
            assertArrayEquals(new long[] {80, 81, 82}, choice.tags());
            assertEquals(3, choice.invokers().size());
            assertTrue(choice.generation() < chain.generation());
            assertNull(choice.emptiedBy());
            assertFalse(choice.isEmpty());
            assertThrows(BywayException.Argument.class, () -> choice.tag(3));
            choice.close();
            assertThrows(BywayException.Handle.class, choice::size);
        }
    }

    @Test
    void manyCallsInOneCrossing() {
        List<String> urls = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            urls.add(url(20000 + i));
        }
        chain.setInvokers(new Invokers(engine, urls));
        engine.setRule(KEY, rule("method=hello => address=*:20042"));
        try (Invocation hello = new Invocation("hello");
                Invocation again = new Invocation("hello");
                Invocation other = new Invocation("other")) {
            List<long[]> each = chain.routeMany(List.of(hello, other, again));
            assertEquals(Status.E_BUSY, busy(() -> chain.routeMany(List.of(hello, hello))));
            assertArrayEquals(new long[] {42}, each.get(0));
            assertEquals(100, each.get(1).length);
            assertArrayEquals(new long[] {42}, each.get(2));
            long[] tags = new long[6];
            long[] totals = new long[2];
            assertEquals(chain.generation(), chain.routeMany(List.of(other, hello), tags, 3, totals));
            assertArrayEquals(new long[] {100, 1}, totals);
            assertArrayEquals(new long[] {0, 1, 2, 42, 0, 0}, tags);
            assertThrows(
                    BywayException.Argument.class, () -> chain.routeMany(List.of(hello), new long[2], 3, totals));
            assertTrue(chain.routeMany(List.of()).isEmpty());
        }
    }

    @Test
    void onePickIsBalancedEndedAndExcluded() {
        three();
        try (Invocation call = new Invocation("hello");
                Session session = chain.session()) {
            PickOptions robin = new PickOptions().balance(Balance.ROUND_ROBIN);
            Set<Long> seen = new HashSet<>();
            for (int i = 0; i < 3; i++) {
                seen.add(session.pick(call, robin).tag());
            }
            assertEquals(Set.of(80L, 81L, 82L), seen);
            Picked last = session.pick(call, new PickOptions().exclude(80, 82));
            assertEquals(81, last.tag());
            assertEquals(1, last.row());
            BitSet rows = new BitSet();
            rows.set(2);
            Picked only = chain.pick(call, new PickOptions().available(chain.invokers(), rows));
            assertEquals(82, only.tag());
            assertTrue(only.isAvailable());
            Picked active = chain.pick(call, new PickOptions().balance(Balance.LEAST_ACTIVE));
            assertTrue(chain.pickEnd(active, true));
            assertFalse(chain.pickEnd(active, true), "ended before");
            Picked quick = chain.pick(call, new PickOptions().balance(Balance.P2C));
            assertTrue(
                    chain.pickEnd(
                            quick.ticket(),
                            false,
                            Duration.ofMillis(5),
                            new CallReport(Instant.now(), 0.5, Duration.ofMillis(3))));
            Picked first = session.pick(call, new PickOptions().sticky(true));
            for (int i = 0; i < 5; i++) {
                assertEquals(first.tag(), session.pick(call, new PickOptions().sticky(true)).tag());
            }
            engine.setRule(KEY, rule("=> address=*:1"));
            BywayException nobody = assertThrows(BywayException.NoInvoker.class, () -> session.pick(call));
            assertEquals(Status.E_NO_INVOKER, nobody.code());
            assertThrows(BywayException.NoInvoker.class, () -> chain.pick(call));
        }
    }

    @Test
    void aChainExplainsAndComparesAndSaysHowItStands() {
        three();
        assertTrue(chain.keys().contains(KEY), chain.keys().toString());
        try (Invocation call = new Invocation("hello")) {
            String proposal = rule("method=hello => address=*:20880");
            String change = chain.diff(KEY, proposal, List.of(call));
            assertTrue(change.contains("81") && change.contains("82"), change);
            assertEquals(3, chain.tags(call).length, "nothing was set");
            engine.setRule(KEY, proposal);
            String text = chain.explain(call);
            assertTrue(text.contains("20881") && text.contains(KEY), text);
            assertTrue(chain.explainJson(call).startsWith("{"));
            assertTrue(chain.diffJson(KEY, proposal, List.of(call)).startsWith("["));
            assertTrue(chain.diff(KEY, null, Collections.singletonList(call)).contains("81"));
            assertTrue(chain.status().contains(KEY), chain.status());
            chain.keepRecent(true);
            chain.tags(call);
            assertTrue(chain.recent().contains("hello"), chain.recent());
            assertTrue(chain.recentJson().startsWith("["));
            chain.keepRecent(false);
            assertEquals("[]", chain.recentJson().trim());
        }
        chain.setRuleUrls(
                List.of(
                        "condition://0.0.0.0/"
                                + SERVICE
                                + "?category=routers&force=true&rule="
                                + "%3D%3E+address%3D*%3A20882"));
        try (Invocation call = new Invocation("other")) {
            assertArrayEquals(new long[] {82}, chain.tags(call));
            chain.setRuleUrls(List.of());
            assertEquals(3, chain.tags(call).length);
        }
    }

    @Test
    void aRefusedRuleSaysWhereAndLeavesTheLastGoodOne() {
        three();
        engine.setRule(KEY, rule("method=hello => address=*:20880"));
        BywayException.Rule refused =
                assertThrows(
                        BywayException.Rule.class,
                        () -> engine.setRule(KEY, "scope: service\nconditions:\n  - 'method=hello => => x'\n"));
        assertEquals(3, refused.line());
        try (Invocation call = new Invocation("hello")) {
            assertArrayEquals(new long[] {80}, chain.tags(call));
            engine.removeRule(KEY);
            assertEquals(3, chain.tags(call).length);
        }
        assertEquals(KEY, Rule.key(SERVICE));
        assertEquals(
                "depot.tag-router", Rule.applicationKey(Dialect.BYWAY, RuleKind.TAG, "depot"));
        assertEquals(
                SERVICE + ":1.0:g.condition-router",
                Rule.key(Dialect.DUBBO_3, RuleKind.CONDITION, SERVICE, "1.0", "g"));
        assertEquals("", Rule.check(Dialect.BYWAY, RuleKind.CONDITION, rule("method=hello => address=*:20880")));
        assertTrue(Rule.check(Dialect.BYWAY, RuleKind.CONDITION, "conditions: [[[").contains("1:"));
        assertTrue(
                Rule.checkJson(
                                Dialect.BYWAY,
                                RuleKind.CONDITION,
                                rule("method=hello => address=*:1"),
                                chain.invokers())
                        .contains("\"refused\""));
    }

    @Test
    void listenersHearOfRulesAndOfTheKeysAChainWants() {
        List<Event> heard = new ArrayList<>();
        engine.addListener(Set.of(Event.Kind.RULE, Event.Kind.CHAIN_KEYS), heard::add);
        three();
        engine.setRule(KEY, rule("method=hello => address=*:20880"));
        while (heard.stream().noneMatch(event -> event.kind() == Event.Kind.RULE)
                || heard.stream().noneMatch(event -> event.kind() == Event.Kind.CHAIN_KEYS)) {
            engine.queue().poll(Duration.ofSeconds(30));
        }
        for (Event event : heard) {
            if (event.kind() == Event.Kind.RULE) {
                assertEquals(KEY, event.subject());
                assertNull(event.error());
            }
        }
    }

    @Test
    void listenersHearInTheQueueTheyNameOrAtOnceWhereTheEngineMay() throws Exception {
        List<Event> heard = new ArrayList<>();
        Queue own = new Queue();
        engine.addListener(Set.of(Event.Kind.RULE), heard::add, own);
        engine.setRule(KEY, rule("method=hello => address=*:20880"));
        engine.queue().poll(Duration.ZERO);
        assertEquals(0, heard.size());
        own.poll(Duration.ZERO);
        assertEquals(1, heard.size());

        CompletableFuture<String> told = new CompletableFuture<>();
        try (Engine any = new Engine(new Engine.Options().callbacksAnyThread(true))) {
            any.addListener(Set.of(Event.Kind.RULE), event -> told.complete(Thread.currentThread().getName()));
            any.setRule(KEY, rule("method=hello => address=*:20880"));
            assertNotEquals(Thread.currentThread().getName(), told.get());
        }
    }

    @Test
    void aRouterOfTheHostDecidesByIndex() {
        three();
        List<String> asked = new ArrayList<>();
        Router router =
                new Router(
                        engine,
                        "odd",
                        request -> {
                            asked.add(
                                    request.method()
                                            + " "
                                            + request.attachment("zone")
                                            + " "
                                            + request.argument(0)
                                            + " "
                                            + request.argument(1)
                                            + " "
                                            + request.isExplaining());
                            if ("all".equals(request.method())) {
                                request.pass();
                                return;
                            }
                            for (int i = 0; i < request.size(); i++) {
                                if (request.tag(i) % 2 == 1) {
                                    request.keep(i);
                                }
                            }
                        },
                        new Router.Options().priority(500));
        chain.addRouter(router);
        assertEquals(
                Status.E_DUPLICATE, assertThrows(BywayException.class, () -> chain.addRouter(router)).code());
        try (Invocation call = new Invocation("hello").attach("zone", "n").arguments("a", null);
                Session session = chain.session()) {
            assertArrayEquals(new long[] {81}, chain.tags(call));
            assertArrayEquals(new long[] {81}, session.route(call).tags());
            assertEquals("hello n a null false", asked.get(0));
            assertTrue(chain.explain(call).contains("odd"));
            assertTrue(asked.get(asked.size() - 1).endsWith("true"), asked.toString());
            assertEquals(3, session.route(call.reset().method("all")).size());
        }
    }

    @Test
    void whatARouterThrowsIsTheCause() {
        three();
        RouterRequest[] kept = new RouterRequest[1];
        IllegalStateException mine = new IllegalStateException("not today");
        chain.addRouter(
                new Router(
                        engine,
                        "bad",
                        request -> {
                            kept[0] = request;
                            throw mine;
                        }));
        try (Invocation call = new Invocation("hello");
                Session session = chain.session()) {
            assertSame(mine, assertThrows(BywayException.Host.class, () -> session.route(call)).getCause());
            assertSame(mine, assertThrows(BywayException.Host.class, () -> session.tags(call)).getCause());
            assertSame(mine, assertThrows(BywayException.Host.class, () -> chain.route(call)).getCause());
            assertSame(mine, assertThrows(BywayException.Host.class, () -> chain.pick(call)).getCause());
            assertSame(
                    mine,
                    assertThrows(BywayException.Host.class, () -> chain.routeMany(List.of(call))).getCause());
        }
        assertEquals(
                Status.E_STATE,
                assertThrows(BywayException.class, () -> kept[0].attachment("zone")).code(),
                "the callback has returned");
    }

    @Test
    void aRouterThatIsBusyWithAnotherSessionIsAskedOnce() throws Exception {
        three();
        CompletableFuture<Session> foreign = new CompletableFuture<>();
        Thread other = new Thread(() -> foreign.complete(new Chain(engine, CONSUMER).session()));
        other.start();
        other.join();
        AtomicInteger asked = new AtomicInteger();
        BywayException[] mine = new BywayException[1];
        chain.addRouter(
                new Router(
                        engine,
                        "busy",
                        request -> {
                            asked.incrementAndGet();
                            try (Invocation inner = new Invocation("inner")) {
                                mine[0] =
                                        assertThrows(
                                                BywayException.Handle.class,
                                                () -> foreign.join().route(inner));
                                assertEquals(Status.E_BUSY, mine[0].code());
                            }
                            throw mine[0];
                        }));
        try (Invocation call = new Invocation("hello");
                Session session = chain.session()) {
            List<org.junit.jupiter.api.function.Executable> ways =
                    List.of(
                            () -> session.route(call),
                            () -> session.tags(call),
                            () -> session.tags(call, new long[4]),
                            () -> session.pick(call),
                            () -> chain.route(call));
            for (int i = 0; i < ways.size(); i++) {
                BywayException error = assertThrows(BywayException.class, ways.get(i));
                assertSame(mine[0], error.getCause(), error.toString());
                assertEquals(i + 1, asked.get());
            }
        }
    }

    @Test
    void messagesNameWhatIsWrong() {
        three();
        String gone = "Index -1 out of bounds for length 3";
        try (Invocation call = new Invocation("hello");
                Session session = chain.session()) {
            Session.View view = session.route(call);
            assertEquals(gone, assertThrows(IndexOutOfBoundsException.class, () -> view.tag(-1)).getMessage());
            try (Choice choice = chain.route(call)) {
                assertEquals(gone, assertThrows(IndexOutOfBoundsException.class, () -> choice.tag(-1)).getMessage());
            }
        }
        Invokers list = chain.invokers();
        assertEquals(gone, assertThrows(IndexOutOfBoundsException.class, () -> list.tag(-1)).getMessage());
        assertEquals(gone, assertThrows(IndexOutOfBoundsException.class, () -> list.url(-1)).getMessage());
        BywayException huge =
                assertThrows(
                        BywayException.Argument.class,
                        () -> chain.pickEnd(1, true, Duration.ofSeconds(Long.MAX_VALUE)));
        assertEquals("latency", huge.subject());
        assertFalse(
                chain.pickEnd(
                        1, true, null, new CallReport(Instant.EPOCH, 1, Duration.ofSeconds(Long.MAX_VALUE))));
        InvokersBuilder builder = new InvokersBuilder(engine);
        builder.finish();
        assertEquals(
                "the builder has made its list or was closed",
                assertThrows(BywayException.Handle.class, builder::finish).reason());
    }

    @Test
    void aNullIsNamed() {
        assertNamed("consumerUrl", () -> new Chain(engine, null));
        assertNamed("key", () -> engine.setRule(null, ""));
        assertNamed("text", () -> engine.setRule(KEY, null));
        assertNamed("urls", () -> new Invokers(engine, null));
        assertNamed("urls[1]", () -> new Invokers(engine, Arrays.asList(url(1), null)));
        assertNamed("engine", () -> new InvokersBuilder(null));
        assertNamed("invokers", () -> chain.setInvokers(null));
        assertNamed("router", () -> chain.addRouter(null));
        assertNamed("name", () -> chain.internMethod(null));
        assertNamed("source", () -> chain.bind(null, Duration.ZERO));
        assertNamed("options", () -> chain.bind(Source.memory(engine), null, null));
        assertNamed("report", () -> chain.pickEnd(1, true, null, null));
        assertNamed("picked", () -> chain.pickEnd(null, true));
        assertNamed("onEvent", () -> engine.addListener((java.util.function.Consumer<Event>) null));
        assertNamed("lookup", () -> new Dns(engine, null));
        assertNamed("answerer", () -> Dns.answering(engine, null));
        assertNamed("choice", () -> new ProxySelector(engine, null));
        assertNamed("answerer", () -> ProxySelector.answering(engine, null));
        assertNamed("address", () -> new Selector(null));
        assertNamed("address", () -> new Dial((Address) null));
        assertNamed("options", () -> new Address(engine, null));
        assertNamed("engine", () -> new Address(null, new Address.Options("a.example", 80)));
        assertNamed("route", () -> engine.connected(null));
        assertNamed("route", () -> engine.connectFailed(null, Failure.REFUSED));
        assertNamed("invocation", () -> chain.tags((Invocation) null));
        assertNamed("chain", () -> new Session(null));
    }

    private static void assertNamed(String parameter, org.junit.jupiter.api.function.Executable call) {
        assertEquals(parameter, assertThrows(NullPointerException.class, call).getMessage());
    }

    @Test
    void aRouterMayServeEveryChainToCome() {
        new Router(engine, "first", request -> request.keep(0), new Router.Options().everyChain());
        new Router(engine, "closed", request -> {}, new Router.Options().everyChain()).close();
        new Router(engine, "last", request -> request.keep(request.size() - 1), new Router.Options().byName());
        System.gc();
        Invokers list = new Invokers(engine, List.of(url(1), url(2)), new long[] {1, 2});
        Chain every = new Chain(engine, CONSUMER);
        every.setInvokers(list);
        Chain named = new Chain(engine, CONSUMER + "&router=last,-first");
        named.setInvokers(list);
        try (Invocation call = new Invocation("hello")) {
            assertArrayEquals(new long[] {1}, every.tags(call));
            assertArrayEquals(new long[] {2}, named.tags(call));
        }
    }

    @Test
    void dialectsDiffer() {
        engine.setRule(KEY, "scope: service\nforce: true\nconditions: []\n");
        Chain dubbo = new Chain(engine, CONSUMER, new Chain.Options().dialect(Dialect.DUBBO_3).memo(false));
        dubbo.setInvokers(new Invokers(engine, List.of(url(1))));
        assertTrue(dubbo.status().contains("condition"));
    }
}
