package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.byway.BywayException;
import io.byway.Chain;
import io.byway.Dialect;
import io.byway.Router;
import io.byway.Rule;
import io.byway.RuleKind;
import io.byway.Source;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * What upstream's tests ask of the inside of a chain, as it shows outside: in what a chain routes, in its status, in
 * explanations, in what it keeps of its calls, and in what a source's entries become.
 */
final class InsideKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        KINDS.put("dubbo_chain/bitlist", RowLists::run);
        KINDS.put("dubbo_chain/chain", InsideKinds::chain);
        KINDS.put("dubbo_chain/chain-cache", InsideKinds::cache);
        KINDS.put("dubbo_chain/chain-snapshot", InsideKinds::snapshot);
        KINDS.put("dubbo_chain/chain-sharing", InsideKinds::sharing);
        KINDS.put("dubbo_chain/snapshot-switch", InsideKinds::switched);
        KINDS.put("dubbo_chain/directory", InsideKinds::directory);
        KINDS.put("dubbo_chain/address_match", InsideKinds::addressMatch);
        KINDS.put("dubbo_chain/mesh-parse", InsideKinds::meshParse);
    }

    private InsideKinds() {}

    private static String consumerOf(Case one) {
        String text = one.text("consumer_url");
        return text.contains("://") && !text.contains(" ") ? text : "consumer://127.0.0.1/com.demo.Service";
    }

    private static List<JsonElement> providers(String... urls) {
        return WordKinds.elements(List.of(urls));
    }

    private static void routed(Case one, List<JsonElement> rows, JsonElement expect) {
        try (World world = new World(World.dialectOf(one), consumerOf(one), rows)) {
            world.call(RuleKinds.named(one.of("invocation")));
            same(World.idsOf(rows, world.routed()), expect, "ids");
        }
    }

    /** Static configurations that count: those that are there, enabled and valid, whatever their key. */
    private static void delivered(Case one, JsonElement keys) {
        JsonElement configs = one.get("configs");
        if (configs == null || !configs.isJsonArray()) {
            throw new Case.Skips("described in words");
        }
        List<String> got = new ArrayList<>();
        for (JsonElement config : one.list("configs")) {
            if (!config.isJsonObject()) {
                continue;
            }
            Case given = new Case(config.getAsJsonObject());
            String key = given.text("key");
            boolean ofService = given.text("scope").equals("service");
            String consumer = ofService ? "consumer://10.0.0.1/" + key : "consumer://10.0.0.1/S?application=" + key;
            JsonObject rule = config.getAsJsonObject().deepCopy();
            rule.addProperty("force", true);
            rule.add("conditions", Case.json(List.of("=> a=b")));
            try (World world = new World(Dialect.BYWAY, consumer, providers("dubbo://10.0.0.2:1/S"))) {
                BywayException refused =
                        world.setRule(key + (ofService ? "::" : "") + ".condition-router", Case.shown(rule));
                need(refused == null, config + ": " + refused);
                world.invocation.reset().method("m");
                if (world.routed().isEmpty()) {
                    got.add(key);
                }
            }
        }
        same(got, keys, "in force");
    }

    /** Host routers in ascending order, each on the output of the one before. */
    private static void hostRouters(Case one) {
        List<Long> order = new ArrayList<>();
        Map<Long, Integer> inputs = new TreeMap<>();
        List<JsonElement> routers = one.has("routers") ? one.list("routers") : one.list("added_priorities");
        JsonElement expect = one.get("expect");
        try (World world = new World(Dialect.BYWAY, consumerOf(one), one.list("invokers"))) {
            for (JsonElement router : routers) {
                Case given = new Case(router.isJsonObject() ? router.getAsJsonObject() : new JsonObject());
                long priority = Case.isNumber(router) ? router.getAsLong() : given.integer("priority", 0);
                boolean firstOnly = given.text("does").equals("keeps the first");
                Router.Route route =
                        request -> {
                            order.add(priority);
                            inputs.put(priority, request.size());
                            for (int i = 0; i < (firstOnly ? 1 : request.size()); i++) {
                                request.keep(i);
                            }
                        };
                world.chain.addRouter(
                        new Router(world.engine, "r" + priority, route, new Router.Options().priority(priority)));
            }
            world.call(one.of("invocation"));
            List<String> ids = World.idsOf(one.list("invokers"), world.routed());
            for (Case router : one.cases("routers")) {
                if (router.has("input_size")) {
                    same(inputs.get((long) router.integer("priority", 0)), router.get("input_size"), "rows in");
                }
            }
            if (expect.isJsonObject()) {
                same(order, one.of("expect").get("call_order"), "order");
            } else {
                same(ids, expect, "ids");
            }
        }
    }

    private static void chain(Case one) {
        JsonElement expect = one.get("expect");
        JsonElement routers = one.get("routers");
        Case wanted = one.of("expect");
        if (wanted.has("call_order") || (routers != null && routers.isJsonArray())) {
            hostRouters(one);
        } else if (expect.isJsonArray()) {
            routed(one, one.list("invokers"), expect);
        } else if (wanted.has("delivered_keys")) {
            delivered(one, wanted.get("delivered_keys"));
        } else if (wanted.has("assert")) {
            // One writer and four readers; every answer belongs to one list.
            WordKinds.replacedWhileRouting(
                    List.of(List.of("a", "b", "c"), List.of("b", "c", "d"), List.of("e")), 4, 1, 2000);
        } else if (wanted.flag("ok")) {
            // A null list is an empty one.
            routed(one, List.of(), new JsonArray());
        } else {
            throw new Case.Skips("a chain has one world at a time: no call meets a list that changes under it");
        }
    }

    /** dubbo-go's pools are the memo here: what is remembered belongs to the generation it was made for. */
    private static void cache(Case one) {
        Case expect = one.of("expect");
        try (World world = new World(Dialect.BYWAY, consumerOf(one), one.list("invokers"))) {
            world.invocation.reset().method("Say");
            List<Integer> first = world.routed();
            long before = world.chain.generation();
            same(world.routed(), first, "again");
            same(world.chain.generation(), before, "generation of the same world");
            world.chain.setInvokers(world.list);
            // With the pool, the first generation is asked about; switched off, the one after a rebuild.
            int want = expect.integer("generation", 0) - (expect.flag("pool_found_by_name") ? 0 : 1);
            same(world.chain.generation() - before, want, "generations");
            same(world.routed(), first, "over the list set again");
        }
    }

    // Explanations.

    private static final Map<String, String> ROUTERS =
            Map.of(
                    "MockInvokersSelector", "mock",
                    "StandardMeshRuleRouter", "standard-mesh-rule",
                    "TagStateRouter", "tag",
                    "ServiceStateRouter", "service",
                    "ProviderAppStateRouter", "provider-app",
                    "AppStateRouter", "app",
                    "AppScriptStateRouter", "script-app");

    private static Case explained(World world, Case invocation) {
        world.call(RuleKinds.named(invocation));
        return new Case(JsonParser.parseString(world.chain.explainJson(world.invocation)).getAsJsonObject());
    }

    private static Case routerNamed(Case all, String name) {
        return all.cases("routers").stream()
                .filter(router -> router.text("name").equals(name))
                .findFirst()
                .orElse(new Case(new JsonObject()));
    }

    private static int numberBehind(String line, String name) {
        Matcher found = Pattern.compile(Pattern.quote(name) + ": (\\d+)").matcher(line);
        return found.find() ? Integer.parseInt(found.group(1)) : -1;
    }

    /** Upstream's text of a decision says what an explanation says: per router how many come in and go out. */
    private static void snapshot(Case one) {
        String text = one.of("expect").text("text");
        try (World world = new World(World.dialectOf(one), consumerOf(one), one.list("invokers"))) {
            if (!text.startsWith("[ Parent")) {
                tool(world, text);
                return;
            }
            Case got = explained(world, one.of("invocation"));
            int reached = 0;
            for (String line : text.split("\n")) {
                int in = numberBehind(line, "(Input");
                int out = numberBehind(line, "(Current Node Output");
                same(got.get("out"), numberBehind(line, "(Chain Node Output"), "left by the chain");
                String name = line.trim().substring(2).split(" ")[0];
                if (name.equals("Parent")) {
                    same(got.get("in"), in, "input");
                    continue;
                }
                Case router = routerNamed(got, ROUTERS.get(name));
                if (router.flag("reached")) {
                    reached++;
                    same(List.of(router.get("in"), router.get("out")), List.of(in, out), name);
                } else {
                    // Not in force: passes what it gets.
                    same(in, out, name);
                }
            }
            same(got.cases("routers").stream().filter(router -> router.flag("reached")).count(), reached, "reached");
        }
    }

    /** What the operations command shows: the mock router's two groups, and the routers in order. */
    private static void tool(World world, String text) {
        JsonObject mocks = JsonParser.parseString("{\"attachments\":{\"invocation.need.mock\":\"true\"}}").getAsJsonObject();
        List<String> names = new ArrayList<>();
        for (String line : text.split("\n")) {
            int total = numberBehind(line, "Total");
            String router = ROUTERS.get(line.split(" ")[0]);
            if (line.startsWith("[ Mocked")) {
                same(routerNamed(explained(world, new Case(mocks)), "mock").get("out"), total, "mocks");
            } else if (line.startsWith("[ Normal")) {
                same(routerNamed(explained(world, new Case(new JsonObject())), "mock").get("out"), total, "others");
            } else if (router != null) {
                names.add(router);
                if (total >= 0) {
                    same(world.rows.size(), total, "all");
                }
            }
        }
        // Affinity came later.
        List<String> own =
                WordKinds.routers(world).stream()
                        .map(router -> router.text("name"))
                        .filter(name -> !name.startsWith("affinity"))
                        .collect(Collectors.toList());
        same(own, names, "routers");
    }

    /** Chains share no routers: what is built for one service never decides for another. */
    private static void sharing(Case one) {
        List<JsonElement> rows = providers("dubbo://10.0.0.1:1/s?x=1", "dubbo://10.0.0.2:1/s?x=2");
        try (World world = new World(Dialect.DUBBO_3, "consumer://10.0.1.1/com.foo.A?application=c", rows);
                Chain other = new Chain(world.engine, "consumer://10.0.1.1/com.foo.B?application=c")) {
            other.setInvokers(world.list);
            world.setRule("com.foo.A::.condition-router", "force: true\nconditions: ['=> x=1']");
            world.setRule("com.foo.B::.condition-router", "force: true\nconditions: ['=> x=2']");
            world.invocation.reset().method("m");
            boolean own =
                    world.routed().equals(List.of(0)) && World.rowsOf(other.tags(world.invocation)).equals(List.of(1));
            same("AppScriptStateRouter of " + (own ? "A" : "B"), one.of("sane").get("walk_of_A_ends_in"), "end");
        }
    }

    /** Upstream marks a thread between switch and response; here a service's chain keeps its calls, and no other's. */
    private static void switched(Case one) {
        String service = one.of("invocation").text("service_key");
        boolean over = false;
        try (World world = new World(Dialect.DUBBO_3, "consumer://127.0.0.1/" + service, List.of());
                Chain other = new Chain(world.engine, "consumer://127.0.0.1/Another")) {
            for (String step : one.texts("steps")) {
                if (step.equals("onResponse") || step.equals("onError")) {
                    over = true;
                } else {
                    need(step.equals("enable " + service) || step.equals("disable " + service), "step " + step);
                    world.chain.keepRecent(step.startsWith("enable"));
                }
            }
            world.invocation.reset().method("call");
            boolean first = printed(world, other, world.chain);
            same(over ? printed(world, other, other) : first, one.of("expect").get("need_print"), "kept");
        }
    }

    private static boolean printed(World world, Chain other, Chain asked) {
        int before = kept(world.chain) + kept(other);
        asked.tags(world.invocation);
        return kept(world.chain) + kept(other) != before;
    }

    private static int kept(Chain chain) {
        return JsonParser.parseString(chain.recentJson()).getAsJsonArray().size();
    }

    /** An empty list is a state of a service, and no error. */
    private static void directory(Case one) {
        if (!one.has("expect_byway")) {
            throw new Case.Skips("whoever calls knows who cannot be reached, and says so at a pick");
        }
        routed(one, one.list("invokers"), one.of("expect_byway").get("list"));
    }

    // Sources and texts.

    /** Whether an override with this match is in force for a consumer at this address: it takes the provider away. */
    private static void addressMatch(Case one) {
        String address = one.text("input");
        if (!address.matches("[0-9.]*") || address.equals("0.0.0.0")) {
            throw new Case.Skips("a consumer has one address, and no text in its place");
        }
        Map<String, Object> config = new HashMap<>();
        config.put("side", "consumer");
        config.put("match", Map.of("address", one.get("matcher")));
        config.put("parameters", Map.of("disabled", "true"));
        Map<String, Object> rule =
                Map.of(
                        "configVersion", "v3.0",
                        "scope", "service",
                        "key", "S",
                        "enabled", true,
                        "configs", List.of(config));
        try (World world = new World(Dialect.DUBBO_3, "consumer://" + address + "/S", List.of())) {
            Source source = Source.memory(world.engine);
            source.put("S/providers", "dubbo://10.0.0.1:1/S");
            source.put("S::.configurators", Case.shown(Case.json(rule)));
            need(world.chain.bind(source, Duration.ofSeconds(30)), "the first state does not come");
            world.invocation.reset().method("m");
            same(world.routed().isEmpty(), one.get("expect"), "in force");
        }
    }

    private static final List<String> SUBSETS = List.of("isolation", "testing-trunk", "testing");
    private static final List<String> LABELS =
            List.of("env-sign=xxx&tag1=hello&at=isolation", "env-sign=yyy&at=testing-trunk", "env-sign=zzz&at=testing");

    /** To which subset a consumer with this label is led. */
    private static void leads(String rule, String label, String subset) {
        List<JsonElement> rows = new ArrayList<>();
        for (String labels : LABELS) {
            rows.add(
                    new JsonPrimitive(
                            "dubbo://10.0.0." + (rows.size() + 1) + ":1/ccc?remote.application=demo&" + labels));
        }
        String consumer = "consumer://10.0.0.1/ccc?application=c&trafficLabel=" + label;
        try (World world = new World(Dialect.DUBBO_3, consumer, rows)) {
            BywayException refused = world.setRule("demo.MESHAPPRULE", rule);
            need(refused == null, "refused: " + refused);
            world.invocation.reset().method("m");
            List<String> got = world.routed().stream().map(SUBSETS::get).collect(Collectors.toList());
            same(got, List.of(subset), label);
        }
    }

    private static void meshParse(Case one) {
        Case expect = one.of("expect");
        String rule = one.text("rule");
        String found = Rule.checkJson(Dialect.DUBBO_3, RuleKind.MESH, rule, null);
        need(!new Case(JsonParser.parseString(found).getAsJsonObject()).flag("refused", true), found);
        if (expect.has("documents")) {
            List<String> kinds = new ArrayList<>();
            Matcher kind = Pattern.compile("^kind: (\\w+)", Pattern.MULTILINE).matcher(rule);
            while (kind.find()) {
                kinds.add(kind.group(1));
            }
            same(kinds, expect.get("documents"), "documents");
            // The rule of most cases here, whose labels have one way each.
            leads(rule, "xxx", "isolation");
            leads(rule, "testing-trunk", "testing-trunk");
            leads(rule, "of-nobody", "testing");
            return;
        }
        // Without its other half a text has no subsets.
        StringBuilder half =
                new StringBuilder("kind: DestinationRule\nmetadata: {name: demo-route}\nspec:\n  host: demo\n  subsets:\n");
        for (String subset : SUBSETS) {
            half.append("  - {name: ").append(subset).append(", labels: {at: ").append(subset).append("}}\n");
        }
        for (Case route : expect.cases("routedetail")) {
            List<Case> matches = route.cases("match");
            String label = matches.isEmpty() ? "of-nobody" : matches.get(0).of("sourceLabels").text("trafficLabel");
            leads(half + "---\n" + rule, label, route.cases("route").get(0).of("destination").text("subset"));
        }
    }
}
