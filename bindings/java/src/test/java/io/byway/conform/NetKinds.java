package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonElement;
import io.byway.Address;
import io.byway.BywayException;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.Event;
import io.byway.Failure;
import io.byway.Ip;
import io.byway.Phase;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxyRequest;
import io.byway.ProxySelector;
import io.byway.Route;
import io.byway.Selection;
import io.byway.Selector;
import io.byway.Status;
import java.net.InetAddress;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** byway's own rules of bugs.jsonl: proxies that cannot be, and what one selector gives. */
final class NetKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of("bugs/make_proxy", NetKinds::makeProxy, "bugs/route_selector", NetKinds::routeSelector);

    private static final Map<Integer, String> ERRORS =
            Map.of(
                    Status.E_INVALID_PORT, "port_out_of_range",
                    Status.E_UNKNOWN_HOST, "unknown_host",
                    Status.E_PROXY_SELECTOR, "selector_failed",
                    Status.E_FILTERED, "filtered",
                    Status.E_NULL, "invalid_argument",
                    Status.E_ARGUMENT, "invalid_argument");

    private final Case given;
    private final boolean ownName;
    private final Engine engine;
    private final Address address;
    private final Map<String, Integer> steps = new HashMap<>();
    private final List<String> asked = new ArrayList<>();
    private List<Object> reported = new ArrayList<>();
    private volatile long now;

    /** {@code open}: a proxy selector that fails or names nobody means DIRECT. */
    private NetKinds(Case one, boolean open) {
        given = one.of("input");
        JsonElement calls = one.of("expect").get("dns_calls");
        ownName = calls != null && calls.isJsonArray();
        engine =
                new Engine(
                        new Engine.Options()
                                .monotonicNanos(() -> now)
                                .databaseCapacity(given.integer("cap", 4096))
                                .postponeFor(Duration.ofMillis((long) (given.number("ttl_s", 300) * 1000)))
                                .fastFallback(given.flag("fast_fallback", true))
                                .emptyIsDirect(open)
                                .directOnProxySelectorError(open));
        Dns dns = new Dns(engine, this::lookup);
        ProxySelector chooser = ProxySelector.answering(engine, this::choose);
        engine.addListener(List.of(Event.Kind.CONNECT_FAILED), this::onEvent);
        URI url = URI.create(given.text("url", "http://h/"));
        int port = url.getPort() > 0 ? url.getPort() : url.getScheme().equals("https") ? 443 : 80;
        address =
                new Address(
                        engine,
                        new Address.Options(url.getHost(), port)
                                .scheme(url.getScheme())
                                .dns(dns)
                                .proxySelector(chooser));
    }

    private static String errorName(BywayException error) {
        return ERRORS.getOrDefault(error.code(), error.name());
    }

    private static ProxyKind kind(String name) {
        return name.equals("SOCKS") ? ProxyKind.SOCKS5H : ProxyKind.HTTP;
    }

    private static void makeProxy(Case one) {
        Case input = one.of("input");
        Map<String, Object> got;
        try {
            Proxy proxy = new Proxy(kind(input.text("type")), input.text("host"), input.integer("port", 0));
            got = Map.of("text", proxy.toString());
        } catch (BywayException error) {
            got = Map.of("error", errorName(error));
        }
        same(got, one.get("expect"), "proxy");
    }

    private List<InetAddress> lookup(String host) {
        asked.add(host);
        if (ownName && host.equals("p1")) {
            // The proxy's own name is answered, whatever the case says.
            return List.of(Ip.parse("192.0.2.77"));
        }
        List<JsonElement> sequence = given.of("dns_sequence").list(host);
        if (!sequence.isEmpty()) {
            // The last answer stays.
            int at = steps.merge(host, 1, Integer::sum) - 1;
            List<JsonElement> ips = new ArrayList<>();
            sequence.get(Math.min(at, sequence.size() - 1)).getAsJsonArray().forEach(ips::add);
            return OkHttpWords.ips(ips);
        }
        return OkHttpWords.ips(given.of("dns").list(host));
    }

    private void choose(ProxyRequest request) {
        if (given.has("selector_error")) {
            request.fail(Status.E_ARGUMENT, 0, "scripted");
            return;
        }
        if (given.get("proxies") == null) {
            request.addDirect();
            return;
        }
        for (String text : given.texts("proxies")) {
            if (text == null) {
                // A list with nothing in one of its places.
                request.fail(Status.E_NULL, 0, "");
                return;
            }
            int space = text.indexOf(' ');
            int colon = text.lastIndexOf(':');
            if (space < 0) {
                request.addDirect();
            } else {
                int port = Integer.parseInt(text.substring(colon + 1));
                request.add(kind(text.substring(0, space)), text.substring(space + 1, colon), port);
            }
        }
    }

    private void onEvent(Event event) {
        if (event.error() != null) {
            reported.add(Map.of("error", errorName(event.error())));
        }
    }

    private void failRoutes() {
        for (String ip : given.texts("failed")) {
            Route route = Route.of(address, null, Ip.parse(ip), address.port());
            engine.connectFailed(route, Failure.REFUSED, Phase.TCP, 111);
        }
        // What was reported by the case itself is no word of the selector's.
        reported = new ArrayList<>();
        now = 1_000_000;
    }

    /** Everything one selector gives: selections and errors, up to the end. */
    private List<Object> selectAll() {
        List<Object> all = new ArrayList<>();
        try (Selector selector = new Selector(address)) {
            while (all.size() < 32) {
                try {
                    Selection selection = selector.next(Duration.ZERO);
                    if (selection == null) {
                        return all;
                    }
                    all.add(selection);
                } catch (BywayException error) {
                    all.add(error);
                }
            }
        }
        throw new Case.Fails("a selector without end");
    }

    private static String withPort(InetAddress ip, int port) {
        String text = Ip.text(ip);
        return (text.indexOf(':') >= 0 ? "[" + text + "]" : text) + ":" + port;
    }

    /** A route in the notation a case uses: as much as its expectation says. */
    private static String written(Route route, String like) {
        InetAddress hop = route.hop();
        if (hop == null) {
            return "unresolved hop";
        }
        Proxy proxy = route.proxy();
        if (proxy == null) {
            return like.startsWith("DIRECT@") ? "DIRECT@" + withPort(hop, route.hopPort()) : Ip.text(hop);
        }
        boolean http = proxy.kind() == ProxyKind.HTTP || proxy.kind() == ProxyKind.HTTPS;
        String text = (http ? "HTTP " : "SOCKS ") + proxy.host() + ":" + proxy.port();
        if (!like.contains("->")) {
            return text + "@" + Ip.text(hop);
        }
        InetAddress target = route.target();
        return text
                + " -> "
                + (target == null
                        ? route.host() + ":" + route.targetPort() + " unresolved"
                        : withPort(target, route.targetPort()));
    }

    /** What a case expects at a place, if it says. */
    private static JsonElement at(JsonElement want, int index) {
        return want != null && want.isJsonArray() && index < want.getAsJsonArray().size()
                ? want.getAsJsonArray().get(index)
                : null;
    }

    private static Object shown(Object given, JsonElement like) {
        if (given instanceof Selection) {
            List<Object> routes = new ArrayList<>();
            for (Route route : (Selection) given) {
                JsonElement notation = at(like, routes.size());
                if (!Case.isText(notation)) {
                    notation = at(like, 0);
                }
                routes.add(written(route, Case.isText(notation) ? notation.getAsString() : ""));
            }
            return routes;
        }
        Map<String, Object> error = new LinkedHashMap<>();
        error.put("error", errorName((BywayException) given));
        if (like != null && like.isJsonObject() && like.getAsJsonObject().has("host")) {
            error.put("host", ((BywayException) given).subject());
        }
        return error;
    }

    /**
     * byway goes on in the same call where an entry cannot serve, and reports it: the events take the place of the
     * errors.
     */
    private Object readNext(List<Object> first, JsonElement want) {
        JsonElement begin = at(want, 0);
        boolean byEvents =
                want.getAsJsonArray().size() > 2
                        && begin.isJsonObject()
                        && begin.getAsJsonObject().has("error");
        List<Object> all = new ArrayList<>(byEvents ? reported : List.of());
        for (Object one : first) {
            if (byEvents && one instanceof BywayException) {
                return errorName((BywayException) one);
            }
            all.add(shown(one, at(want, all.size())));
        }
        all.add("end");
        return all;
    }

    private Object read(List<List<Object>> rounds, String key, JsonElement want) {
        List<Object> first = rounds.get(0);
        List<Object> all = new ArrayList<>();
        switch (key) {
            case "next":
                return readNext(first, want);
            case "order":
                return first.isEmpty() ? null : shown(first.get(0), want);
            case "error":
                return !first.isEmpty() && first.get(0) instanceof BywayException
                        ? errorName((BywayException) first.get(0))
                        : null;
            case "selections":
                first.forEach(one -> all.add(shown(one, at(want, all.size()))));
                return all;
            case "first_routes":
                for (List<Object> round : rounds) {
                    JsonElement like = at(want, all.size());
                    boolean some = !round.isEmpty() && round.get(0) instanceof Selection;
                    all.add(
                            some
                                    ? written(
                                            ((Selection) round.get(0)).get(0), Case.isText(like) ? like.getAsString() : "")
                                    : null);
                }
                return all;
            case "dns_calls":
                // The origin's name must not be asked for; the proxy's own is another matter.
                asked.stream().filter(address.host()::equals).forEach(all::add);
                return all;
            default:
                throw new Case.Fails("no reading for " + key);
        }
    }

    /**
     * As the case stands; where the answer is OkHttp's policy (no proxies or a failing selector mean DIRECT) the default
     * must fail closed, and the policy must give what the case says.
     */
    private static void routeSelector(Case one) {
        Case input = one.of("input");
        Case expect = one.get("expect_byway") != null ? one.of("expect_byway") : one.of("expect");
        boolean failsClosed =
                input.has("selector_error") || (input.get("proxies") != null && input.list("proxies").isEmpty());
        if (failsClosed) {
            NetKinds closed = new NetKinds(one, false);
            List<Object> got = closed.selectAll();
            closed.engine.close();
            need(got.size() == 1 && got.get(0) instanceof BywayException, "the default must fail closed");
        }
        NetKinds script = new NetKinds(one, failsClosed);
        try (Engine ends = script.engine) {
            script.failRoutes();
            List<List<Object>> rounds = new ArrayList<>();
            for (int i = 0; i < input.integer("selections_count", 1); i++) {
                rounds.add(script.selectAll());
            }
            expect.members().forEach((key, want) -> same(script.read(rounds, key, want), want, key));
        }
    }
}
