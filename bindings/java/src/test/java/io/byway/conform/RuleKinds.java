package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.byway.BywayException;
import io.byway.Dialect;
import io.byway.Rule;
import io.byway.RuleKind;
import io.byway.Status;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Condition, affinity and mock cases: rules set by key or by URL, seen through what a chain routes. */
final class RuleKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        KINDS.put("dubbo_condition/condition", RuleKinds::condition);
        KINDS.put("dubbo_chain/mock", RuleKinds::mock);
        KINDS.put("bugs/condition_route", RuleKinds::conditionRoute);
        KINDS.put("bugs/condition_when", RuleKinds::conditionWhen);
        KINDS.put("bugs/condition_when_list", RuleKinds::conditionWhen);
        KINDS.put("bugs/rule_parse_list", RuleKinds::ruleTexts);
        KINDS.put("bugs/affinity", RuleKinds::affinity);
    }

    static final String ALONE = "router=-default,";
    private static final String NO_METHOD = "a rule about methods, a call without one";

    private RuleKinds() {}

    /** The consumer of a case, with a {@code router=} of its own when the case has none. */
    static String consumerWith(String consumer, String routers) {
        String url = consumer == null || !consumer.contains("://") ? "consumer://127.0.0.1/com.demo.Service" : consumer;
        if (routers == null || url.contains("router=")) {
            return url;
        }
        return url + (url.contains("?") ? "&" : "?") + routers;
    }

    private static World worldFor(Dialect dialect, String consumer, String routers, List<JsonElement> rows) {
        return new World(dialect, consumerWith(consumer, routers), rows);
    }

    /** {@code condition://} with a rule and the parameters of a case. */
    private static String staticRule(String rule, Map<String, JsonElement> parameters) {
        String encoded = URLEncoder.encode(rule, StandardCharsets.UTF_8).replace("+", "%20");
        StringBuilder url = new StringBuilder("condition://0.0.0.0/S?rule=").append(encoded);
        parameters.forEach(
                (key, value) ->
                        url.append('&')
                                .append(key)
                                .append('=')
                                .append(Case.isText(value) ? value.getAsString() : Case.shown(value)));
        return url.toString();
    }

    private static boolean isError(JsonElement expect) {
        return expect != null && expect.isJsonObject() && new Case(expect.getAsJsonObject()).get("error") != null;
    }

    /** Upstream dies of it. */
    private static boolean crash(JsonElement expect) {
        return isError(expect)
                && new Case(expect.getAsJsonObject()).of("error").text("code").equals("panic");
    }

    private static void string(Case one, Dialect dialect, JsonElement expect) {
        List<JsonElement> invokers = one.list("invokers");
        if (!invokers.isEmpty() && Case.isText(invokers.get(0)) && invokers.get(0).getAsString().isEmpty()) {
            throw new Case.Skips("a list of empty URLs is refused whole");
        }
        String rule = one.text("rule");
        try (World world = worldFor(dialect, one.text("consumer_url", null), ALONE + "condition", invokers)) {
            BywayException refused = null;
            try {
                world.chain.setRuleUrls(List.of(staticRule(rule, one.of("params").members())));
            } catch (BywayException error) {
                refused = error;
            }
            if (isError(expect) && !crash(expect)) {
                need(
                        refused != null
                                && refused.code() == Status.E_RULE
                                && !refused.causes().isEmpty()
                                && refused.causes().get(0).line() > 0,
                        refused + ", want a refusal with its place");
                return;
            }
            need(refused == null, "refused: " + refused);
            if (!world.call(one.of("invocation")) && rule.contains("method")) {
                throw new Case.Skips(NO_METHOD);
            }
            List<Integer> rows = world.routed();
            if (crash(expect)) {
                boolean somebody =
                        one.of("expect_by_impl").members().values().stream()
                                .anyMatch(other -> Case.equal(Case.json(rows), other));
                need(somebody, "an answer that nobody gives");
            } else {
                same(rows, expect, "rows");
            }
        }
    }

    /** Whether the left side of a rule holds: with a right side that nobody meets and force, nothing is left. */
    private static boolean whenHolds(String rule, Dialect dialect, String consumer, Case call) {
        String left = rule.contains("=>") ? rule.substring(0, rule.indexOf("=>")) : "";
        List<JsonElement> one = List.of(new JsonPrimitive("dubbo://1.1.1.1:1/S"));
        try (World world = worldFor(dialect, consumer, ALONE + "condition", one)) {
            world.chain.setRuleUrls(
                    List.of(staticRule(left + " => nowhere=1", Map.of("force", new JsonPrimitive(true)))));
            world.call(call);
            return world.routed().isEmpty();
        }
    }

    private static void when(Case one, Dialect dialect, JsonElement expect) {
        Case call = one.of("invocation");
        if (!Case.isText(call.get("method")) && one.text("rule").contains("method")) {
            throw new Case.Skips(NO_METHOD);
        }
        same(whenHolds(one.text("rule"), dialect, one.text("consumer_url", null), call), expect, "holds");
    }

    /** A part of a URL's query; empty when it is not there. */
    static String parameter(String url, String name) {
        int query = url.indexOf('?');
        for (String part : query < 0 ? new String[0] : url.substring(query + 1).split("&")) {
            int equals = part.indexOf('=');
            if (equals >= 0 && part.substring(0, equals).equals(name)) {
                return part.substring(equals + 1);
            }
        }
        return "";
    }

    private static String interfaceOf(String url) {
        String named = parameter(url, "interface");
        if (!named.isEmpty() || !url.contains("://")) {
            return named;
        }
        String rest = url.substring(url.indexOf("://") + 3);
        String path = rest.contains("/") ? rest.substring(rest.indexOf('/') + 1) : "";
        return path.contains("?") ? path.substring(0, path.indexOf('?')) : path;
    }

    static String keyOf(Dialect dialect, RuleKind kind, String application, String url) {
        if (application != null) {
            return Rule.applicationKey(dialect, kind, application);
        }
        return Rule.key(dialect, kind, interfaceOf(url), parameter(url, "version"), parameter(url, "group"));
    }

    /** Whether a pattern fits: as a rule's right side, which sees the consumer's URL, or else as its left side. */
    private static boolean fits(Case one, Dialect dialect) {
        String pattern = one.text("pattern");
        String value = one.text("value", null);
        String consumer = one.text("param_url", null);
        if (pattern.isEmpty() || value == null) {
            throw new Case.Skips("a rule cannot say an empty pattern");
        }
        if (value.isEmpty()) {
            throw new Case.Skips("an empty parameter is none");
        }
        if (pattern.startsWith("$") && consumer == null) {
            throw new Case.Skips("a reference always has a consumer");
        }
        if (consumer == null && !one.text("side").equals("then")) {
            String left = "consumer://1.1.1.1/S?x=" + value;
            return whenHolds("x=" + pattern + " =>", dialect, left, named(new Case(new JsonObject())));
        }
        List<JsonElement> rows = List.of(new JsonPrimitive("dubbo://1.1.1.1:1/S?x=" + value));
        try (World world = worldFor(dialect, consumer, ALONE + "condition", rows)) {
            world.chain.setRuleUrls(List.of(staticRule("=> x=" + pattern, Map.of("force", new JsonPrimitive(true)))));
            world.invocation.reset().method("m");
            return !world.routed().isEmpty();
        }
    }

    /**
     * Refused with a place; or else in force where upstream's rule is valid and enabled, and strict where it is forced:
     * of that shows what a left side that holds leaves when nobody meets the right one.
     */
    private static void parse(Case one, Dialect dialect, Case expect) {
        String text = one.text("rule");
        String consumer = "consumer://1.1.1.1/S?a=b&region=beijing&version=v1&tag=tag1";
        String said = Rule.checkJson(dialect, RuleKind.CONDITION, text, null);
        Case found = new Case(com.google.gson.JsonParser.parseString(said).getAsJsonObject());
        try (World world = worldFor(dialect, consumer, null, List.of(new JsonPrimitive("dubbo://1.1.1.1:1/S")))) {
            String key = keyOf(dialect, RuleKind.CONDITION, null, consumer);
            BywayException refused = world.setRule(key, text);
            same(refused != null, found.get("refused"), "refused as the check says");
            if (expect.get("error") != null) {
                need(refused != null, "an error was expected");
                for (Case problem : found.cases("problems")) {
                    need(problem.integer("line", 0) > 0 && !problem.text("message").isEmpty(), said);
                }
                return;
            }
            need(refused == null, "refused: " + refused);
            boolean unknown = expect.has("rule") && expect.get("rule") == null;
            boolean want = expect.flag("valid", true) && expect.flag("enabled", true) && !unknown;
            boolean got =
                    WordKinds.routers(world).stream()
                            .anyMatch(router -> router.text("key").equals(key) && router.flag("in_force"));
            same(got, want, "in force");
            world.invocation.reset().method("m");
            List<JsonElement> conditions = expect.list("conditions");
            if (got && !conditions.isEmpty() && Case.equal(conditions.get(0), Case.json("a=b => c=d"))) {
                same(world.routed().size(), expect.flag("force") ? 0 : 1, "left");
            }
        }
    }

    /** Shares of a weighted draw: within five deviations. */
    private static void shares(World world, Case one, List<Case> outcomes, String share) {
        int repeat = one.integer("repeat", 20000);
        int[] counts = new int[outcomes.size()];
        for (int i = 0; i < repeat; i++) {
            JsonElement rows = Case.json(world.routed());
            int found = 0;
            while (found < counts.length && !Case.equal(rows, outcomes.get(found).get("indices"))) {
                found++;
            }
            need(found < counts.length, "rows that are none of the outcomes");
            counts[found]++;
        }
        for (int i = 0; i < counts.length; i++) {
            double p = outcomes.get(i).number(share, 0);
            double slack = 5 * Math.sqrt(repeat * p * (1 - p)) + 1e-6 * repeat;
            need(Math.abs(counts[i] - p * repeat) <= slack, counts[i] + " of " + repeat + ", want a share of " + p);
        }
    }

    private static void events(Case one, Dialect dialect, RuleKind kind, JsonElement expect) {
        String consumer = one.text("consumer_url", "consumer://127.0.0.1/com.foo.BarService");
        boolean ofProvider = one.text("router").equals("provider-app");
        if (ofProvider && dialect == Dialect.DUBBO_2_7) {
            throw new Case.Skips("2.7 has no such router");
        }
        try (World world = worldFor(dialect, consumer, null, one.list("invokers"))) {
            String key = keyOf(dialect, kind, ofProvider ? "demo-provider" : null, consumer);
            BywayException refused = null;
            boolean aboutMethods = false;
            for (Case event : one.cases("events")) {
                aboutMethods |= event.text("content").contains("method");
                refused =
                        event.text("type").equals("DELETED")
                                ? world.removeRule(key)
                                : world.setRule(key, event.text("content"));
            }
            if (!world.call(one.of("invocation")) && aboutMethods) {
                throw new Case.Skips(NO_METHOD);
            }
            if (expect != null && expect.isJsonObject() && expect.getAsJsonObject().has("outcomes")) {
                shares(
                        world,
                        one,
                        new Case(expect.getAsJsonObject()).cases("outcomes"),
                        dialect == Dialect.BYWAY ? "p_ideal" : "p_dubbo");
            } else if (crash(expect)) {
                need(
                        refused != null && world.routed().size() == world.rows.size(),
                        "a text upstream dies of is taken");
            } else {
                same(world.routed(), expect, "rows");
            }
        }
    }

    private static final Map<String, String> ROUTERS =
            Map.of(
                    "AddressInvokersSelector", "address",
                    "AppRouter", "app",
                    "ServiceRouter", "service",
                    "TagRouter", "tag",
                    "MockInvokersSelector", "mock");

    /** The built-in routers of the dialect stand in the status in the order the case wants. */
    private static void chainOrder(Case one) {
        String implementation = one.text("impl");
        Dialect dialect = implementation.startsWith("dubbo-2.7.8") ? Dialect.DUBBO_2_7
                : implementation.startsWith("dubbo-3.2") || implementation.startsWith("dubbo-3.3") ? Dialect.DUBBO_3
                : implementation.startsWith("dubbo-go") ? Dialect.DUBBO_GO
                : null;
        if (dialect == null) {
            throw new Case.Skips("no dialect of byway");
        }
        List<String> names = new ArrayList<>();
        String consumer = "consumer://127.0.0.1/S?application=a&router=default,address";
        try (World world = new World(dialect, consumer, List.of())) {
            JsonObject status = com.google.gson.JsonParser.parseString(world.chain.status()).getAsJsonObject();
            for (Case router : new Case(status).cases("routers")) {
                names.add(router.text("name"));
            }
        }
        int begin = 0;
        for (String wanted : one.texts("expect")) {
            String name = ROUTERS.getOrDefault(wanted, wanted);
            int at = names.subList(begin, names.size()).indexOf(name);
            if (at >= 0) {
                begin += at + 1;
            } else {
                need(!names.contains(name), name + " comes too early");
            }
        }
    }

    private static void form(Case one, String name, JsonElement expect) {
        Dialect dialect = World.dialectNamed(name);
        if (dialect == null) {
            if (name.contains("/StateRouter")) {
                throw new Case.Skips("the bare condition");
            }
            throw new Case.Fails("no dialect for " + name);
        }
        switch (one.text("form")) {
            case "string":
                string(one, dialect, expect);
                break;
            case "when":
                when(one, dialect, expect);
                break;
            case "events":
                events(one, dialect, RuleKind.CONDITION, expect);
                break;
            case "affinity":
                events(one, dialect, RuleKind.AFFINITY, expect);
                break;
            case "rulekey":
                same(
                        keyOf(dialect, RuleKind.CONDITION, null, one.text("url")),
                        expect.getAsString() + ".condition-router",
                        "key");
                break;
            case "glob":
            case "range":
                same(fits(one, dialect), expect, "fits");
                break;
            case "parse":
                parse(one, dialect, new Case(expect.getAsJsonObject()));
                break;
            default:
                throw new Case.Fails("unknown form " + one.text("form"));
        }
    }

    private static void condition(Case one) {
        if (one.text("form").equals("chain-order")) {
            chainOrder(one);
            return;
        }
        Map<String, JsonElement> by = one.of("expect_by_impl").members();
        Map<String, JsonElement> runs = new LinkedHashMap<>();
        if (by.get("all") != null && by.get("all").isJsonArray()) {
            by.get("all").getAsJsonArray().forEach(name -> runs.put(name.getAsString(), one.get("expect")));
        } else if (!by.isEmpty()) {
            runs.putAll(by);
        } else {
            runs.put("dubbo-3.3", one.get("expect"));
        }
        boolean ran = false;
        Case.Skips skipped = null;
        if (one.get("expect_byway") != null) {
            runs.put("byway", one.get("expect_byway"));
        }
        for (Map.Entry<String, JsonElement> run : runs.entrySet()) {
            try {
                form(one, run.getKey(), run.getValue());
                ran = true;
            } catch (Case.Skips why) {
                skipped = why;
            } catch (Case.Fails why) {
                throw new Case.Fails("[" + run.getKey() + "] " + why.getMessage());
            }
        }
        if (!ran && skipped != null) {
            throw skipped;
        }
    }

    // Mock selector, plain chains.

    /** A call with a method. */
    static Case named(Case call) {
        JsonObject named = new JsonObject();
        named.addProperty("method", "m");
        call.members().forEach((key, value) -> {
            if (!value.isJsonNull() && !(key.equals("method") && !Case.isText(value))) {
                named.add(key, value);
            }
        });
        return new Case(named);
    }

    private static void routed(Case one, Dialect dialect, String routers, JsonElement expect) {
        List<JsonElement> invokers = one.list("invokers");
        try (World world = worldFor(dialect, one.text("consumer_url", null), routers, invokers)) {
            world.call(named(one.of("invocation")));
            same(World.idsOf(invokers, world.routed()), expect, "ids");
        }
    }

    private static void mock(Case one) {
        JsonElement expect = one.get("expect");
        if (expect.isJsonObject()) {
            new Case(expect.getAsJsonObject()).members().forEach((name, want) -> routed(
                    one,
                    name.equals("java_2_7") ? Dialect.DUBBO_2_7 : Dialect.DUBBO_3,
                    ALONE + "mock",
                    want.isJsonNull() ? new JsonArray() : want));
            return;
        }
        // dubbo-go has no mock selector.
        for (Dialect dialect : List.of(Dialect.BYWAY, Dialect.DUBBO_3, Dialect.DUBBO_2_7)) {
            routed(one, dialect, ALONE + "mock", expect);
        }
    }

    // Reports.

    private static void conditionRoute(Case one) {
        Case given = one.of("input");
        JsonElement own = given.get("invocation");
        JsonObject plain = new JsonObject();
        plain.addProperty("rule", given.text("rule"));
        plain.addProperty("consumer_url", given.text("consumer", "consumer://10.9.9.9/s"));
        JsonObject parameters = new JsonObject();
        parameters.addProperty("force", given.flag("force"));
        plain.add("params", parameters);
        plain.add("invocation", named(own != null && own.isJsonObject() ? given.of("invocation") : given).object);
        plain.add("invokers", given.get("invokers"));
        string(new Case(plain), Dialect.BYWAY, one.of("expect").get("kept"));
    }

    private static void conditionWhen(Case one) {
        Case given = one.of("input");
        List<String> rules = given.list("rules").isEmpty() ? List.of(given.text("rule")) : given.texts("rules");
        List<Case> calls = given.cases("invocations");
        if (calls.isEmpty()) {
            JsonElement own = given.get("invocation");
            calls = List.of(own != null && own.isJsonObject() ? given.of("invocation") : given);
        }
        List<Boolean> matched = new ArrayList<>();
        for (String rule : rules) {
            for (Case call : calls) {
                matched.add(
                        whenHolds(rule, Dialect.BYWAY, given.text("consumer", "consumer://10.9.9.9/s"), named(call)));
            }
        }
        same(matched, one.of("expect").get("matched"), "matched");
    }

    private static void ruleTexts(Case one) {
        String key = "S::.condition-router";
        List<String> texts = one.of("input").texts("texts");
        List<String> results = one.of("expect").texts("result");
        for (int i = 0; i < texts.size(); i++) {
            List<JsonElement> rows = List.of(new JsonPrimitive("dubbo://1.1.1.1:1/S?region=b"));
            try (World world = new World(Dialect.BYWAY, "consumer://1.1.1.1/S", rows)) {
                world.setRule(key, "conditions: ['=> region=a']\nforce: true");
                BywayException refused = world.setRule(key, texts.get(i));
                world.call(named(new Case(new JsonObject())));
                int left = world.routed().size();
                String want = results.get(i);
                boolean good;
                if (want.equals("delete")) {
                    good = refused == null && left == 1;
                } else if (want.equals("error") || want.equals("decide")) {
                    good = refused != null && refused.line() > 0 && left == 0;
                } else {
                    good = refused == null;
                }
                need(good, texts.get(i) + ": " + refused + ", " + left + " left, want " + want);
            }
        }
    }

    private static void affinity(Case one) {
        Case given = one.of("input");
        Case expect = one.of("expect");
        String consumer = given.text("consumer", "consumer://10.9.9.9/s");
        Map<Dialect, JsonElement> wanted = new LinkedHashMap<>();
        wanted.put(Dialect.BYWAY, expect.get("kept"));
        if (expect.get("compat_dubbo_go") != null) {
            wanted.put(Dialect.DUBBO_GO, expect.get("compat_dubbo_go"));
        }
        String ratio = given.get("ratio") == null ? "null" : Case.shown(given.get("ratio"));
        String text =
                "configVersion: v3.1\nenabled: true\naffinityAware: {key: " + given.text("key") + ", ratio: " + ratio
                        + "}\n";
        wanted.forEach(
                (dialect, want) -> {
                    try (World world = new World(dialect, consumer, given.list("invokers"))) {
                        String key = keyOf(dialect, RuleKind.AFFINITY, null, consumer);
                        BywayException refused = world.setRule(key, text);
                        if (dialect == Dialect.BYWAY) {
                            JsonElement told = expect.get("events");
                            need((refused != null) == (told != null && told.isJsonArray()), "the rule: " + refused);
                        }
                        world.call(named(new Case(new JsonObject())));
                        same(world.routed(), want, "rows");
                    }
                });
    }
}
