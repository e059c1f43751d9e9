package io.byway;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** What needs a JVM of its own: {@link ProcessTest} runs it with one word and reads its last line. */
final class Child {
    private static final String HOSTS =
            "192.0.2.1 a.example\n192.0.2.2 a.example\n2001:db8::1 a.example\n2001:db8::2 a.example\n";

    private Child() {}

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "live":
                live();
                break;
            case "exit":
                exitInCallback();
                break;
            case "growth":
                growth();
                break;
            case "collector":
                collector();
                break;
            case "closing":
                closing();
                break;
            case "foreign":
                foreign();
                break;
            default:
                System.out.println(Library.path());
                break;
        }
        System.out.println("ended well");
    }

    private static Address address(Engine engine, Dns dns) {
        return new Address(engine, new Address.Options("a.example", 443).tls(true).dns(dns));
    }

    /** Main returns while an engine, a driven queue, a listener and a lookup are alive. */
    private static void live() {
        Engine engine = new Engine();
        ExecutorService executor =
                Executors.newSingleThreadExecutor(
                        work -> {
                            Thread thread = new Thread(work);
                            thread.setDaemon(true);
                            return thread;
                        });
        engine.queue().drive(executor);
        engine.addListener(event -> {});
        Address somewhere =
                new Address(engine, new Address.Options("nowhere.invalid", 443).dns(Dns.system(engine)));
        new Selector(somewhere).nextAsync();
        Dns never = never(engine);
        new Selector(address(engine, never)).nextAsync();
    }

    /** Kept: a request that is collected has an answer, "abandoned". */
    private static final List<Request> ASKED = Collections.synchronizedList(new ArrayList<>());

    private static Dns never(Engine engine) {
        return Dns.answering(
                engine,
                request -> {
                    request.later();
                    ASKED.add(request);
                });
    }

    private static void exitInCallback() {
        Engine engine = new Engine();
        Dns dns =
                new Dns(
                        engine,
                        host -> {
                            System.exit(7);
                            return null;
                        });
        new Selector(address(engine, dns)).next();
    }

    private static long resident() throws IOException {
        for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) / 1024;
            }
        }
        throw new IOException("no VmRSS");
    }

    private static int select(Address address, boolean close) {
        Selector selector = new Selector(address);
        Selection selection = selector.next();
        int routes = 0;
        for (Route route : selection) {
            routes += route.hopPort() == 443 ? 1 : 0;
        }
        if (close) {
            selection.close();
            selector.close();
        }
        return routes;
    }

    /** 100 000 selections, half of them never closed, leave the process as it was. */
    private static void growth() throws Exception {
        Engine engine = new Engine();
        Dns called = new Dns(engine, host -> RoutesTest.ips("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"));
        Address[] addresses = {address(engine, Dns.hosts(engine, HOSTS)), address(engine, called)};
        long before = 0;
        for (int i = 0; i < 100_000; i++) {
            if (select(addresses[i & 1], (i & 2) == 0) != 4) {
                throw new IllegalStateException("routes are missing");
            }
            if (i % 5_000 == 0) {
                collect();
                // The first fifth fills caches, compiles, and brings the heap to its size.
                before = i == 20_000 ? resident() : before;
            }
        }
        collect();
        long grown = resident() - before;
        System.out.println("grown by " + grown + " MiB");
        // A selection that stayed would be half a KiB at least: 20 MiB for the unclosed ones, and theirs in Java beside.
        if (grown > 16) {
            throw new IllegalStateException("100 000 selections left " + grown + " MiB behind");
        }
    }

    private static void collect() throws InterruptedException {
        for (int i = 0; i < 2; i++) {
            System.gc();
            // References are handled by another thread; what it has not done yet the next round sees.
            Thread.sleep(5);
        }
    }

    /** Objects die in all orders while others use them. */
    private static void collector() throws Exception {
        AtomicReference<Throwable> failed = new AtomicReference<>();
        CountDownLatch over = new CountDownLatch(3);
        for (int t = 0; t < 3; t++) {
            threads(
                    failed,
                    over,
                    () -> {
                        for (int round = 0; round < 150; round++) {
                            Engine engine = new Engine();
                            Dns dns = new Dns(engine, host -> RoutesTest.ips("192.0.2.1", "2001:db8::1"));
                            Proxy proxy = new Proxy(ProxyKind.HTTP, "192.0.2.7", 3128).withCredentials("u", "p");
                            ProxySelector chooser = new ProxySelector(engine, uri -> Arrays.asList(proxy, null));
                            engine.addListener(event -> event.proxies().forEach(Object::toString));
                            Address address =
                                    new Address(
                                            engine,
                                            new Address.Options("a.example", 443)
                                                    .tls(true)
                                                    .dns(dns)
                                                    .proxySelector(chooser));
                            List<Route> kept = new ArrayList<>();
                            for (int i = 0; i < 10; i++) {
                                Selection selection = new Selector(address).next();
                                kept.add(selection.get(0));
                            }
                            kept.forEach(route -> engine.connectFailed(route, Failure.REFUSED));
                            if (round % 3 == 0) {
                                engine.close();
                            }
                        }
                    });
        }
        while (!over.await(2, TimeUnit.MILLISECONDS)) {
            System.gc();
        }
        rethrow(failed);
    }

    /** Whatever is closed while others use it: they end with a clear exception or well. */
    private static void closing() throws Exception {
        AtomicReference<Throwable> failed = new AtomicReference<>();
        for (int round = 0; round < 60; round++) {
            Engine engine = new Engine();
            Queue queue = new Queue();
            Filter filter = new Filter("deny 10.0.0.0/8\n");
            Dns never = never(engine);
            Selector waiting = new Selector(address(engine, never));
            Dial dial = new Dial(address(engine, never));
            InetAddress ten = Ip.parse("10.0.0.1");
            List<Runnable> users =
                    List.of(
                            () -> queue.poll(Duration.ofSeconds(120)),
                            () -> waiting.next(Duration.ofSeconds(120)),
                            () -> dial.run(Duration.ofSeconds(120)),
                            () -> {
                                while (true) {
                                    filter.allows(ten);
                                }
                            });
            CountDownLatch over = new CountDownLatch(users.size());
            for (Runnable user : users) {
                threads(
                        failed,
                        over,
                        () -> {
                            try {
                                user.run();
                            } catch (BywayException.Handle | BywayException.Canceled ended) {
                                // Closed before or during the call.
                            }
                        });
            }
            if (round % 2 == 0) {
                Thread.sleep(ThreadLocalRandom.current().nextInt(4));
            }
            List.of(filter, dial, waiting, queue).forEach(Handle::close);
            if (!over.await(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("a call goes on after close");
            }
            rethrow(failed);
            engine.close();
        }
    }

    /** A thread of the library calls into Java; it is a daemon and has its own name. */
    private static void foreign() throws Exception {
        Engine engine = new Engine();
        CompletableFuture<String> told = new CompletableFuture<>();
        engine.queue()
                .setNotify(
                        () -> {
                            Thread thread = Thread.currentThread();
                            told.complete(thread.getName() + (thread.isDaemon() ? " daemon" : ""));
                            throw new IllegalStateException("nobody is there to catch this");
                        });
        // The library has few threads for lookups: of so many some are awaited.
        Dns system = Dns.system(engine);
        List<Selector> selectors = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            String host = "h" + i + ".localhost";
            selectors.add(new Selector(new Address(engine, new Address.Options(host, 443).dns(system))));
        }
        for (Selector selector : selectors) {
            try {
                selector.pollNext();
            } catch (BywayException.Dns none) {
                // Not every system knows these names.
            }
        }
        System.out.println("told by " + told.get(150, TimeUnit.SECONDS));
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void threads(AtomicReference<Throwable> failed, CountDownLatch over, Work work) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                work.run();
                            } catch (Throwable thrown) {
                                failed.compareAndSet(null, thrown);
                            } finally {
                                over.countDown();
                            }
                        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void rethrow(AtomicReference<Throwable> failed) {
        if (failed.get() != null) {
            throw new IllegalStateException(failed.get());
        }
    }
}
