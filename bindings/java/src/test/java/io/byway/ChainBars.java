package io.byway;

import java.util.ArrayList;
import java.util.List;

/** What a call's routing costs, against a JNI call that does nothing. */
final class ChainBars {
    private static final String SERVICE = "com.foo.Bar";

    private ChainBars() {}

    static void run(Engine engine, double empty) {
        List<String> urls = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            urls.add("tri://10.0." + i / 250 + "." + i % 250 + ":20880/" + SERVICE + "?interface=" + SERVICE);
        }
        Chain chain = new Chain(engine, "consumer://10.20.1.9/" + SERVICE + "?interface=" + SERVICE);
        chain.setInvokers(new Invokers(engine, urls));
        engine.setRule(
                SERVICE + "::.condition-router",
                "scope: service\nforce: true\nconditions: ['method=hello => host=10.0.1.*']\n");
        Session session = chain.session();
        int hello = chain.internMethod("hello");
        Invocation call = new Invocation().methodId(hello);
        Invocation fresh = new Invocation();
        long[] tags = new long[64];
        double memoised =
                Bars.cost(
                        "a memoised route: session, interned method",
                        200_000,
                        count -> {
                            long sum = 0;
                            for (int i = 0; i < count; i++) {
                                sum += session.route(call) == null ? 0 : 1;
                            }
                            return sum;
                        });
        Bars.cost(
                "the same, the invocation filled anew",
                50_000,
                count -> {
                    long sum = 0;
                    for (int i = 0; i < count; i++) {
                        sum += session.route(fresh.reset().methodId(hello)) == null ? 0 : 1;
                    }
                    return sum;
                });
        Bars.cost(
                "250 of 1000 providers, 64 tags into an array",
                50_000,
                count -> {
                    long sum = 0;
                    for (int i = 0; i < count; i++) {
                        sum += session.tags(call, tags);
                    }
                    return sum;
                });
        Bars.cost(
                "one of them picked",
                50_000,
                count -> {
                    long sum = 0;
                    for (int i = 0; i < count; i++) {
                        sum += session.pick(call).row();
                    }
                    return sum;
                });
        Bars.bar("java-memoised-route/empty-call", memoised / empty, 2);
    }
}
