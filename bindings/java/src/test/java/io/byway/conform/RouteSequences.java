package io.byway.conform;

import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
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
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** bugs.jsonl sequence, the first half: what an engine remembers of routes that failed, and who hears of it. */
final class RouteSequences implements AutoCloseable {
    private volatile long now;
    private final Map<String, List<String>> names = new HashMap<>();
    private final Map<String, Object> got = new HashMap<>();
    private final Engine engine;
    private final Dns dns;
    private final Address address;
    private int selects;

    private RouteSequences(Case input) {
        Engine.Options options = new Engine.Options().monotonicNanos(() -> now);
        if (input.has("cap")) {
            options.databaseCapacity(input.integer("cap", 0));
        }
        if (input.has("ttl_s")) {
            options.postponeFor(Duration.ofSeconds(input.integer("ttl_s", 0)));
        }
        engine = new Engine(options);
        names.put("h", input.has("dns") ? input.of("dns").texts("h") : List.of("192.0.2.1", "192.0.2.2"));
        dns =
                new Dns(
                        engine,
                        host -> {
                            List<InetAddress> ips = new ArrayList<>();
                            names.getOrDefault(host, List.of()).forEach(ip -> ips.add(Ip.parse(ip)));
                            return ips;
                        });
        address = newAddress();
    }

    private Address newAddress() {
        return new Address(engine, new Address.Options("h", 80).dns(dns));
    }

    @Override
    public void close() {
        engine.close();
    }

    /** {@code r1} is the first route, another name its address. */
    private Route route(String name) {
        String ip = name.startsWith("r") ? "192.0.2." + name.substring(1) : name;
        return Route.of(address, null, Ip.parse(ip), 80);
    }

    private void failed(Route route, Failure failure) {
        engine.connectFailed(route, failure, Phase.TCP, 111);
    }

    /** Everything one selector of an address gives. */
    private static List<List<String>> selected(Address of) {
        List<List<String>> all = new ArrayList<>();
        try (Selector selector = new Selector(of)) {
            for (Selection selection = selector.next(Duration.ZERO);
                    selection != null;
                    selection = selector.next(Duration.ZERO)) {
                List<String> ips = new ArrayList<>();
                for (Route route : selection) {
                    ips.add(OkHttpWords.text(route.hop()));
                }
                all.add(ips);
            }
        }
        return all;
    }

    private void select() {
        List<List<String>> all = selected(address);
        got.put("select_" + ++selects, all);
        got.put(
                "selections",
                all.stream()
                        .map(list -> list.stream().map(ip -> ip.replace("192.0.2.", "r")).collect(Collectors.toList()))
                        .collect(Collectors.toList()));
    }

    private void failMany(int count) {
        long most = 0;
        for (int n = 0; n < count; n++) {
            String ip = "10." + (n >> 16 & 255) + "." + (n >> 8 & 255) + "." + (n & 255);
            failed(Route.of(address, null, Ip.parse(ip), 80), Failure.REFUSED);
            if (n % 1000 == 0 || n + 1 == count) {
                most = Math.max(most, engine.stats().databaseRecords());
            }
        }
        got.put("size_max", most);
    }

    private void step(JsonArray words) {
        JsonElement argument = words.size() > 1 ? words.get(1) : null;
        String text = Case.isText(argument) ? argument.getAsString() : "";
        String first = names.get("h").get(0);
        String named = text.startsWith("first route") ? first : text;
        switch (words.get(0).getAsString()) {
            case "fail_distinct_routes":
                failMany(argument.getAsInt());
                break;
            case "advance_clock_s":
                now += argument.getAsLong() * 1_000_000_000L;
                break;
            case "notify_network_changed":
                engine.networkChanged();
                break;
            case "select":
                if (argument == null) { // else the step says how the address is made
                    select();
                }
                break;
            case "select through copy 2":
                got.put("first_route_postponed", !selected(newAddress()).get(0).get(0).equals(first));
                break;
            case "report_connected":
                engine.connected(route(named));
                break;
            case "report_exchange_failed":
                failed(route(named), Failure.IO);
                break;
            case "report_connect_failed":
            case "fail":
                failed(route(named), Failure.REFUSED);
                break;
            case "should_postpone":
                got.put("result", engine.shouldPostpone(route(named)));
                break;
            default:
                throw new Case.Fails("step " + words);
        }
    }

    /** As the case writes an entry, {@code HTTP p1:3128}. */
    private static Proxy proxyOf(String entry) {
        int colon = entry.lastIndexOf(':');
        int port = Integer.parseInt(entry.substring(colon + 1));
        return new Proxy(ProxyKind.HTTP, entry.substring("HTTP ".length(), colon), port);
    }

    /** Which failures a proxy selector hears of. */
    private static void told(Case one) {
        List<Object> heard = new ArrayList<>();
        List<Proxy> proxies =
                one.of("input").texts("proxies").stream().map(RouteSequences::proxyOf).collect(Collectors.toList());
        ProxySelector.Choice choice =
                new ProxySelector.Choice() {
                    @Override
                    public List<Proxy> select(String uri) {
                        return proxies;
                    }

                    @Override
                    public void connectFailed(String uri, Route route, Failure failure, int osErrno) {
                        String place = route.proxy().host() + ":" + route.proxy().port();
                        heard.add(List.of(place, failure.name().toLowerCase(Locale.ROOT)));
                    }
                };
        try (Engine engine = new Engine()) {
            Dns dns = new Dns(engine, host -> List.of(Ip.parse("192.0.2.1")));
            ProxySelector chooser = new ProxySelector(engine, choice);
            Address address = new Address(engine, new Address.Options("h", 80).dns(dns).proxySelector(chooser));
            Selector selector = new Selector(address);
            Route route = null;
            for (JsonElement step : one.of("input").list("steps")) {
                JsonArray words = step.getAsJsonArray();
                switch (words.get(0).getAsString()) {
                    case "next":
                        route = selector.next(Duration.ZERO).get(0);
                        break;
                    case "report_connected":
                        engine.connected(route);
                        break;
                    case "report_connect_failed":
                        Failure failure = Failure.valueOf(words.get(1).getAsString().toUpperCase(Locale.ROOT));
                        engine.connectFailed(route, failure, Phase.TCP, 111);
                        break;
                    default:
                        throw new Case.Fails("step " + words);
                }
            }
        }
        same(heard, one.of("expect").get("selector_connect_failed_calls"), "heard");
    }

    static void run(Case one) {
        if (one.text("area").equals("selector")) {
            told(one);
            return;
        }
        if (!one.text("area").equals("db")) {
            throw new Case.Skips("no selector looks for wpad by names; bugs.jsonl wpad_names shows which would be asked");
        }
        try (RouteSequences it = new RouteSequences(one.of("input"))) {
            one.of("input").list("steps").forEach(step -> it.step(step.getAsJsonArray()));
            one.of("expect").members().forEach((name, want) -> same(it.got.get(name), want, name));
        }
    }
}
