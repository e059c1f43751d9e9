package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** What connect.jsonl and bugs.jsonl expect of races: the time line of a {@link RaceWorld}. */
final class RaceKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of("connect/race", RaceKinds::race, "bugs/race", RaceKinds::reported);

    private static final List<String> LISTS = List.of("starts", "failed", "canceled", "dropped", "local_errors");
    private static final List<String> ENDS = List.of("result", "at_ms", "deadlines", "winner", "error");

    private RaceKinds() {}

    private static boolean isEmpty(Object list) {
        return list instanceof List && ((List<?>) list).isEmpty();
    }

    private static void judge(Case one, RaceWorld world, Map<String, Object> got) {
        Case expect = one.of("expect");
        if (got.get("result").equals("timeout")) {
            got.put("error", "overall_timeout");
        } else if (got.get("result").equals("failed") && !got.containsKey("error")) {
            List<?> blamed = (List<?>) got.get(isEmpty(got.get("failed")) ? "local_errors" : "failed");
            got.put("error", blamed.isEmpty() ? "no_routes" : ((List<?>) blamed.get(0)).get(1));
        }
        for (List<String> names : List.of(ENDS, LISTS)) {
            for (String name : names) {
                JsonElement want = expect.get(name);
                if (want != null || got.get(name) != null && !isEmpty(got.get(name))) {
                    same(got.get(name), want, name);
                }
            }
        }
        // Who is put behind the others from here on, each once.
        Set<String> postponed = new TreeSet<>();
        for (RaceWorld.Way way : world.ways) {
            if (world.engine.shouldPostpone(way.route)) {
                postponed.add(way.id());
            }
        }
        same(postponed, new TreeSet<>(expect.of("db").texts("failed")), "db.failed");
        if (expect.has("handoffs")) {
            same(got.get("handoffs"), expect.get("handoffs"), "handoffs");
        }
    }

    private static void race(Case one) throws Exception {
        OwnNetwork.inside(
                () -> {
                    try (RaceWorld world = new RaceWorld(one)) {
                        judge(one, world, world.race());
                    }
                });
    }

    /** The same world: literals are answers of a resolver, family by family; other names are routes. */
    private static Case asRace(Case given) {
        JsonObject made = new JsonObject();
        JsonObject options = new JsonObject();
        options.addProperty("attempt_delay_ms", given.integer("delay_ms", 250));
        options.addProperty("overall_timeout_ms", given.integer("deadline_ms", 0));
        made.add("options", options);
        boolean literals = given.cases("addresses").get(0).text("a").contains(":");
        for (String family : List.of("v6", "v4")) {
            JsonArray routes = new JsonArray();
            for (Case address : given.cases("addresses")) {
                String name = address.text("a");
                if (literals && name.contains(":") != family.equals("v6")) {
                    continue;
                }
                JsonObject route = new JsonObject();
                route.addProperty("id", name);
                boolean connects = address.has("connect_ms");
                route.addProperty("outcome", connects ? "ok" : address.has("fail_ms") ? "refused" : "pending");
                route.addProperty("after_ms", address.integer(connects ? "connect_ms" : "fail_ms", 0));
                routes.add(route);
            }
            if (!literals) {
                made.add("routes", routes);
                break;
            }
            JsonObject answer = new JsonObject();
            answer.addProperty("at_ms", 0);
            answer.addProperty("family", family);
            answer.add("routes", routes);
            if (!made.has("dns")) {
                made.add("dns", new JsonArray());
            }
            made.getAsJsonArray("dns").add(answer);
        }
        return new Case(made);
    }

    private static void judgeReported(Case expect, RaceWorld world, Map<String, Object> got) {
        String result = (String) got.get("result");
        expect.members()
                .forEach(
                        (name, want) -> {
                            List<?> starts = (List<?>) got.get("starts");
                            switch (name) {
                                case "at_ms":
                                    long at = (long) got.get(name);
                                    long first = want.getAsJsonArray().get(0).getAsLong();
                                    long last = want.getAsJsonArray().get(1).getAsLong();
                                    need(first <= at && at <= last, "at " + at + " ms");
                                    break;
                                case "winner":
                                    same(got.get(name), want, name);
                                    break;
                                case "error":
                                    same(
                                            Map.of("timeout", "deadline", "failed", "all_failed")
                                                    .getOrDefault(result, result),
                                            want,
                                            name);
                                    break;
                                case "attempts":
                                    same(starts.size(), want, name);
                                    break;
                                case "errors":
                                    same(world.dial.failures().size(), want, name);
                                    break;
                                case "start_order":
                                    List<Object> order = new ArrayList<>();
                                    starts.forEach(start -> order.add(((List<?>) start).get(0)));
                                    same(order, want, name);
                                    break;
                                default:
                                    throw new Case.Fails("no reading for " + name);
                            }
                        });
    }

    private static void reported(Case one) throws Exception {
        OwnNetwork.inside(
                () -> {
                    try (RaceWorld world = new RaceWorld(asRace(one.of("input")))) {
                        judgeReported(one.of("expect"), world, world.race());
                    }
                });
    }
}
