package io.byway;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What the JVM's face costs, as ratios to a native call that does nothing, in one run: `bar NAME VALUE LIMIT ok|short`.
 * Thread CPU time; subjects take turns, and the median of their rounds counts.
 */
public final class Bars {
    private static final int ROUNDS = 41;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** What is measured; the sum keeps the compiler from leaving it out. */
    private interface Subject {
        long run(int times);
    }

    private static final List<String> NAMES = new ArrayList<>();
    private static final List<Subject> SUBJECTS = new ArrayList<>();
    private static final List<Integer> TIMES = new ArrayList<>();
    private static volatile long sink;
    private static int status;

    private Bars() {}

    private static void subject(String name, int times, Subject subject) {
        NAMES.add(name);
        TIMES.add(times);
        SUBJECTS.add(subject);
    }

    private static double[] measure() {
        double[][] rounds = new double[SUBJECTS.size()][ROUNDS];
        // Rounds in front of the first, until everything is compiled.
        for (int round = -20; round < ROUNDS; round++) {
            for (int i = 0; i < SUBJECTS.size(); i++) {
                long began = THREADS.getCurrentThreadCpuTime();
                sink += SUBJECTS.get(i).run(TIMES.get(i));
                double took = (double) (THREADS.getCurrentThreadCpuTime() - began) / TIMES.get(i);
                if (round >= 0) {
                    rounds[i][round] = took;
                }
            }
        }
        double[] medians = new double[rounds.length];
        for (int i = 0; i < rounds.length; i++) {
            Arrays.sort(rounds[i]);
            medians[i] = rounds[i][ROUNDS / 2];
            System.out.printf(Locale.ROOT, "%-40s %9.1f ns%n", NAMES.get(i), medians[i]);
        }
        return medians;
    }

    private static void bar(String name, double value, double limit) {
        boolean good = value <= limit;
        status |= good ? 0 : 1;
        System.out.printf(Locale.ROOT, "bar %s %.2f %.2f %s%n", name, value, limit, good ? "ok" : "short");
    }

    /** No arguments. Ends with 1 when a bar is short. */
    public static void main(String[] arguments) {
        try (Engine engine = new Engine()) {
            String service = "com.foo.Bar";
            List<String> urls = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                urls.add("tri://10.0." + i / 250 + "." + i % 250 + ":20880/" + service + "?interface=" + service);
            }
            Chain chain = new Chain(engine, "consumer://10.20.1.9/" + service + "?interface=" + service);
            chain.setInvokers(new Invokers(engine, urls));
            engine.setRule(
                    service + "::.condition-router",
                    "scope: service\nforce: true\nconditions: ['method=hello => host=10.0.1.*']\n");
            Session session = chain.session();
            int hello = chain.internMethod("hello");
            Invocation call = new Invocation().methodId(hello);
            Invocation filled = new Invocation();
            long[] tags = new long[64];
            Address address =
                    new Address(
                            engine,
                            new Address.Options("a.example", 443)
                                    .tls(true)
                                    .dns(Dns.hosts(engine, "192.0.2.1 a.example\n192.0.2.2 a.example\n"
                                            + "192.0.2.3 a.example\n192.0.2.4 a.example\n")));

            subject("an empty native", 200_000, times -> {
                long sum = 0;
                for (int i = 0; i < times; i++) {
                    sum += Library.nothing0(i);
                }
                return sum;
            });
            subject("memoised route, interned method", 200_000, times -> {
                long sum = 0;
                for (int i = 0; i < times; i++) {
                    sum += session.route(call) == null ? 0 : 1;
                }
                return sum;
            });
            subject("memoised route, filled anew", 50_000, times -> {
                long sum = 0;
                for (int i = 0; i < times; i++) {
                    sum += session.route(filled.reset().methodId(hello)) == null ? 0 : 1;
                }
                return sum;
            });
            subject("its 250 providers, 64 tags of them", 50_000, times -> {
                long sum = 0;
                for (int i = 0; i < times; i++) {
                    sum += session.tags(call, tags);
                }
                return sum;
            });
            subject("pick of one of them", 50_000, times -> {
                long sum = 0;
                for (int i = 0; i < times; i++) {
                    sum += session.pick(call).row();
                }
                return sum;
            });
            subject("whole selection, 4 routes", 10_000, times -> {
                long sum = 0;
                for (int i = 0; i < times; i++) {
                    try (Selector selector = new Selector(address)) {
                        sum += selector.next().size();
                    }
                }
                return sum;
            });
            double[] took = measure();
            bar("java_memoised_route_to_empty_native", took[1] / took[0], 2);
        }
        System.exit(status);
    }
}
