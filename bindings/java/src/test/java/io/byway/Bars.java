package io.byway;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Locale;

/**
 * What crossing into the library costs: one line a bar, {@code bar NAME VALUE LIMIT ok|short}, ratios within one run. CPU
 * time of this thread; the best of many rounds.
 */
final class Bars {
    private static final ThreadMXBean TIMES = ManagementFactory.getThreadMXBean();
    private static final String HOSTS =
            "192.0.2.1 a.example\n192.0.2.2 a.example\n2001:db8::1 a.example\n2001:db8::2 a.example\n";
    private static final int ROUNDS = 60;

    interface Work {
        /** Does it so many times; what it returns keeps the compiler from doing nothing. */
        long times(int count);
    }

    private static long sink;

    private Bars() {}

    /** Nanoseconds of one. */
    static double cost(String name, int count, Work work) {
        double best = Double.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long begin = TIMES.getCurrentThreadCpuTime();
            sink += work.times(count);
            best = Math.min(best, (TIMES.getCurrentThreadCpuTime() - begin) / (double) count);
        }
        System.out.printf(Locale.ROOT, "%-48s %10.1f ns%n", name, best);
        return best;
    }

    static void bar(String name, double value, double limit) {
        System.out.printf(Locale.ROOT, "bar %s %.2f %.2f %s%n", name, value, limit, value <= limit ? "ok" : "short");
    }

    public static void main(String[] arguments) {
        try (Engine engine = new Engine()) {
            run(engine);
        }
        if (sink == 42) {
            System.out.println();
        }
    }

    private static void run(Engine engine) {
        Address address =
                new Address(
                        engine, new Address.Options("a.example", 443).tls(true).dns(Dns.hosts(engine, HOSTS)));
        Address called =
                new Address(
                        engine,
                        new Address.Options("a.example", 443)
                                .tls(true)
                                .dns(new Dns(engine, host -> ANSWER)));
        double empty =
                cost(
                        "an empty JNI call",
                        200_000,
                        count -> {
                            long sum = 0;
                            for (int i = 0; i < count; i++) {
                                sum += Library.nothing0(i);
                            }
                            return sum;
                        });
        Selection selection = new Selector(address).next();
        Records buffer = Records.take();
        long self = selection.enter();
        double records =
                cost(
                        "four routes of a selection into memory",
                        100_000,
                        count -> {
                            for (int i = 0; i < count; i++) {
                                Selection.records(self, buffer.address, buffer.capacity());
                            }
                            return buffer.count();
                        });
        selection.exit();
        Records.give(buffer);
        cost("a plan of four routes, all read", 30_000, count -> plans(address, count));
        cost("selector, selection, four routes read, closed", 20_000, count -> selections(address, count));
        cost("the same, with a lookup in Java", 20_000, count -> selections(called, count));
        bar("java-selection-of-4/empty-call", records / empty, 8);
        ChainBars.run(engine, empty);
    }

    private static final List<java.net.InetAddress> ANSWER =
            RoutesTest.ips("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2");

    private static long read(Route route) {
        return route.hopPort() + route.targetPort() + route.flags() + route.host().length();
    }

    private static long plans(Address address, int count) {
        long sum = 0;
        for (int i = 0; i < count; i++) {
            for (Route route : Selector.plan(address)) {
                sum += read(route);
            }
        }
        return sum;
    }

    private static long selections(Address address, int count) {
        long sum = 0;
        for (int i = 0; i < count; i++) {
            try (Selector selector = new Selector(address);
                    Selection selection = selector.next()) {
                for (Route route : selection) {
                    sum += read(route);
                }
            }
        }
        return sum;
    }
}
