package io.byway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Chains under threads that close, collect, throw and change carriers. The suite runs this with JNI's own checks on. */
@Timeout(300)
class ChainStressTest {
    private static final String SERVICE = "com.foo.Bar";
    private static final String KEY = SERVICE + "::.condition-router";

    private Engine engine;

    @BeforeEach
    void open() {
        engine = new Engine();
    }

    @AfterEach
    void close() {
        engine.close();
    }

    private Invokers list(int first, int count) {
        return list(first, count, new Invokers.Options());
    }

    private Invokers list(int first, int count, Invokers.Options options) {
        List<String> urls = new ArrayList<>();
        long[] tags = new long[count];
        for (int i = 0; i < count; i++) {
            urls.add("tri://10.0.0.1:" + (20000 + i) + "/" + SERVICE + "?interface=" + SERVICE);
            tags[i] = first + i;
        }
        return new Invokers(engine, urls, tags, options);
    }

    private Chain chain(int count) {
        Chain chain = new Chain(engine, "consumer://10.20.1.9/" + SERVICE + "?interface=" + SERVICE);
        chain.setInvokers(list(1, count));
        return chain;
    }

    /** Runs the same work on some threads, and throws what one of them threw. */
    private static void onThreads(int threads, Callable<?> work) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                all.add(pool.submit(work));
            }
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void whatIsClosedDuringACallEndsWellOrClearly() throws Exception {
        engine.setRule(KEY, "scope: service\nforce: true\nconditions: ['method=hello => address=*:20000']\n");
        Chain chain = chain(3);
        int hello = chain.internMethod("hello");
        for (int round = 0; round < 300; round++) {
            AtomicReference<Handle[]> made = new AtomicReference<>();
            AtomicReference<Throwable> failed = new AtomicReference<>();
            CountDownLatch begun = new CountDownLatch(1);
            Thread user =
                    new Thread(
                            () -> {
                                Session session = chain.session();
                                Invocation call = new Invocation().methodId(hello);
                                made.set(new Handle[] {session, call});
                                try {
                                    for (long i = 0; ; i++) {
                                        Session.View view = session.route(call);
                                        if (i % 3 == 0 && view.tag(0) != 1 || i % 5 == 0 && view.tags().length != 1) {
                                            throw new IllegalStateException("another session's result");
                                        }
                                        if (i % 7 == 0) {
                                            session.tags(call.reset().methodId(hello));
                                        }
                                        begun.countDown();
                                    }
                                } catch (BywayException.Handle closed) {
                                    // Which it is told once it is.
                                } catch (Throwable thrown) {
                                    failed.set(thrown);
                                } finally {
                                    begun.countDown();
                                }
                            });
            user.start();
            begun.await();
            made.get()[round % 2].close();
            user.join();
            if (failed.get() != null) {
                throw new IllegalStateException(failed.get());
            }
            made.get()[1 - round % 2].close();
        }
    }

    @Test
    void objectsDieInAllOrdersWhileOthersRoute() throws Exception {
        AtomicInteger left = new AtomicInteger(3);
        Thread collector =
                new Thread(
                        () -> {
                            while (left.get() > 0) {
                                System.gc();
                            }
                        });
        collector.start();
        onThreads(
                3,
                () -> {
                    try {
                        for (int round = 0; round < 60; round++) {
                            Chain chain = chain(5);
                            chain.addRouter(new Router(engine, "first", request -> request.keep(0)));
                            Session session = chain.session();
                            for (int i = 0; i < 20; i++) {
                                // Nobody keeps what is behind these.
                                assertEquals(1, session.tags(new Invocation("m" + i).attach("k", "v" + i)).length);
                                assertEquals(1, session.route(new Invocation("n" + i)).size());
                                assertEquals(1, chain.route(new Invocation("o")).tags()[0]);
                            }
                            chain = null;
                            assertEquals(5, session.chain().invokers().size());
                        }
                        return null;
                    } finally {
                        left.decrementAndGet();
                    }
                });
        collector.join();
    }

    @Test
    void everyListIsGivenBackOnce() throws Exception {
        AtomicInteger ended = new AtomicInteger();
        Chain chain = chain(2);
        onThreads(
                2,
                () -> {
                    try (Session session = chain.session();
                            Invocation call = new Invocation("hello")) {
                        for (int i = 0; i < 300; i++) {
                            Invokers.Options options = new Invokers.Options().onEnd(ended::incrementAndGet);
                            try (Invokers list = list(100 * (i % 50 + 1), 4, options)) {
                                chain.setInvokers(list);
                            }
                            long[] tags = session.tags(call);
                            assertEquals(1, Arrays.stream(tags).map(tag -> tag / 100).distinct().count());
                        }
                        return null;
                    }
                });
        chain.setInvokers(list(1, 1));
        assertTrue(engine.shutdown(Duration.ofSeconds(60)));
        assertEquals(600, ended.get());
    }

    @Test
    void aRouterThatThrowsLeavesEverybodyElseAlone() throws Exception {
        Chain chain = chain(10);
        IllegalStateException mine = new IllegalStateException("thrown by the router");
        chain.addRouter(
                new Router(
                        engine,
                        "moody",
                        request -> {
                            if (request.method().equals("bad")) {
                                throw mine;
                            }
                            request.keep(request.size() - 1);
                        }));
        onThreads(
                3,
                () -> {
                    try (Session session = chain.session();
                            Invocation good = new Invocation("good");
                            Invocation bad = new Invocation("bad")) {
                        for (int i = 0; i < 500; i++) {
                            assertEquals(10, session.route(good).tag(0));
                            BywayException.Host told =
                                    assertThrows(BywayException.Host.class, () -> session.route(bad));
                            assertSame(mine, told.getCause());
                        }
                        return null;
                    }
                });
    }

    @Test
    void aRouterMayNotUseTheSessionItIsAskedBy() {
        Chain chain = chain(3);
        List<Integer> codes = new ArrayList<>();
        try (Session session = chain.session();
                Invocation call = new Invocation("hello");
                Invocation other = new Invocation("other")) {
            chain.addRouter(
                    new Router(
                            engine,
                            "nested",
                            request -> {
                                if (request.method().equals("hello")) {
                                    codes.add(
                                            assertThrows(BywayException.Handle.class, () -> session.route(other))
                                                    .code());
                                    // Another one of the same thread is free.
                                    try (Session own = chain.session()) {
                                        codes.add(own.route(other).size());
                                    }
                                }
                                request.pass();
                            }));
            assertEquals(3, session.route(call).size());
        }
        assertEquals(List.of(Status.E_BUSY, 3), codes);
    }

    @Test
    void aVirtualThreadMayChangeItsCarrier() throws Exception {
        assumeTrue(Runtime.version().feature() >= 21, "no virtual threads");
        engine.setRule(KEY, "scope: service\nforce: true\nconditions: ['method=hello => address=*:20001']\n");
        Chain chain = chain(8);
        int hello = chain.internMethod("hello");
        ExecutorService virtual =
                (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        try {
            List<Future<Object>> all = new ArrayList<>();
            for (int thread = 0; thread < 40; thread++) {
                all.add(
                        virtual.submit(
                                () -> {
                                    try (Session session = chain.session();
                                            Invocation call = new Invocation().methodId(hello)) {
                                        PickOptions random = new PickOptions().balance(Balance.RANDOM);
                                        for (int i = 0; i < 50; i++) {
                                            Session.View view = session.route(call);
                                            Thread.sleep(0, 1000);
                                            assertEquals(2, view.tag(0));
                                            assertEquals(1, session.tags(call).length);
                                            Thread.sleep(0, 1000);
                                            assertEquals(2, session.pick(call, random).tag());
                                            Thread.sleep(0, 1000);
                                            assertEquals(1, chain.tags(call).length);
                                            call.reset().methodId(hello).attach("turn", "t" + i);
                                            if (i % 10 == 9) {
                                                session.idle();
                                            }
                                        }
                                        return null;
                                    }
                                }));
            }
            for (Future<Object> one : all) {
                one.get();
            }
        } finally {
            virtual.shutdown();
        }
    }
}
