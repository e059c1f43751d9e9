package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.byway.BywayException;
import io.byway.Dialect;
import io.byway.Rule;
import io.byway.RuleKind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Mesh rules and their matchers. A matcher is shown by a rule that uses it: the call gets the first of two providers if it
 * fits, both if it does not.
 */
final class MeshKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        KINDS.put("dubbo_chain/double_match", MeshKinds::doubleMatch);
        KINDS.put("dubbo_chain/bool_match", MeshKinds::boolMatch);
        KINDS.put(
                "dubbo_chain/list_bool_match",
                one -> argument(one, "bool_value", "boolean", one.of("matcher").list("oneof").get(0)));
        KINDS.put(
                "dubbo_chain/list_double_match",
                one -> argument(one, "num_value", "java.lang.Double", withPoints(one.get("matcher"))));
        KINDS.put(
                "dubbo_chain/list_string_match",
                one -> argument(one, "str_value", "java.lang.String", one.get("matcher")));
        KINDS.put("dubbo_chain/method_match", MeshKinds::methodMatch);
        KINDS.put("dubbo_chain/attachment_match", MeshKinds::attachmentMatch);
        KINDS.put("dubbo_chain/match_request", MeshKinds::matchRequest);
        KINDS.put("dubbo_chain/mesh", MeshKinds::mesh);
        KINDS.put("dubbo_chain/mesh-labels", MeshKinds::labels);
        KINDS.put("dubbo_chain/mesh-cache", MeshKinds::cache);
        KINDS.put("dubbo_chain/mesh-lifecycle", MeshKinds::lifecycle);
        KINDS.put("dubbo_chain/mesh-listener", MeshKinds::listener);
        KINDS.put("bugs/mesh_match", MeshKinds::matchReported);
        KINDS.put("bugs/subset", MeshKinds::subsetReported);
        KINDS.put("bugs/mesh_lint", MeshKinds::lintReported);
    }

    private static final String KEY = "app1.MESHAPPRULE";
    private static final String CONSUMER = "consumer://10.1.1.1/S";
    private static final String TRACES =
            "tracing contexts come from inside the host, of which rules from here see attachments";
    private static final int RUNS = 10000;

    private MeshKinds() {}

    static Map<String, Object> map(Object... members) {
        Map<String, Object> all = new java.util.LinkedHashMap<>();
        for (int i = 0; i < members.length; i += 2) {
            all.put((String) members[i], members[i + 1]);
        }
        return all;
    }

    /** Two documents: subsets, and the routes to them. */
    private static String ruleOf(Object subsets, Object detail) {
        Object name = map("name", "x");
        Object destination = map("kind", "DestinationRule", "metadata", name, "spec", map("subsets", subsets));
        Object dubbo = List.of(map("routedetail", List.of(detail)));
        Object service = map("kind", "VirtualService", "metadata", name, "spec", map("dubbo", dubbo));
        return Case.shown(Case.json(destination)) + "\n---\n" + Case.shown(Case.json(service)) + "\n";
    }

    private static Map<String, Object> routeTo(String subset, Object blocks) {
        Map<String, Object> detail = map("route", List.of(map("destination", map("subset", subset))));
        if (blocks != null) {
            detail.put("match", blocks);
        }
        return detail;
    }

    private static String withLabels(String url, Map<String, JsonElement> labels) {
        StringBuilder more = new StringBuilder(url);
        labels.forEach(
                (key, value) ->
                        more.append('&')
                                .append(key)
                                .append('=')
                                .append(value.isJsonNull() ? "None" : value.getAsString()));
        return more.toString();
    }

    private static JsonElement provider(int number) {
        return new JsonPrimitive("dubbo://10.0.0." + number + ":1/S?v=" + number + "&remote.application=app1");
    }

    /** A world of two providers, and a rule that sends calls that fit one of the blocks to the first. */
    private static World fitting(Dialect dialect, String consumer, Object blocks) {
        World world = new World(dialect, consumer, List.of(provider(1), provider(2)));
        Object subsets = List.of(map("name", "one", "labels", map("v", "1")));
        BywayException refused = world.setRule(KEY, ruleOf(subsets, routeTo("one", blocks)));
        need(refused == null, "refused: " + refused);
        world.invocation.reset().method("m");
        return world;
    }

    private static String errorOf(JsonElement expect) {
        if (expect == null || !expect.isJsonObject()) {
            return null;
        }
        JsonElement error = expect.getAsJsonObject().get("error");
        return error == null || error.isJsonNull() ? null : error.getAsString();
    }

    private static String told(BywayException error) {
        return error.name() + " " + error.getMessage();
    }

    /** Whether the call was sent to the first provider; or how routing fails. */
    private static void compare(World world, JsonElement expect) {
        String error = errorOf(expect);
        boolean fits;
        try {
            fits = world.routed().size() == 1;
        } catch (BywayException refused) {
            need(error != null && told(refused).contains(error), refused + ", want " + expect);
            return;
        }
        need(error == null, "want " + error);
        same(fits, expect, "fits");
    }

    static void matched(
            Dialect dialect, String consumer, Object block, Case call, List<String> types, JsonElement expect) {
        try (World world = fitting(dialect, consumer, List.of(block))) {
            if (Case.isText(call.get("method"))) {
                world.call(call, types);
            } else {
                JsonObject named = call.object.deepCopy();
                named.addProperty("method", "m");
                world.call(new Case(named), types);
            }
            compare(world, expect);
        }
    }

    /** The first argument against a matcher. */
    private static void argument(Case one, String field, String type, JsonElement matcher) {
        // dubbo-go has the matchers but no mesh router; byway's own reading of them is the same.
        Dialect dialect = World.dialectOf(one) == Dialect.DUBBO_GO ? Dialect.BYWAY : World.dialectOf(one);
        Object block = map("method", map("args", List.of(map("index", 0, field, matcher))));
        JsonObject call = new JsonObject();
        JsonArray arguments = new JsonArray();
        arguments.add(one.object.get("input"));
        call.addProperty("method", "m");
        call.add("arguments", arguments);
        matched(dialect, CONSUMER, block, new Case(call), List.of(type), one.get("expect"));
    }

    /** Numbers written {@code 10.0} in a case are so to Java. */
    private static JsonElement withPoints(JsonElement value) {
        if (Case.isNumber(value)) {
            return new JsonPrimitive(value.getAsDouble());
        }
        if (value.isJsonArray()) {
            JsonArray all = new JsonArray();
            value.getAsJsonArray().forEach(one -> all.add(withPoints(one)));
            return all;
        }
        if (value.isJsonObject()) {
            JsonObject all = new JsonObject();
            value.getAsJsonObject().entrySet().forEach(one -> all.add(one.getKey(), withPoints(one.getValue())));
            return all;
        }
        return value;
    }

    /** What a text's reader says of a matcher that is written wrongly. */
    private static void warned(String argument, String words) {
        String said =
                Rule.check(
                        Dialect.DUBBO_3,
                        RuleKind.MESH,
                        "kind: VirtualService\nmetadata: {name: x}\nspec: {dubbo: [{routedetail: [{match: [{method: {args:"
                                + " [{index: 0, "
                                + argument
                                + "}]}}], route: []}]}]}\n");
        need(said.contains(words), "said " + said);
    }

    private static void doubleMatch(Case one) {
        if (Case.isText(one.get("rule"))) {
            warned("num_value: {oneof: [" + one.text("rule") + "]}", "'exact: 10' is dropped; write 10.0");
            return;
        }
        JsonArray each = new JsonArray();
        each.add(one.get("matcher"));
        JsonObject oneof = new JsonObject();
        oneof.add("oneof", each);
        argument(one, "num_value", "java.lang.Double", withPoints(oneof));
    }

    private static void boolMatch(Case one) {
        if (Case.isText(one.get("rule"))) {
            warned("bool_value: " + one.text("rule"), "'exact' must be true or false");
            return;
        }
        argument(one, "bool_value", "boolean", one.get("matcher"));
    }

    private static void methodMatch(Case one) {
        JsonObject matcher = one.of("matcher").object.deepCopy();
        // Whole numbers of `argc` and `index` stay what they are; those of matchers are Java's doubles.
        for (Case test : new Case(matcher).cases("args")) {
            if (test.get("num_value") != null) {
                test.object.add("num_value", withPoints(test.get("num_value")));
            }
        }
        Case call = one.of("invocation");
        List<String> types = call.get("parameter_types") == null ? null : call.texts("parameter_types");
        matched(Dialect.DUBBO_3, CONSUMER, map("method", matcher), call, types, one.get("expect"));
    }

    private static boolean traced(Case one) {
        JsonElement context = one.get("tracing_context");
        return context != null && context.isJsonArray() && context.getAsJsonArray().size() > 0;
    }

    private static void attachmentMatch(Case one) {
        if (traced(one)) {
            throw new Case.Skips(TRACES);
        }
        Object block = map("attachments", one.get("matcher"));
        matched(Dialect.DUBBO_3, CONSUMER, block, one.of("invocation"), null, one.get("expect"));
    }

    private static void matchRequest(Case one) {
        if (traced(one)) {
            throw new Case.Skips(TRACES);
        }
        String consumer = withLabels(CONSUMER + "?a=b", one.of("source_labels").members());
        matched(Dialect.DUBBO_3, consumer, one.get("matcher"), one.of("invocation"), null, one.get("expect"));
    }

    // Whole rules.

    /** A world for a case's consumer, service, providers and rule. Draws give 0 unless they are counted. */
    private static World meshWorld(Case one, Dialect dialect, boolean counted) {
        String consumer = one.text("consumer_url", "consumer://h/S");
        String service = one.of("invocation").text("service");
        if (!service.isEmpty()) {
            String head = consumer.split("\\?", 2)[0];
            String query = consumer.contains("?") ? consumer.substring(consumer.indexOf('?')) : "";
            String scheme = head.substring(0, head.indexOf("://"));
            String place = head.substring(head.indexOf("://") + 3).split("/", 2)[0];
            consumer = scheme + "://" + place + "/" + service + query;
        }
        // What an earlier router kept is a list without the others.
        JsonElement came = one.get("route_input");
        List<JsonElement> rows = new ArrayList<>();
        for (JsonElement row : one.list("invokers")) {
            JsonElement id = row.isJsonObject() ? row.getAsJsonObject().get("id") : null;
            if (came == null || !came.isJsonArray() || came.getAsJsonArray().contains(id)) {
                rows.add(row);
            }
        }
        World world = new World(dialect, consumer, rows, null, "", counted ? null : () -> 0, null);
        world.call(RuleKinds.named(one.of("invocation")));
        if (Case.isText(one.get("rule"))) {
            String application = one.text("app").isEmpty() ? "app1" : one.text("app");
            world.setRule(application + ".MESHAPPRULE", one.text("rule"));
        }
        return world;
    }

    private static void meshOnce(Case one, Dialect dialect, JsonElement expect, String error) {
        try (World world = meshWorld(one, dialect, false)) {
            List<Integer> rows;
            try {
                rows = world.routed();
            } catch (BywayException refused) {
                need(error != null && told(refused).contains(error), refused + ", want " + error);
                return;
            }
            need(error == null, "want " + error);
            if (expect != null) {
                same(World.idsOf(world.rows, rows), expect, "ids");
            }
        }
    }

    /** Upstream's words for people, and ours for the same. */
    private static void meshTold(Case one) {
        String message = one.text("message");
        String said;
        try (World world = meshWorld(one, Dialect.DUBBO_3, false)) {
            said = world.chain.explain(world.invocation);
        }
        if (message.startsWith("Match App: ")) {
            Matcher each = Pattern.compile("Match App: (\\S+) Subset: (\\S+)").matcher(message);
            while (each.find()) {
                need(
                        said.contains("application " + each.group(1) + ": VirtualService")
                                && said.contains(", subset " + each.group(2)),
                        "said " + said);
            }
        } else if (message.startsWith("Empty protection")) {
            need(said.contains("so all stay"), "said " + said);
        } else {
            need(!said.contains("standard-mesh-rule"), "there is a mesh router: " + said);
        }
    }

    /** Shares of each provider over many calls. */
    private static void meshShares(Case one, Dialect dialect, Case shares, List<String> always) {
        try (World world = meshWorld(one, dialect, true)) {
            int[] counts = new int[world.rows.size()];
            for (int i = 0; i < RUNS; i++) {
                for (int row : world.routed()) {
                    counts[row]++;
                }
            }
            for (int row = 0; row < counts.length; row++) {
                String id = world.rows.get(row).getAsJsonObject().get("id").getAsString();
                double got = (double) counts[row] / RUNS;
                double want = shares == null ? 0 : shares.number(id, 0);
                if (always != null) {
                    boolean wanted = always.contains(id);
                    want = wanted && got > 0 ? got : wanted ? 2 : 0;
                }
                need(Math.abs(got - want) <= 0.015, dialect + ": " + id + " gets " + got + ", want " + want);
            }
        }
    }

    private static void mesh(Case one) {
        JsonElement expect = one.get("expect");
        if (expect.isJsonObject()) {
            Case wanted = one.of("expect");
            if (Case.isText(wanted.get("error"))) {
                meshOnce(one, Dialect.DUBBO_3, null, wanted.text("error").split("[: ]")[0]);
                meshOnce(one, Dialect.BYWAY, null, null);
            } else if (wanted.get("always") != null && wanted.get("always").isJsonArray()) {
                for (Dialect dialect : List.of(Dialect.DUBBO_3, Dialect.BYWAY)) {
                    meshShares(one, dialect, null, wanted.texts("always"));
                }
            } else {
                JsonElement own = one.get("observed_share");
                meshShares(
                        one,
                        Dialect.DUBBO_3,
                        own != null && own.isJsonObject() ? one.of("observed_share") : wanted.of("observed_share"),
                        null);
                if (one.get("sane_share") != null && one.get("sane_share").isJsonObject()) {
                    meshShares(one, Dialect.BYWAY, one.of("sane_share"), null);
                }
            }
            return;
        }
        meshOnce(one, Dialect.DUBBO_3, expect, null);
        if (Case.isText(one.get("message"))) {
            meshTold(one);
        }
        JsonElement sane = World.saneOf(one);
        if (sane != null && sane.isJsonArray()) {
            meshOnce(one, Dialect.BYWAY, sane, null);
        }
    }

    private static void labels(Case one) {
        String first =
                withLabels(
                        "dubbo://10.0.0.1:1/S?remote.application=app1",
                        one.cases("invokers").get(0).of("params").members());
        List<JsonElement> rows =
                List.of(
                        new JsonPrimitive(first),
                        new JsonPrimitive("dubbo://10.0.0.2:1/S?remote.application=app1"));
        try (World world = new World(Dialect.DUBBO_3, CONSUMER, rows)) {
            Object subsets = List.of(map("name", "s", "labels", one.object.get("labels")));
            BywayException refused = world.setRule(KEY, ruleOf(subsets, routeTo("s", null)));
            need(refused == null, "the rule is refused: " + refused);
            world.invocation.reset().method("m");
            compare(world, one.get("expect"));
        }
    }

    /** Members of a subset, by a rule that sends everybody there; all providers means that nobody is in it. */
    private static void cache(Case one) {
        List<JsonElement> invokers = one.list("invokers");
        Case expect = one.of("expect");
        expect.of("subset")
                .members()
                .forEach(
                        (name, want) -> {
                            String application = name.split("/", 2)[0];
                            String subset = name.contains("/") ? name.split("/", 2)[1] : "";
                            List<Integer> rows;
                            try (World world = new World(Dialect.DUBBO_3, CONSUMER, invokers)) {
                                for (String app : one.texts("rules_for")) {
                                    world.setRule(
                                            app + ".MESHAPPRULE",
                                            ruleOf(one.object.get("subsets"), routeTo(subset, null)));
                                }
                                world.invocation.reset().method("m");
                                rows = world.routed();
                            }
                            int outside = invokers.size() - rows.size();
                            same(
                                    outside == 0 ? invokers.size() : outside,
                                    expect.integer("unmatched", -1),
                                    "in no subset");
                            long members =
                                    rows.stream()
                                            .filter(
                                                    row ->
                                                            World.url(invokers.get(row))
                                                                    .contains("remote.application=" + application))
                                            .count();
                            same(rows.size() < invokers.size() ? members : 0, want, name);
                        });
    }

    /** In force or not, by the status of a chain that has providers of both applications. */
    private static void lifecycle(Case one) {
        String rule = one.text("rule");
        List<String> names = List.of("app1", "app2");
        List<JsonElement> rows = new ArrayList<>();
        for (int i = 1; i <= 2; i++) {
            rows.add(new JsonPrimitive("dubbo://10.0.0." + i + ":1/S?remote.application=app" + i));
        }
        try (World world = new World(Dialect.DUBBO_3, CONSUMER, rows)) {
            for (Case step : one.cases("expect")) {
                for (String name : names) {
                    String receives = step.text(name + " receives", null);
                    if ("DestinationRule only".equals(receives)) {
                        world.setRule(name + ".MESHAPPRULE", rule.split("\n---", 2)[0]);
                    } else if (receives != null) {
                        world.setRule(name + ".MESHAPPRULE", rule);
                    }
                    if (name.equals(step.text("clear"))) {
                        world.removeRule(name + ".MESHAPPRULE");
                    }
                }
                Case status = new Case(JsonParser.parseString(world.chain.status()).getAsJsonObject());
                Set<String> forced = new HashSet<>();
                for (Case router : status.cases("routers")) {
                    if (router.flag("in_force")) {
                        forced.add(router.text("key"));
                    }
                }
                List<String> got = new ArrayList<>(names);
                got.removeIf(name -> !forced.contains(name + ".MESHAPPRULE"));
                same(got, step.get("apps_with_rules"), "in force");
            }
        }
    }

    private static int occurrences(String text, String part) {
        return text.split(Pattern.quote(part), -1).length - 1;
    }

    /**
     * How many documents of a text belong to an extension, by what is said about them; the others are the standard ones,
     * unless they are left out.
     */
    private static int documentsOf(String text, String group) {
        String said = Rule.check(Dialect.DUBBO_3, RuleKind.MESH, text);
        if (!group.equals("standard")) {
            return occurrences(said, "belongs to the extension '" + group + "'");
        }
        int total = text.isEmpty() ? 0 : 1 + occurrences(text, "\n---");
        return total - occurrences(said, "belongs to the extension ") - occurrences(said, "is left out");
    }

    private static void listener(Case one) {
        List<Case> steps =
                one.get("expect").isJsonArray() ? one.cases("expect") : List.of(one.of("expect"));
        boolean known = false;
        for (Case step : steps) {
            String text = step.has("receive") && "".equals(step.text("receive", null)) ? "" : one.text("rule");
            for (Map.Entry<String, JsonElement> member : step.members().entrySet()) {
                String[] parts = member.getKey().split("\\.", 2);
                JsonElement want = member.getValue();
                if (parts.length == 2 && parts[1].equals("onRuleChange") && want.isJsonObject()) {
                    known = true;
                    int documents = new Case(want.getAsJsonObject()).integer("docs", -1);
                    same(documentsOf(text, parts[0]), documents, member.getKey());
                } else if (parts.length == 2 && parts[1].equals("clearRule")) {
                    known = true;
                    same(documentsOf(text, parts[0]), 0, member.getKey());
                }
            }
        }
        if (!known) {
            throw new Case.Skips("counts upstream's listeners");
        }
    }

    // Reports.

    private static void matchReported(Case one) {
        List<Boolean> got = new ArrayList<>();
        for (Case labels : one.of("input").cases("consumer_labels")) {
            String consumer = withLabels(CONSUMER + "?a=b", labels.members());
            try (World world = fitting(Dialect.BYWAY, consumer, one.of("input").get("match"))) {
                got.add(world.routed().size() == 1);
            }
        }
        same(got, one.of("expect").get("matched"), "matched");
    }

    private static void subsetReported(Case one) {
        List<JsonElement> rows = new ArrayList<>();
        for (Case labels : one.of("input").cases("endpoints")) {
            String url = "dubbo://10.0.0." + (rows.size() + 1) + ":1/S?remote.application=app1";
            rows.add(new JsonPrimitive(withLabels(url, labels.members())));
        }
        try (World world = new World(Dialect.BYWAY, CONSUMER, rows)) {
            Object subsets = List.of(map("name", "wanted", "labels", one.of("input").object.get("request")));
            BywayException refused = world.setRule(KEY, ruleOf(subsets, routeTo("wanted", null)));
            need(refused == null, "the rule is refused: " + refused);
            world.invocation.reset().method("m");
            same(world.routed(), one.of("expect").get("kept"), "kept");
        }
    }

    private static void lintReported(Case one) {
        List<Object> subsets = new ArrayList<>();
        one.of("input").texts("defined_subsets").forEach(name -> subsets.add(map("name", name)));
        List<Object> routes = new ArrayList<>();
        one.of("input")
                .texts("route_subsets")
                .forEach(name -> routes.add(map("destination", map("subset", name))));
        String said =
                Rule.checkJson(Dialect.BYWAY, RuleKind.MESH, ruleOf(subsets, map("route", routes)), null);
        List<String> got = new ArrayList<>();
        for (Case problem : new Case(JsonParser.parseString(said).getAsJsonObject()).cases("problems")) {
            Matcher named = Pattern.compile("^unknown subset '([^']*)'").matcher(problem.text("message"));
            if (named.find()) {
                got.add("unknown_subset:" + named.group(1));
            }
        }
        same(got, one.of("expect").get("warnings"), "warnings");
    }
}
