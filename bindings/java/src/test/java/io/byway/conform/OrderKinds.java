package io.byway.conform;

import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import io.byway.Address;
import io.byway.Engine;
import io.byway.Failure;
import io.byway.FirstFamily;
import io.byway.Ip;
import io.byway.Route;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * connect.jsonl order: in which order the addresses of a host are tried; and postpone: how long a route that failed stays
 * behind the others.
 */
final class OrderKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of("connect/order", OrderKinds::order, "connect/postpone", OrderKinds::postpone);

    private OrderKinds() {}

    /** By {@link Ip#order} and by the routes to a host with these addresses: whatever can say the case must give it. */
    private static void order(Case one) {
        String name = one.text("first_family", "v6");
        FirstFamily family =
                name.equals("v4")
                        ? FirstFamily.V4
                        : name.equals("first_address") ? FirstFamily.FIRST_ADDRESS : FirstFamily.V6;
        int count = one.integer("first_family_count", 1);
        boolean interleave = one.flag("interleave", true);
        boolean deduplicate = one.flag("dedup");
        // Ip.order takes addresses as they are; a resolver's answer takes mapped ones for IPv4, and so does InetAddress.
        boolean onlyPlan = !interleave || deduplicate || one.flag("unmap");
        boolean canPlan = family == FirstFamily.V6 && count == 1;
        if (one.text("interleave_stage").equals("after_postpone")) {
            throw new Case.Skips("no interleaving after the split");
        }
        if (one.get("postponed") != null) {
            throw new Case.Skips("no order of postponed addresses");
        }
        if (one.get("rtt_min_ms") != null || one.get("attempts") != null) {
            throw new Case.Skips("no order by history");
        }
        if (onlyPlan && !canPlan) {
            throw new Case.Skips("no first family of a plan");
        }
        List<InetAddress> ips = OkHttpWords.ips(one.list("input"));
        if (!onlyPlan) {
            same(OkHttpWords.texts(Ip.order(ips, family, count)), one.get("expect"), "order");
        }
        if (canPlan) {
            Engine.Options options = new Engine.Options().fastFallback(interleave).deduplicate(deduplicate);
            same(OkHttpKinds.planned(ips, options), one.get("expect"), "plan");
        }
    }

    private static final class Moment {
        final long at;
        final int question;
        final String what;
        final JsonElement value;

        Moment(JsonElement pair, int question, String what) {
            JsonArray both = pair.getAsJsonArray();
            at = both.get(0).getAsLong();
            value = both.get(1);
            this.question = question;
            this.what = what;
        }
    }

    private static void postpone(Case one) {
        Case policy = one.of("policy");
        long[] now = {0};
        Engine.Options options = new Engine.Options().monotonicNanos(() -> now[0] * 1_000_000);
        switch (policy.text("mode")) {
            case "forever":
                options.postponeFor(Duration.ZERO);
                break;
            case "fixed":
                Duration fixed = Duration.ofMillis((long) policy.number("ttl_ms", 0));
                options.postponeFor(fixed).postponeAtMost(fixed);
                break;
            case "multiple":
                options.postponeFor(Duration.ofMillis((long) policy.number("base_ms", 0)))
                        .postponeAtMost(Duration.ofMillis((long) policy.number("max_ms", 0)));
                break;
            default:
                throw new Case.Fails("mode " + policy.text("mode"));
        }
        // Events of one moment come before its questions.
        List<Moment> moments = new ArrayList<>();
        one.list("events").forEach(pair -> moments.add(new Moment(pair, 0, "event")));
        one.list("expect").forEach(pair -> moments.add(new Moment(pair, 1, "postponed")));
        one.list("size_at").forEach(pair -> moments.add(new Moment(pair, 1, "size")));
        moments.sort(Comparator.<Moment>comparingLong(moment -> moment.at).thenComparing(moment -> moment.question));
        try (Engine engine = new Engine(options)) {
            Address address = new Address(engine, new Address.Options("postpone.example", 80));
            Route route = Route.of(address, null, Ip.parse("192.0.2.1"), 80);
            for (Moment moment : moments) {
                now[0] = moment.at;
                happen(engine, route, moment);
            }
        }
    }

    private static void happen(Engine engine, Route route, Moment moment) {
        String what = moment.what + " at " + moment.at;
        if (moment.what.equals("size")) {
            same(engine.stats().databaseRecords(), moment.value, what);
            return;
        }
        if (moment.what.equals("postponed")) {
            same(engine.shouldPostpone(route), moment.value, what);
            return;
        }
        switch (moment.value.getAsString()) {
            case "failed":
                engine.connectFailed(route, Failure.REFUSED);
                break;
            case "connected":
                engine.connected(route);
                break;
            case "network_changed":
                engine.networkChanged();
                break;
            default:
                throw new Case.Fails(what + ": no such event");
        }
    }
}
