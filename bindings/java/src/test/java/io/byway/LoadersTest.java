package io.byway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Class loaders and kinds of threads a JVM may have more of than one. */
@Timeout(300)
class LoadersTest {
    /** Two web applications in one server: each has classes and engine of its own. */
    @Test
    void twoClassLoadersHaveACopyEach() throws Exception {
        URL classes = Engine.class.getProtectionDomain().getCodeSource().getLocation();
        List<String> paths = new ArrayList<>(List.of(Library.path()));
        for (int i = 0; i < 2; i++) {
            URLClassLoader loader = new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader());
            Class<?> library = loader.loadClass("io.byway.Library");
            assertNotSame(Library.class, library);
            paths.add((String) library.getMethod("path").invoke(null));
            assertEquals("0.1.0", library.getMethod("version").invoke(null));
            // A callback finds the classes of its own loader.
            Class<?> engineClass = loader.loadClass("io.byway.Engine");
            Object engine = engineClass.getConstructor().newInstance();
            Class<?> failure = loader.loadClass("io.byway.BywayException");
            Method setRule = engineClass.getMethod("setRule", String.class, String.class);
            try {
                setRule.invoke(engine, "a.condition-router", "conditions: [");
            } catch (java.lang.reflect.InvocationTargetException thrown) {
                assertEquals(true, failure.isInstance(thrown.getCause()), thrown.getCause().toString());
            }
            engineClass.getMethod("close").invoke(engine);
        }
        assertNotEquals(paths.get(0), paths.get(1));
        assertNotEquals(paths.get(1), paths.get(2));
    }

    /** Blocked calls hold a carrier; futures hold nothing: many more waiters than carriers make progress. */
    @Test
    void virtualThreadsWaitForFutures() throws Exception {
        ExecutorService virtual;
        try {
            virtual = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        } catch (NoSuchMethodException older) {
            assumeTrue(false, "this JVM has no virtual threads");
            return;
        }
        ExecutorService answers = Executors.newSingleThreadExecutor();
        try (Engine engine = new Engine()) {
            engine.queue().drive(virtual);
            CompletableFuture<Void> begin = new CompletableFuture<>();
            Dns dns =
                    Dns.answering(
                            engine,
                            request -> {
                                request.later();
                                begin.thenRunAsync(() -> request.add(Ip.parse("192.0.2.1")).finish(), answers);
                            });
            List<CompletableFuture<InetAddress>> hops = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                Address address = new Address(engine, new Address.Options("h" + i + ".example", 443).dns(dns));
                hops.add(
                        CompletableFuture.supplyAsync(
                                () -> {
                                    try (Selector selector = new Selector(address)) {
                                        return selector.nextAsync().join().get(0).hop();
                                    }
                                },
                                virtual));
            }
            begin.complete(null);
            for (CompletableFuture<InetAddress> hop : hops) {
                assertEquals(Ip.parse("192.0.2.1"), hop.get(240, TimeUnit.SECONDS));
            }
        } finally {
            virtual.shutdown();
            answers.shutdown();
        }
    }
}
