package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.byway.BywayException;
import io.byway.Dialect;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Tag cases: a rule of the provider's application, and what a call with a tag is routed to. */
final class TagKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of(
                    "dubbo_chain/tag", TagKinds::tag,
                    "dubbo_chain/tag-lifecycle", TagKinds::lifecycle,
                    "dubbo_chain/tag-level", TagKinds::level,
                    "bugs/tag_route", TagKinds::reported,
                    "bugs/tag_level", TagKinds::levelsReported);

    private static final String APPLICATION = "of-the-case";

    private TagKinds() {}

    private static String key(List<JsonElement> invokers) {
        String url = invokers.isEmpty() ? "" : World.url(invokers.get(0));
        String application = RuleKinds.parameter(url, "remote.application");
        if (application.isEmpty()) {
            application = RuleKinds.parameter(url, "application");
        }
        return (application.isEmpty() ? APPLICATION : application) + ".tag-router";
    }

    private static World world(Dialect dialect, String consumer, List<JsonElement> invokers) {
        return new World(
                dialect,
                RuleKinds.consumerWith(consumer, RuleKinds.ALONE + "tag"),
                invokers,
                "remote.application=" + APPLICATION,
                "application=",
                null,
                null);
    }

    private static void tag(Case one, Dialect dialect, JsonElement expect) {
        List<JsonElement> picked = new ArrayList<>();
        JsonElement wanted = one.get("route_input");
        boolean current =
                wanted == null
                        || !wanted.isJsonArray()
                        || Case.equal(
                                Case.json(one.get("chain_generation")), Case.json(one.get("cache_generation")));
        for (JsonElement row : one.list("invokers")) {
            JsonElement id = row.getAsJsonObject().get("id");
            if (current || wanted.getAsJsonArray().contains(id)) {
                picked.add(row);
            }
        }
        try (World world = world(dialect, one.text("consumer_url", null), picked)) {
            if (Case.isText(one.get("rule"))) {
                world.setRule(key(picked), one.text("rule"));
            }
            world.call(RuleKinds.named(one.of("invocation")));
            List<Integer> rows = world.routed();
            if (expect.isJsonObject() && expect.getAsJsonObject().has("count")) {
                same(rows.size(), expect.getAsJsonObject().get("count"), "count");
            } else {
                same(World.idsOf(picked, rows), expect, "ids");
            }
        }
    }

    private static void tag(Case one) {
        tag(one, World.dialectOf(one), one.get("expect"));
        JsonElement sane = World.saneOf(one);
        if (sane != null) {
            tag(one, Dialect.BYWAY, sane);
        }
    }

    private static void lifecycle(Case one) {
        List<JsonElement> invokers = one.list("invokers");
        try (World world = world(World.dialectOf(one), one.text("consumer_url", null), invokers)) {
            world.call(one.of("invocation"));
            for (Case step : one.cases("expect")) {
                String event = step.text("event");
                int begin = event.indexOf('\'');
                int end = event.lastIndexOf('\'');
                String text = begin >= 0 && begin < end ? event.substring(begin + 1, end) : one.text("rule");
                if (event.startsWith("DELETED")) {
                    world.removeRule(key(invokers));
                } else {
                    world.setRule(key(invokers), text);
                }
                same(World.idsOf(invokers, world.routed()), step.get("route"), event);
            }
        }
    }

    /** What a level search found: addresses, and the group of the first. */
    private static final class Found {
        final List<String> addresses = new ArrayList<>();
        String name;
    }

    /** Level search, seen through routing: one provider per address, and the caller insisting or not. */
    private static Found level(Map<String, JsonElement> addresses, String selector, boolean force, Dialect dialect) {
        JsonArray tags = new JsonArray();
        List<String[]> places = new ArrayList<>();
        List<JsonElement> urls = new ArrayList<>();
        addresses.forEach(
                (name, group) -> {
                    JsonObject tag = new JsonObject();
                    tag.addProperty("name", name);
                    tag.add("addresses", group);
                    tags.add(tag);
                    for (JsonElement address : group.getAsJsonArray()) {
                        places.add(new String[] {name, address.getAsString()});
                        urls.add(new JsonPrimitive("dubbo://" + address.getAsString() + "/s"));
                    }
                });
        JsonObject rule = new JsonObject();
        rule.add("tags", tags);
        Found found = new Found();
        try (World world = world(dialect, "consumer://10.0.1.1/s", urls)) {
            BywayException refused = world.setRule(APPLICATION + ".tag-router", Case.shown(rule));
            need(refused == null, "the rule is refused: " + refused);
            world.invocation.reset().method("m");
            world.invocation.attach("dubbo.tag", selector).attach("dubbo.force.tag", force ? "true" : "false");
            for (int row : world.routed()) {
                if (found.name == null) {
                    found.name = places.get(row)[0];
                }
                found.addresses.add(places.get(row)[1]);
            }
        }
        return found;
    }

    private static void level(Case one) {
        Case expect = one.of("expect");
        Found found =
                level(
                        one.of("tag_addresses").members(),
                        one.text("selector"),
                        one.flag("force"),
                        World.dialectOf(one));
        if (!found.addresses.isEmpty() || expect.get("addresses") != null) {
            same(found.addresses, expect.get("addresses"), one.text("selector"));
        }
        if (expect.has("matched_name")) {
            same(found.name == null ? "" : found.name, expect.text("matched_name"), "name");
        }
    }

    private static void levelsReported(Case one) {
        Case given = one.of("input");
        List<JsonElement> wanted = one.of("expect").list("addresses");
        List<String> selectors = given.texts("selectors");
        for (int i = 0; i < selectors.size() && i < wanted.size(); i++) {
            Found found =
                    level(
                            given.of("tag_addresses").members(),
                            selectors.get(i),
                            given.flag("force"),
                            Dialect.BYWAY);
            if (!found.addresses.isEmpty() || !wanted.get(i).isJsonNull()) {
                same(found.addresses, wanted.get(i), selectors.get(i));
            }
        }
    }

    private static void reported(Case given, Dialect dialect, JsonElement want) {
        String consumer = "consumer://10.0.1.1/s";
        if (Case.isText(given.get("consumer_tag"))) {
            consumer += "?dubbo.tag=" + given.text("consumer_tag");
        }
        List<JsonElement> invokers = given.list("invokers");
        try (World world = world(dialect, consumer, invokers)) {
            if (Case.isText(given.get("rule"))) {
                world.setRule(key(invokers), given.text("rule"));
            }
            world.invocation.reset().method("m");
            for (String[] names : new String[][] {{"tag", "dubbo.tag"}, {"force_tag", "dubbo.force.tag"}}) {
                JsonElement value = given.get(names[0]);
                if (value != null) {
                    world.invocation.attach(names[1], Case.isText(value) ? value.getAsString() : Case.shown(value));
                }
            }
            for (int i = given.integer("calls", 1); i > 0; i--) {
                same(world.routed(), want, "rows");
            }
        }
    }

    private static void reported(Case one) {
        reported(one.of("input"), Dialect.BYWAY, one.of("expect").get("kept"));
        if (one.of("expect").get("compat_dubbo_go") != null) {
            reported(one.of("input"), Dialect.DUBBO_GO, one.of("expect").get("compat_dubbo_go"));
        }
    }
}
