package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;
import static io.byway.conform.MeshKinds.map;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.byway.Balance;
import io.byway.BywayException;
import io.byway.Dialect;
import io.byway.Invocation;
import io.byway.Invokers;
import io.byway.PickOptions;
import io.byway.Router;
import io.byway.Rule;
import io.byway.RuleKind;
import io.byway.Source;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Words of rules seen through what they choose: addresses and matchers of tags, keys, orders, weights, and what a chain
 * does with lists and notifications.
 */
final class WordKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        KINDS.put("dubbo_chain/ip", WordKinds::ip);
        KINDS.put("dubbo_chain/string_match", WordKinds::stringMatch);
        KINDS.put("dubbo_chain/param_match", WordKinds::paramMatch);
        KINDS.put("dubbo_chain/tag-parse", WordKinds::tagParse);
        KINDS.put("dubbo_chain/chain-order", WordKinds::chainOrder);
        KINDS.put("dubbo_chain/lb-warmup", WordKinds::warmup);
        KINDS.put("dubbo_chain/lb-weight", WordKinds::weight);
        KINDS.put("dubbo_chain/notify", WordKinds::notified);
        KINDS.put("bugs/condition_config", WordKinds::conditionConfig);
        KINDS.put("bugs/rule_keys", WordKinds::ruleKeys);
        KINDS.put("bugs/list_ops", WordKinds::listOps);
        KINDS.put("bugs/concurrency", WordKinds::concurrency);
        KINDS.put("bugs/sequence", SequenceSteps::sequence);
    }

    private static final String APPLICATION = "of-the-case";

    private WordKinds() {}

    /** Whether a provider belongs to a tag; null when the rule is refused. */
    private static Boolean tagged(Dialect dialect, Map<String, Object> tag, String provider) {
        Map<String, Object> named = new LinkedHashMap<>(tag);
        named.put("name", "t");
        String rule = Case.shown(Case.json(map("configVersion", "v3.0", "tags", List.of(named))));
        String consumer = "consumer://10.0.1.1/S?router=-default,tag";
        List<JsonElement> rows = List.of(new JsonPrimitive(provider));
        String extra = "application=" + APPLICATION;
        try (World world = new World(dialect, consumer, rows, extra, "application=", null, null)) {
            if (world.setRule(APPLICATION + ".tag-router", rule) != null) {
                return null;
            }
            world.invocation.reset().method("m").attach("dubbo.tag", "t").attach("dubbo.force.tag", "true");
            return !world.routed().isEmpty();
        }
    }

    private static boolean holds(Boolean answer) {
        return answer != null && answer;
    }

    private static boolean isTrue(JsonElement value) {
        return value != null
                && value.isJsonPrimitive()
                && value.getAsJsonPrimitive().isBoolean()
                && value.getAsBoolean();
    }

    // Addresses.

    private static Boolean atAddress(Dialect dialect, String pattern, String host, int port) {
        String place = host.contains(":") ? "[" + host + "]" : host;
        return tagged(dialect, map("addresses", List.of(pattern)), "dubbo://" + place + ":" + port + "/S");
    }

    /** Dubbo's matcher throws where it does not understand; a tag then has nobody there. */
    private static void ip(Case one) {
        String function = one.text("function");
        String pattern = one.text("pattern");
        String host = one.text("host", null);
        int port = one.integer("port", 1);
        if (host == null) {
            throw new Case.Skips("a provider always has a host");
        }
        if (function.equals("expression2")) {
            throw new Case.Skips("upstream's address without a port is no provider's");
        }
        if (function.equals("range") && pattern.contains("/")) {
            throw new Case.Skips("the range alone, in front of which a network is always looked for");
        }
        if (pattern.startsWith("0.0.0.0:")) {
            throw new Case.Skips("in a tag 0.0.0.0 and a port mean every host");
        }
        JsonElement expect = one.get("expect");
        Boolean got = atAddress(Dialect.DUBBO_3, pattern, host, port == 0 ? 1 : port);
        if (!(got == null && expect != null && expect.isJsonObject())) {
            same(holds(got), isTrue(expect), "there");
        }
        JsonElement sane = World.saneOf(one);
        if (sane != null) {
            boolean own = holds(atAddress(Dialect.BYWAY, pattern, host, port == 0 ? 1 : port));
            same(own, isTrue(sane), "byway: there");
        }
    }

    // Matchers of tags.

    private static Boolean parameterFits(Dialect dialect, String key, JsonElement matcher, String provider) {
        return tagged(dialect, map("match", List.of(map("key", key, "value", matcher))), provider);
    }

    private static void paramMatch(Case one) {
        Case matcher = one.of("matcher");
        Boolean got =
                parameterFits(
                        World.dialectOf(one),
                        matcher.text("key"),
                        matcher.get("value"),
                        World.url(one.list("invokers").get(0)));
        same(holds(got), isTrue(one.get("expect")), "fits");
    }

    private static void stringMatch(Case one) {
        JsonElement expect = one.get("expect");
        JsonElement matcher = one.get("matcher");
        String given = one.text("input", null);
        Dialect dialect = World.dialectOf(one);
        if (one.of("expect").has("error")) {
            // Upstream learns at the first call what a reader says at once.
            need(parameterFits(dialect, "k", matcher, "dubbo://10.0.0.1:1/S?k=b") == null, "the rule is taken");
            return;
        }
        if (dialect != Dialect.DUBBO_GO) {
            // Of attachments, which may be absent.
            JsonElement parsed = one.of("expect").get("parsed");
            if (parsed != null && parsed.isJsonObject()) {
                // A number was read as its text, so that text fits.
                given = new Case(parsed.getAsJsonObject()).text("exact");
                expect = new JsonPrimitive(true);
            }
            Object block = map("attachments", map("dubboContext", map("k", matcher)));
            Object attachments = given == null ? Map.of() : map("k", given);
            JsonObject call = Case.json(map("method", "m", "attachments", attachments)).getAsJsonObject();
            MeshKinds.matched(dialect, "consumer://10.1.1.1/S", block, new Case(call), null, expect);
            return;
        }
        String query = given == null ? "a=b" : "k=" + given;
        same(holds(parameterFits(dialect, "k", matcher, "dubbo://10.0.0.1:1/S?" + query)), isTrue(expect), "fits");
    }

    // What a text is read as, as far as it shows.

    static List<Case> routers(World world) {
        return new Case(JsonParser.parseString(world.chain.status()).getAsJsonObject()).cases("routers");
    }

    /** How a router stands; of several of a name the last. */
    private static Case routerOf(World world, String name) {
        return routers(world).stream()
                .filter(router -> router.text("name").equals(name))
                .reduce((first, second) -> second)
                .orElseThrow(() -> new Case.Fails("no router " + name));
    }

    /** A rule that counts says who is gray; one that does not leaves nobody gray. */
    private static boolean holdsForGray(Dialect dialect, String rule) {
        List<JsonElement> rows = List.of(new JsonPrimitive("dubbo://192.168.0.1:20000/S?application=test-app"));
        try (World world = new World(dialect, "consumer://10.0.1.1/S", rows)) {
            world.engine.setRule("test-app.tag-router", rule);
            world.invocation.reset().method("m").attach("dubbo.tag", "gray").attach("dubbo.force.tag", "true");
            return !world.routed().isEmpty();
        }
    }

    private static void tagParse(Case one) {
        Dialect dialect = World.dialectOf(one);
        Case expect = one.of("expect");
        List<JsonElement> rows = one.list("invokers");
        if (rows.isEmpty()) {
            rows = List.of(new JsonPrimitive("dubbo://10.0.0.1:1/S?application=a"));
        }
        String key;
        BywayException refused;
        try (World world = new World(dialect, "consumer://10.0.1.1/S", rows)) {
            key = routerOf(world, "tag").text("key");
            refused = world.setRule(key, one.text("rule"));
        }
        if (expect.has("config_key")) {
            same(key, expect.get("config_key"), "key");
        }
        if (expect.has("valid")) {
            need(refused == null, "refused: " + refused);
            boolean holds = holdsForGray(dialect, one.text("rule"));
            same(holds, expect.get("valid"), "a call for gray gets the provider that is");
        }
        expect.of("tag_to_addresses")
                .members()
                .forEach(
                        (name, group) -> {
                            String first = group.getAsJsonArray().get(0).getAsString();
                            need(
                                    holds(tagged(dialect, map("addresses", group), "dubbo://" + first + "/S")),
                                    name + " is not at " + first);
                        });
    }

    private static void conditionConfig(Case one) {
        Case given = one.of("input");
        try (World world = new World(Dialect.BYWAY, "consumer://10.9.9.9/s", given.list("invokers"))) {
            BywayException refused = world.setRule("s::.condition-router", given.text("yaml"));
            need(refused == null, "refused: " + refused);
            world.invocation.reset().method(given.text("method", "m"));
            same(world.routed(), one.of("expect").get("kept"), "kept");
            same(routerOf(world, "service").flag("in_force"), one.of("expect").get("enabled"), "in force");
        }
    }

    private static void ruleKeys(Case one) {
        Case given = one.of("input");
        String provider = given.text("provider_application");
        String consumer = given.text("consumer_application");
        Map<String, Supplier<Object>> got = new HashMap<>();
        got.put("tag", () -> Rule.applicationKey(Dialect.BYWAY, RuleKind.TAG, provider));
        got.put("script", () -> Rule.applicationKey(Dialect.BYWAY, RuleKind.SCRIPT, provider));
        got.put("condition_service", () -> serviceKey(RuleKind.CONDITION, given));
        got.put("affinity_service", () -> serviceKey(RuleKind.AFFINITY, given));
        got.put(
                "condition_app",
                () ->
                        List.of(
                                Rule.applicationKey(Dialect.BYWAY, RuleKind.CONDITION, consumer),
                                Rule.applicationKey(Dialect.BYWAY, RuleKind.CONDITION, provider)));
        one.of("expect")
                .members()
                .forEach(
                        (name, want) -> {
                            need(got.containsKey(name), "unknown key " + name);
                            same(got.get(name).get(), want, name);
                        });
    }

    private static String serviceKey(RuleKind kind, Case given) {
        return Rule.key(Dialect.BYWAY, kind, given.text("service"), given.text("version"), given.text("group"));
    }

    private static final Map<String, String> ROUTERS =
            Map.of(
                    "mock", "MockInvokersSelector",
                    "standard-mesh-rule", "StandardMeshRuleRouter",
                    "tag", "TagStateRouter",
                    "service", "ServiceStateRouter",
                    "provider-app", "ProviderAppStateRouter",
                    "app", "AppStateRouter",
                    "script-app", "AppScriptStateRouter");

    private static void chainOrder(Case one) {
        try (World world = new World(Dialect.DUBBO_3, one.text("consumer_url"), List.of())) {
            // Affinity came after the version the cases were taken from.
            List<String> names =
                    routers(world).stream()
                            .map(router -> ROUTERS.get(router.text("name")))
                            .filter(name -> name != null)
                            .collect(Collectors.toList());
            same(names, one.get("expect"), "routers");
        }
    }

    // Weights.

    private static final long WALL = 5_000_000_000_000L;

    /** Smooth weighted round robin gives each provider exactly its share, so counts tell the weight. */
    private static void weighs(String first, int weight) {
        int other = 50;
        List<JsonElement> rows =
                List.of(new JsonPrimitive(first), new JsonPrimitive("dubbo://10.0.0.2:1/S?weight=" + other));
        String consumer = "consumer://127.0.0.1/S?router=-default";
        try (World world = new World(Dialect.DUBBO_3, consumer, rows, null, "", null, () -> WALL)) {
            world.invocation.reset().method("m");
            PickOptions robin = new PickOptions().balance(Balance.ROUND_ROBIN);
            int picks = 20 * (weight + other);
            int count = 0;
            for (int i = 0; i < picks; i++) {
                count += world.chain.pick(world.invocation, robin).tag() == 1 ? 1 : 0;
            }
            same(count, 20 * weight, "of " + picks + " picks");
        }
    }

    private static void warmup(Case one) {
        long uptime = (long) one.number("uptime_ms", 0);
        if (uptime == 0) {
            throw new Case.Skips("an uptime of 0 does not come to the formula");
        }
        weighs(
                "dubbo://10.0.0.1:1/S?weight="
                        + one.integer("weight", 0)
                        + "&warmup="
                        + (long) one.number("warmup_ms", 0)
                        + "&timestamp="
                        + (WALL - uptime),
                (int) one.number("expect", 0));
    }

    private static void weight(Case one) {
        if (!one.get("expect").isJsonObject()) {
            throw new Case.Skips("weights of whole registries are a cluster's of clusters");
        }
        for (Case row : one.cases("invokers")) {
            Matcher ago = Pattern.compile("now-(\\d+)ms").matcher(row.text("timestamp"));
            need(ago.matches(), "not understood: " + row.text("timestamp"));
            long since = WALL - Long.parseLong(ago.group(1));
            weighs("dubbo://10.0.0.1:1/S?timestamp=" + since, one.of("expect").integer("value", 0));
        }
    }

    // Lists.

    static List<String> urlsOf(List<String> names) {
        List<String> urls = new ArrayList<>(names);
        urls.replaceAll(name -> name.contains("://") ? name : "dubbo://" + name + ":1/S");
        return urls;
    }

    static List<JsonElement> elements(List<String> texts) {
        return texts.stream().map(JsonPrimitive::new).collect(Collectors.toList());
    }

    private static void listOps(Case one) {
        Case given = one.of("input");
        List<String> names = new ArrayList<>(given.texts("base"));
        names.addAll(given.texts("tail"));
        try (World world = new World(Dialect.BYWAY, "consumer://10.0.0.1/S", elements(urlsOf(names)))) {
            int number = 0;
            for (JsonElement operation : given.list("ops")) {
                List<JsonElement> words = new ArrayList<>();
                operation.getAsJsonArray().forEach(words::add);
                String dropped =
                        words.get(0).getAsString().equals("drop_by_router") ? words.get(1).getAsString() : null;
                Router.Route route =
                        request -> {
                            for (int i = 0; i < request.size(); i++) {
                                if (!names.get((int) request.tag(i) - 1).equals(dropped)) {
                                    request.keep(i);
                                }
                            }
                        };
                Router.Options options = new Router.Options().priority(number);
                world.chain.addRouter(new Router(world.engine, "op" + number++, route, options));
            }
            world.invocation.reset().method("m");
            List<String> members = world.routed().stream().map(names::get).collect(Collectors.toList());
            same(members, one.of("expect").get("members"), "members");
        }
    }

    // Threads.

    private static void concurrency(Case one) {
        Case given = one.of("input");
        List<List<String>> lists = new ArrayList<>();
        for (JsonElement names : given.list("lists")) {
            List<String> texts = new ArrayList<>();
            names.getAsJsonArray().forEach(name -> texts.add(name.getAsString()));
            lists.add(texts);
        }
        // Rounds in place of seconds: the same number of races on every machine.
        replacedWhileRouting(
                lists,
                given.integer("threads_route", 1),
                given.integer("threads_set_invokers", 1),
                1000 * given.integer("seconds", 1));
    }

    /** Every answer is of one list while others replace the list. */
    static void replacedWhileRouting(List<List<String>> members, int readers, int writers, int rounds) {
        List<String> wrong = Collections.synchronizedList(new ArrayList<>());
        try (World world =
                new World(Dialect.BYWAY, "consumer://10.0.0.1/S", elements(List.of("dubbo://a:1/S")))) {
            // The hundreds of a tag say which list it is of.
            List<Invokers> lists = new ArrayList<>();
            for (List<String> texts : members) {
                long[] tags = new long[texts.size()];
                int hundreds = 100 * (lists.size() + 1);
                Arrays.setAll(tags, i -> hundreds + i);
                lists.add(new Invokers(world.engine, urlsOf(texts), tags));
            }
            world.chain.setInvokers(lists.get(0));
            Runnable routes =
                    () -> {
                        try (Invocation call = new Invocation("m")) {
                            for (int i = 0; i < rounds; i++) {
                                long[] tags = world.chain.tags(call);
                                if (Arrays.stream(tags).map(tag -> tag / 100).distinct().count() != 1) {
                                    wrong.add(Arrays.toString(tags));
                                }
                            }
                        }
                    };
            Runnable replaces =
                    () -> {
                        for (int turn = 0; turn < rounds; turn++) {
                            world.chain.setInvokers(lists.get(turn % lists.size()));
                        }
                    };
            List<CompletableFuture<Void>> running = new ArrayList<>();
            for (int i = readers; i > 0; i--) {
                running.add(CompletableFuture.runAsync(routes, task -> new Thread(task).start()));
            }
            for (int i = writers; i > 0; i--) {
                running.add(CompletableFuture.runAsync(replaces, task -> new Thread(task).start()));
            }
            running.forEach(CompletableFuture::join);
        }
        need(wrong.isEmpty(), wrong.toString());
    }

    // A registry's notifications.

    private static final String ROUTE_URL =
            "route://0.0.0.0/S?router=condition&force=true&rule=%3D%3E%20host%3D10.0.0.1";
    private static final String TWO = "dubbo://10.0.0.1:20880/S\ndubbo://10.0.0.2:20880/S";

    /** An entry is what its key says; among providers only URLs of providers count. */
    private static void category(Case one) {
        try (World world = new World(Dialect.DUBBO_3, "consumer://10.0.0.9/S", List.of())) {
            Source source = Source.memory(world.engine);
            source.put("S/providers", one.cases("invokers").get(0).text("url"));
            need(world.chain.bind(source, Duration.ofSeconds(30)), "the first state does not come");
            world.invocation.reset().method("m");
            int want = one.of("expect").text("category").equals("providers") ? 1 : 0;
            same(world.routed().size(), want, "providers");
        }
    }

    private static void notified(Case one) {
        Case expect = one.of("expect");
        JsonElement urlRouters = expect.get("url_routers");
        boolean routers = urlRouters != null && urlRouters.isJsonArray();
        if (expect.has("category") || expect.has("dropped")) {
            category(one);
            return;
        }
        List<Case> entries = one.cases("invokers");
        String entry = entries.isEmpty() ? null : entries.get(0).text("url", null);
        int before;
        int after;
        Dialect dialect = routers ? Dialect.DUBBO_2_7 : Dialect.DUBBO_3;
        try (World world = new World(dialect, "consumer://10.0.0.9/S", List.of())) {
            Source source = Source.memory(world.engine);
            source.put("S/providers", TWO);
            source.put("S/routers", routers ? ROUTE_URL : "");
            need(world.chain.bind(source, Duration.ofSeconds(30)), "the first state does not come");
            world.invocation.reset().method("m");
            before = world.chain.tags(world.invocation).length;
            if (entry == null) {
                source.remove("S/providers");
            } else {
                source.put(routers ? "S/routers" : "S/providers", entry);
            }
            after = world.chain.tags(world.invocation).length;
        }
        JsonElement invokers = expect.get("invokers");
        if (routers) {
            same(List.of(before, after), List.of(1, 2), "providers");
        } else {
            int want = Case.isNumber(invokers) ? invokers.getAsInt() : 2;
            same(List.of(before, after), List.of(2, want), "providers");
        }
    }
}
