package io.byway.conform;

import static io.byway.conform.Case.same;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.byway.Address;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.Failure;
import io.byway.Ip;
import io.byway.Phase;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import io.byway.Route;
import io.byway.Selection;
import io.byway.Selector;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Proxies that failed: where they stand in later lists. Failures and successes are reported for a selector's routes. */
final class RetryKinds {
    static final Map<String, Case.Run> KINDS = Map.of("proxy/retry", RetryKinds::retry);

    private RetryKinds() {}

    private static ProxySelector fixed(Engine engine, List<String> entries) {
        List<Proxy> proxies = new ArrayList<>();
        for (String text : entries) {
            int space = text.indexOf(' ');
            int colon = text.lastIndexOf(':');
            proxies.add(
                    space < 0
                            ? null
                            : new Proxy(
                                    ProxyKind.valueOf(text.substring(0, space).toUpperCase(Locale.ROOT)),
                                    text.substring(space + 1, colon),
                                    Integer.parseInt(text.substring(colon + 1))));
        }
        return ProxySelector.fixed(engine, proxies);
    }

    /** As these cases write an entry. */
    private static String entry(Proxy proxy) {
        return proxy == null
                ? "direct"
                : proxy.kind().name().toLowerCase(Locale.ROOT) + " " + proxy.host() + ":" + proxy.port();
    }

    /** One connection over a list: these entries fail when their turn comes, this one stands. */
    private static void connection(Engine engine, List<String> entries, List<String> failing, String standing) {
        Dns dns = new Dns(engine, host -> List.of(Ip.parse("192.0.2.1")));
        Address address =
                new Address(
                        engine,
                        new Address.Options("target.test", 80).proxySelector(fixed(engine, entries)).dns(dns));
        try (Selector selector = new Selector(address)) {
            for (Selection selection : selector) {
                for (Route route : selection) {
                    String entry = entry(route.proxy());
                    if (failing.contains(entry)) {
                        engine.connectFailed(route, Failure.REFUSED, Phase.TCP, 111);
                    } else if (entry.equals(standing)) {
                        engine.connected(route);
                        return;
                    }
                }
            }
        }
    }

    private static void retry(Case one) {
        Case given = one.of("input");
        if (given.has("fallbacks")) {
            throw new Case.Skips("marks of different length in one engine");
        }
        // byway has no "never while bad" flag: a list without such an entry is what the flag asks for.
        List<String> entries = new ArrayList<>(given.texts("list"));
        entries.removeAll(given.texts("bad_never_while_bad"));
        boolean fallback = given.get("fallback") != null;
        List<String> also = given.of("fallback").texts("also_bad");
        // Nobody tries what stands behind the entry that works.
        if (fallback
                && entries.size() > 2
                && also.contains(entries.get(entries.size() - 1))
                && !entries.get(0).equals("direct")) {
            throw new Case.Skips("an entry behind the one that works fails");
        }
        long[] now = {(long) given.number("at_s", 0)};
        Engine.Options options = new Engine.Options().monotonicNanos(() -> now[0] * 1_000_000_000L);
        if (fallback) {
            options.badProxy(Duration.ofSeconds((long) given.of("fallback").number("delay_s", 0)));
        }
        try (Engine engine = new Engine(options)) {
            for (String bad : given.texts("bad")) {
                connection(engine, List.of(bad, "http works.test:1"), List.of(bad), "http works.test:1");
            }
            if (fallback) {
                // Chromium's step "the first entry failed, go on behind it": it and those named beside it, then the
                // first left.
                List<String> failing = new ArrayList<>(also);
                failing.add(entries.get(0));
                String next = entries.stream().filter(entry -> !failing.contains(entry)).findFirst().orElse(null);
                connection(engine, entries, failing, next);
            }
            happen(engine, entries, given.texts("events"));
            now[0] = (long) given.number("ask_at_s", now[0]);
            judge(engine, entries, one.of("expect"));
        }
    }

    private static void happen(Engine engine, List<String> entries, List<String> events) {
        List<String> failing = new ArrayList<>();
        String standing = null;
        for (String event : events) {
            if (event.startsWith("fail ")) {
                failing.add(event.substring(5));
            } else if (event.startsWith("ok ")) {
                standing = event.substring(3);
            }
        }
        if (!events.isEmpty()) {
            connection(engine, entries, failing, standing);
        }
        if (events.contains("network_changed")) {
            engine.networkChanged();
        }
    }

    private static void judge(Engine engine, List<String> entries, Case expect) {
        List<Object> order = new ArrayList<>();
        engine.proxiesForUrl(fixed(engine, entries), "http://target.test/", null, Duration.ofSeconds(30))
                .forEach(proxy -> order.add(entry(proxy)));
        List<JsonObject> marked = new ArrayList<>();
        JsonParser.parseString(engine.badProxies()).getAsJsonArray().forEach(mark -> marked.add(mark.getAsJsonObject()));
        if (expect.has("order")) {
            same(order, expect.get("order"), "order");
        }
        if (expect.has("marked")) {
            List<String> got = new ArrayList<>();
            marked.forEach(
                    mark ->
                            got.add(
                                    mark.get("kind").getAsString()
                                            + " "
                                            + mark.get("host").getAsString()
                                            + ":"
                                            + mark.get("port").getAsInt()));
            List<String> want = expect.texts("marked");
            Collections.sort(got);
            Collections.sort(want);
            same(got, want, "marked");
        }
        if (expect.has("delay_s")) {
            long remaining = marked.isEmpty() ? 0 : marked.get(0).get("remaining_ms").getAsLong();
            same(remaining, expect.number("delay_s", 0) * 1000, "delay");
        }
    }
}
