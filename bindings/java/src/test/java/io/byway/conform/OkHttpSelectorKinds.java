package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonElement;
import io.byway.Address;
import io.byway.BywayException;
import io.byway.Dns;
import io.byway.DnsRequest;
import io.byway.Engine;
import io.byway.Event;
import io.byway.FailedRoute;
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
import io.byway.Service;
import io.byway.Status;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** okhttp.jsonl route_selector and route_database: scripts of selections, reports and questions against one engine. */
final class OkHttpSelectorKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of("okhttp/route_selector", OkHttpSelectorKinds::run, "okhttp/route_database", OkHttpSelectorKinds::run);

    private static final Map<Integer, String> ERRORS =
            Map.of(
                    Status.E_UNKNOWN_HOST, "unknown_host",
                    Status.E_EMPTY_ANSWER, "unknown_host",
                    Status.E_INVALID_PORT, "socket",
                    Status.E_ARGUMENT, "illegal_argument",
                    Status.E_NULL, "null_pointer",
                    Status.E_HOST, "runtime");

    private static final Map<String, Object> NOTHING_LEFT = Map.of("error", "no_such_element", "message", "");

    private final Case one;
    private final Engine engine;
    private final Dns dns;
    private final ProxySelector chooser;
    private final Map<String, List<JsonElement>> names = new LinkedHashMap<>();
    private final Map<String, Route> saved = new LinkedHashMap<>();
    private JsonElement proxies;
    private int selectCount;
    private Address address;
    private Selector selector;
    private Selection selection;
    private Iterator<Route> cursor;
    private List<Object> uris;
    private List<Object> asked;
    private List<Map<String, Object>> events;

    private OkHttpSelectorKinds(Case one) {
        this.one = one;
        engine =
                new Engine(
                        new Engine.Options()
                                .compat(OkHttpWords.line(one))
                                .fastFallback(one.flag("fast_fallback", true)));
        dns = Dns.answering(engine, this::lookup);
        chooser = ProxySelector.answering(engine, this::choose);
        engine.addListener(
                List.of(
                        Event.Kind.PROXY_SELECT_START,
                        Event.Kind.PROXY_SELECT_END,
                        Event.Kind.DNS_START,
                        Event.Kind.DNS_END),
                this::onEvent);
        addNames(one.of("dns"));
        proxies = one.get("selector");
        beginStep();
    }

    private void addNames(Case more) {
        more.members().keySet().forEach(name -> names.put(name, more.list(name)));
    }

    private void beginStep() {
        uris = new ArrayList<>();
        asked = new ArrayList<>();
        events = new ArrayList<>();
    }

    // What byway asks.

    private void lookup(DnsRequest request) {
        asked.add(request.host());
        for (JsonElement element : names.getOrDefault(request.host(), List.of())) {
            Case item = element.isJsonObject() ? new Case(element.getAsJsonObject()) : null;
            if (item == null || item.get("ip") != null) {
                request.add(Ip.parse(item == null ? element.getAsString() : item.text("ip")));
            } else {
                request.addService(
                        new Service()
                                .target(item.text("target"))
                                .priority(0)
                                .port(item.integer("port", 0))
                                .ech(DialogueKinds.bytes(item.text("ech_hex")))
                                .hints(OkHttpWords.ips(item.list("hints"))));
            }
        }
    }

    private void choose(ProxyRequest request) {
        uris.add(request.uri());
        selectCount++;
        if (proxies != null && proxies.isJsonObject()) {
            Case error = new Case(proxies.getAsJsonObject());
            boolean argument = error.text("error").equals("illegal_argument");
            request.fail(argument ? Status.E_ARGUMENT : Status.E_HOST, 0, error.text("message"));
            return;
        }
        if (proxies == null) {
            return;
        }
        for (JsonElement element : proxies.getAsJsonArray()) {
            Case item = new Case(element.isJsonObject() ? element.getAsJsonObject() : null);
            String kind = item.text("type");
            int port = item.integer("port", 0);
            if (kind.equals("DIRECT")) {
                request.addDirect();
            } else if (kind.isEmpty()) {
                // A list with nothing in one of its places.
                request.fail(Status.E_NULL, 0, "");
                return;
            } else if (item.get("ip") == null || port < 1) {
                // No proxy has port 0; an entry may, and is then one failed entry.
                request.add(
                        kind.equals("SOCKS") ? ProxyKind.SOCKS5H : ProxyKind.HTTP,
                        item.text("ip", item.text("host")),
                        port);
            } else {
                request.add(OkHttpWords.proxy(item));
            }
        }
    }

    private void onEvent(Event event) {
        boolean aboutProxies =
                event.kind() == Event.Kind.PROXY_SELECT_START || event.kind() == Event.Kind.PROXY_SELECT_END;
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("event", event.kind().name().toLowerCase(java.util.Locale.ROOT));
        shown.put(aboutProxies ? "url" : "host", event.subject());
        if (event.kind() == Event.Kind.PROXY_SELECT_END) {
            List<Object> offered = new ArrayList<>();
            event.proxies().forEach(proxy -> offered.add(shown(proxy)));
            shown.put("proxies", offered);
        }
        if (event.kind() == Event.Kind.DNS_END) {
            shown.put("ips", OkHttpWords.texts(event.addresses()));
        }
        events.add(shown);
    }

    private static Map<String, Object> shown(Proxy proxy) {
        if (proxy == null) {
            return Map.of("type", "DIRECT");
        }
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("type", proxy.kind() == ProxyKind.HTTP || proxy.kind() == ProxyKind.HTTPS ? "HTTP" : "SOCKS");
        shown.put("host", proxy.host());
        shown.put("port", proxy.port());
        // A host that is a literal is its own address.
        String ip = OkHttpWords.text(proxy.address());
        if (ip != null && !ip.equals(proxy.host())) {
            shown.put("ip", ip);
        }
        return shown;
    }

    private static Map<String, Object> shown(BywayException error) {
        return Map.of("error", ERRORS.getOrDefault(error.code(), error.name()), "message", error.reason());
    }

    private Map<String, Object> shown(Route route) {
        InetSocketAddress socket = route.socketAddress();
        Map<String, Object> place = new LinkedHashMap<>();
        if (socket.isUnresolved()) {
            place.put("unresolved_host", address.host());
        } else {
            place.put("ip", Ip.text(socket.getAddress()));
        }
        place.put("port", socket.getPort());
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("proxy", shown(route.proxy()));
        shown.put("socket", place);
        shown.put("requires_tunnel", route.requiresTunnel());
        Service service = route.service();
        if (service != null && service.ech().length > 0) {
            shown.put("ech_hex", DialogueKinds.hex(service.ech()));
        }
        return shown;
    }

    // What the case does.

    private Map<String, Object> perform(Case step) {
        try {
            return done(step);
        } catch (BywayException error) {
            return shown(error);
        }
    }

    private Map<String, Object> done(Case step) {
        Route route = saved.get(step.text("route"));
        switch (step.text("op")) {
            case "new_selector":
                newSelector(step);
                return Map.of();
            case "has_next_selection":
                return Map.of("value", selector.mayHaveNext());
            case "next_selection":
                return nextSelection();
            case "selection_has_next":
                return Map.of("value", cursor.hasNext());
            case "next_route":
                return nextRoute(step);
            case "failed_routes":
                return failedRoutes();
            case "connect_failed":
                engine.connectFailed(route, Failure.IO, Phase.EXCHANGE, 0);
                return Map.of();
            case "connected":
                engine.connected(route);
                return Map.of();
            case "should_postpone":
                return Map.of("value", engine.shouldPostpone(route));
            case "set_dns":
                addNames(step.of("dns"));
                return Map.of();
            case "clear_dns":
                names.clear();
                return Map.of();
            case "mutate_selector_list":
                proxies = step.get("proxies");
                return Map.of();
            case "selector_request_count":
                return Map.of("count", selectCount);
            default:
                throw new Case.Fails("no operation " + step.text("op"));
        }
    }

    private void newSelector(Case step) {
        selector = null;
        selection = null;
        if (step.has("selector")) {
            proxies = step.get("selector");
        }
        if (address == null || step.has("address")) {
            Case where = (step.has("address") ? step : one).of("address");
            address = OkHttpWords.address(engine, where, one.of("explicit_proxy"), dns, chooser);
        }
        selector = new Selector(address);
    }

    private Map<String, Object> nextSelection() {
        selection = selector.next(Duration.ZERO);
        if (selection == null) {
            return NOTHING_LEFT;
        }
        cursor = selection.iterator();
        List<Object> routes = new ArrayList<>();
        selection.forEach(route -> routes.add(shown(route)));
        return Map.of("routes", routes);
    }

    private Map<String, Object> nextRoute(Case step) {
        if (!cursor.hasNext()) {
            return NOTHING_LEFT;
        }
        Route route = cursor.next();
        if (step.get("save_as") != null) {
            saved.put(step.text("save_as"), route);
        }
        return Map.of("route", shown(route));
    }

    /** The database's records name hops; the saved routes they belong to are recognised by them. */
    private Map<String, Object> failedRoutes() {
        List<FailedRoute> records = engine.databaseSnapshot();
        List<Object> routes = new ArrayList<>();
        for (FailedRoute record : records) {
            for (Map.Entry<String, Route> entry : saved.entrySet()) {
                Route route = entry.getValue();
                if (java.util.Objects.equals(route.hop(), record.hop())
                        && route.hopPort() == record.hopPort()
                        && route.proxyKind() == record.proxyKind()) {
                    routes.add(entry.getKey());
                    break;
                }
            }
        }
        return Map.of("count", records.size(), "routes", routes);
    }

    private void check(int number, Case step, Map<String, Object> got) {
        Case expect = step.of("expect");
        expect.members()
                .forEach(
                        (key, want) -> {
                            String what = "step " + number + " " + step.text("op") + ": " + key;
                            if (key.equals("message_contains")) {
                                String message = String.valueOf(got.get("message"));
                                need(message.contains(want.getAsString()), what + ": got " + message);
                                return;
                            }
                            same(told(key, got), want, what);
                        });
        if (got.containsKey("error") && expect.get("error") == null) {
            throw new Case.Fails("step " + number + " " + step.text("op") + ": " + got);
        }
    }

    private Object told(String key, Map<String, Object> got) {
        switch (key) {
            case "selector_uris":
                return uris;
            case "dns_requests":
                return asked;
            case "events":
                return events;
            case "proxies":
                return events.stream().filter(event -> event.containsKey("proxies")).findFirst()
                        .map(event -> event.get("proxies")).orElse(null);
            default:
                return got.get(key);
        }
    }

    private static void run(Case one) {
        OkHttpSelectorKinds world = new OkHttpSelectorKinds(one);
        try (Engine ends = world.engine) {
            int number = 0;
            for (Case step : one.cases("steps")) {
                world.beginStep();
                world.check(number, step, world.perform(step));
                number++;
            }
        }
    }
}
