package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;
import static io.byway.conform.OkHttpWords.failure;
import static io.byway.conform.OkHttpWords.line;

import com.google.gson.JsonElement;
import io.byway.Address;
import io.byway.BywayException;
import io.byway.Compat;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.FailedCall;
import io.byway.FailedExchange;
import io.byway.Failure;
import io.byway.Host;
import io.byway.Ip;
import io.byway.Phase;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import io.byway.Recovery;
import io.byway.Route;
import io.byway.Selector;
import io.byway.Status;
import io.byway.Tell;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** okhttp.jsonl: hosts, addresses, route texts, and the decisions after a failure. */
final class OkHttpKinds {
    static final Map<String, Case.Run> KINDS =
            Map.ofEntries(
                    Map.entry("okhttp/canonical_host", OkHttpKinds::canonicalHost),
                    Map.entry("okhttp/looks_like_ip", OkHttpKinds::looksLikeIp),
                    Map.entry("okhttp/inet_order", OkHttpKinds::inetOrder),
                    Map.entry("okhttp/socket_host", OkHttpKinds::socketHost),
                    Map.entry("okhttp/route_to_string", OkHttpKinds::routeToString),
                    Map.entry("okhttp/address_equality", OkHttpKinds::addressEquality),
                    Map.entry("okhttp/address_to_string", OkHttpKinds::addressToString),
                    Map.entry("okhttp/recover_decision", OkHttpKinds::recoverDecision),
                    Map.entry("okhttp/tls_retry_decision", OkHttpKinds::tlsRetryDecision),
                    Map.entry("okhttp/track_failure", OkHttpKinds::trackFailure),
                    Map.entry("okhttp/connect_failure_report", OkHttpKinds::connectFailureReport));

    private OkHttpKinds() {}

    private static JsonElement value(Case one) {
        return one.of("expect").get("value");
    }

    private static Engine okhttp5() {
        return new Engine(new Engine.Options().compat(Compat.OKHTTP_5));
    }

    private static void canonicalHost(Case one) {
        String got;
        try {
            got = Host.canonical(one.text("input"), Compat.OKHTTP_5);
        } catch (BywayException error) {
            got = null;
        }
        same(got, value(one), "host");
    }

    private static void looksLikeIp(Case one) {
        same(Host.isLiteral(one.text("input"), Compat.OKHTTP_5), value(one), "literal");
    }

    /** Hops of every DIRECT route to a host with these addresses, in the order to try them. */
    static List<String> planned(List<InetAddress> ips, Engine.Options options) {
        try (Engine engine = new Engine(options)) {
            Dns dns = new Dns(engine, host -> ips);
            List<String> hops = new ArrayList<>();
            for (Route route : Selector.plan(new Address(engine, new Address.Options("order.example", 80).dns(dns)))) {
                hops.add(OkHttpWords.text(route.hop()));
            }
            return hops;
        }
    }

    private static void inetOrder(Case one) {
        List<String> want = OkHttpWords.texts(OkHttpWords.ips(one.of("expect").list("value")));
        List<String> got;
        try {
            got = planned(OkHttpWords.ips(one.list("input")), new Engine.Options());
        } catch (BywayException error) {
            need(error.code() == Status.E_EMPTY_ANSWER || want.isEmpty(), "plan: " + error);
            got = List.of();
        }
        same(got, want, "order");
    }

    private static void socketHost(Case one) {
        Case socket = one.of("proxy_socket");
        int port = socket.integer("port", 0);
        Proxy proxy =
                socket.get("ip") == null
                        ? new Proxy(ProxyKind.HTTP, socket.text("host"), port)
                        : new Proxy(ProxyKind.HTTP, socket.text("host"), Ip.parse(socket.text("ip")), port);
        InetAddress address = proxy.address();
        same(address == null ? proxy.host() : Ip.text(address), value(one), "host");
    }

    private static void routeToString(Case one) {
        try (Engine engine = okhttp5()) {
            Address address = OkHttpWords.address(engine, one.of("address"), new Case(null), null, null);
            Case socket = one.of("route").of("socket");
            InetAddress hop = socket.get("ip") == null ? null : Ip.parse(socket.text("ip"));
            Proxy proxy = OkHttpWords.proxy(one.of("route").of("proxy"));
            same(Route.of(address, proxy, hop, socket.integer("port", 0)).toString(), value(one), "text");
        }
    }

    /** OkHttp's objects become objects, numbers and one opaque TLS identity; an "other" one becomes another. */
    private static Address equalityAddress(Engine engine, Case base, Case change, Dns[] dns, ProxySelector[] choosers) {
        StringBuilder identity = new StringBuilder();
        for (String part : List.of("tls", "verifier", "pinner", "connection_specs", "specs")) {
            identity.append(part).append('=').append(Case.shown(change.get(part))).append(';');
        }
        JsonElement explicit = change.get("proxy");
        boolean direct = Case.isText(explicit) && explicit.getAsString().equals("DIRECT");
        Proxy proxy = null;
        if (explicit != null && explicit.isJsonObject()) {
            proxy = OkHttpWords.proxy(change.of("proxy"));
        } else if (explicit != null && !direct) {
            proxy = new Proxy(ProxyKind.HTTP, "other", 1);
        }
        JsonElement protocols = change.get("protocols");
        return new Address(
                engine,
                new Address.Options(
                                (change.has("host") ? change : base).text("host"),
                                (change.has("port") ? change : base).integer("port", 0))
                        .scheme((change.has("scheme") ? change : base).text("scheme"))
                        .tlsIdentityBytes(identity.toString().getBytes(StandardCharsets.UTF_8))
                        .dns(dns[change.has("dns") ? 1 : 0])
                        .proxySelector(choosers[change.has("selector") ? 1 : 0])
                        .authenticator(change.has("authenticator") || change.has("proxy_authenticator") ? 2 : 1)
                        .protocols(
                                protocols != null && protocols.isJsonArray()
                                        ? change.texts("protocols")
                                        : List.of("h2", "http/1.1"))
                        .direct(direct)
                        .proxy(proxy));
    }

    private static void addressEquality(Case one) {
        try (Engine engine = okhttp5()) {
            Dns[] dns = {new Dns(engine, host -> List.of()), new Dns(engine, host -> List.of())};
            ProxySelector[] choosers = {
                new ProxySelector(engine, uri -> Collections.singletonList(null)),
                new ProxySelector(engine, uri -> Collections.singletonList(null))
            };
            Address a = equalityAddress(engine, one.of("base"), new Case(null), dns, choosers);
            Address b = equalityAddress(engine, one.of("base"), one.of("change"), dns, choosers);
            Map<String, Object> got = new java.util.HashMap<>();
            got.put("equal", a.equals(b));
            got.put("equal_non_host", a.equalNonHost(b));
            got.put("same_hash", one.of("expect").get("same_hash") == null ? null : a.hashCode() == b.hashCode());
            same(got, one.get("expect"), "equality");
        }
    }

    private static void addressToString(Case one) {
        try (Engine engine = okhttp5()) {
            Address address = OkHttpWords.address(engine, one.of("address"), one.of("explicit_proxy"), null, null);
            same(address.toString(), value(one), "text");
        }
    }

    private static void recoverDecision(Case one) {
        String name = one.text("phase");
        Phase phase = name.equals("connect") ? Phase.TCP : name.equals("tls") ? Phase.TLS : Phase.EXCHANGE;
        try (Engine engine = new Engine(new Engine.Options().compat(line(one)))) {
            Recovery got =
                    engine.recover(
                            new FailedCall(failure(one.text("failure", null)), phase)
                                    .retryEnabled(one.flag("retry_enabled", true))
                                    .oneShot(one.flag("one_shot_body"))
                                    .sent(phase == Phase.EXCHANGE)
                                    .exchangeFailed(one.flag("exchange_failed", true))
                                    .moreRoutes(one.flag("more_routes", true)));
            same(got == Recovery.RETRY, one.of("expect").get("retry"), "retry");
        }
    }

    private static void tlsRetryDecision(Case one) {
        same(failure(one.text("failure", null)).retryTls(), one.of("expect").get("retry"), "retry");
    }

    private static void trackFailure(Case one) {
        Failure failure = one.get("failure") == null ? null : failure(one.text("failure", null));
        Set<Tell> told =
                Failure.track(
                        new FailedExchange(failure)
                                .successes((long) one.number("success_count", 0))
                                .refusedBefore(one.integer("refused_before", 0))
                                .multiplexed(one.flag("multiplexed"))
                                .callCanceled(one.flag("call_canceled"))
                                .proxied(!one.text("via").equals("DIRECT")));
        Map<String, Object> got =
                Map.of(
                        "no_new_exchanges", told.contains(Tell.NO_NEW_EXCHANGES),
                        "route_failure_count", told.contains(Tell.ROUTE_FAILURE) ? 1 : 0,
                        "db_failed", told.contains(Tell.DATABASE),
                        "selector_notified", told.contains(Tell.PROXY_SELECTOR));
        same(got, one.get("expect"), "track");
    }

    private static final Map<String, Phase> PHASES =
            Map.of("dns", Phase.DNS, "planning", Phase.DNS, "tunnel", Phase.TUNNEL, "connect", Phase.TUNNEL, "tls", Phase.TLS);
    private static final Map<String, Tell> BITS =
            Map.of(
                    "listener_connect_failed", Tell.FAILED_EVENT,
                    "selector_notified", Tell.PROXY_SELECTOR,
                    "db_failed", Tell.DATABASE,
                    "next_route_tried", Tell.NEXT_ROUTE);

    private static void connectFailureReport(Case one) {
        Case expect = one.of("expect");
        for (Compat compat : List.of(Compat.OKHTTP_5, Compat.OKHTTP_3)) {
            Case want = compat == Compat.OKHTTP_5 ? expect : expect.of("v3131");
            Set<Tell> told =
                    Failure.report(
                            compat,
                            failure(one.text("failure", null)),
                            PHASES.getOrDefault(one.text("phase"), Phase.TCP),
                            one.text("via").equals("DIRECT") ? ProxyKind.DIRECT : ProxyKind.HTTP,
                            one.text("proxy_from").equals("selector"),
                            one.flag("retry_enabled", true));
            BITS.forEach(
                    (name, bit) -> {
                        if (want.get(name) != null) {
                            same(told.contains(bit), want.get(name), name + " under " + compat);
                        }
                    });
        }
    }
}
