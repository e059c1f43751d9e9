package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;
import static io.byway.conform.MeshKinds.map;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.byway.Balance;
import io.byway.BywayException;
import io.byway.Dialect;
import io.byway.Library;
import io.byway.PickOptions;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * Scripts from URLs, from files and by rule. A script that fails leaves the list, and the status of the chain tells the
 * error: that is what byway has in place of upstream's exceptions.
 */
final class ScriptKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        if (Library.hasFeature("script")) {
            KINDS.put("dubbo_chain/script", ScriptKinds::script);
            KINDS.put("dubbo_chain/file", ScriptKinds::file);
            KINDS.put("dubbo_chain/script-app", ScriptKinds::scriptApp);
            KINDS.put("dubbo_chain/script-app-lifecycle", ScriptKinds::lifecycle);
            KINDS.put("bugs/script_route", ScriptKinds::reported);
            KINDS.put("bugs/script_route_list", ScriptKinds::reported);
        }
    }

    private static final String KEY = "demo-provider.script-router";
    private static final String GOOD =
            "configVersion: v3.0\nkey: demo-provider\ntype: javascript\nenabled: true\n"
                    + "script: \"(function () { return [invokers.get(1)]; })()\"\n";

    /** Scripts that a case only describes. */
    private static final Map<String, String> DESCRIBED =
            Map.of(
                    "<Invoker[] holding invokers.get(2)>",
                    "[invokers.get(2)]",
                    "<script that calls invokers[i].Invoke(context, invocation)>",
                    "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].Invoke(context, invocation);"
                            + " return invokers; })()",
                    "<script that calls GetURL(' Err Here ')>",
                    "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].GetURL(' Err Here ');"
                            + " return invokers; })()",
                    "<calls every exposed accessor of invoker url and invocation>",
                    "(function () { var u = invokers[0].GetURL(); u.GetParam('a', 'b'); u.GetParamBool('a', true);"
                            + " u.GetParamInt('a', 1); u.GetMethodParam('m', 'a', 'b'); u.GetNonDefaultParam('a');"
                            + " u.Service(); u.ServiceKey(); u.Group(); u.Version(); u.Address(); u.Key(); u.String();"
                            + " invokers[0].IsAvailable(); invocation.MethodName(); invocation.ActualMethodName();"
                            + " invocation.Arguments(); invocation.ParameterValues();"
                            + " invocation.ParameterTypeNames(); invocation.Attachments();"
                            + " invocation.GetAttachment('a'); invocation.GetAttachmentWithDefaultValue('a', 'b');"
                            + " var v = invokers[0].getUrl(); v.getParameters().size(); v.getServiceKey();"
                            + " v.getMethodParameter('m', 'a', 'b'); invocation.getAttachments().size();"
                            + " context.getAttachment('a'); context.getUrl().getHost(); return invokers; })()");

    private ScriptKinds() {}

    /** A case's providers; those without a URL get one each. */
    private static List<JsonElement> providers(Case one) {
        List<JsonElement> rows = new ArrayList<>();
        for (JsonElement row : one.list("invokers")) {
            Case given = row.isJsonObject() ? new Case(row.getAsJsonObject()) : new Case(new JsonObject());
            String id = Case.isText(row) ? row.getAsString() : given.text("id");
            String own = "dubbo://10.0.0." + rows.size() + ":20880/com.foo.BarService";
            rows.add(Case.json(map("id", id, "url", given.text("url", own))));
        }
        return rows;
    }

    private static JsonElement row(int number) {
        return Case.json(map("id", "i" + number, "url", "dubbo://10.0.0." + number + ":1/S"));
    }

    private static World world(Case one, Dialect dialect, List<JsonElement> rows) {
        String consumer = one.text("consumer_url");
        if (!consumer.startsWith("consumer://")) {
            // Who is available is the script's to say, not the pick's.
            consumer = "consumer://10.1.1.1/com.foo.BarService?cluster.availablecheck=false";
        }
        World world = new World(dialect, consumer, rows, "application=demo-provider", "application=", null, null);
        JsonObject call = RuleKinds.named(one.of("invocation")).object;
        // Values that are no text, as their JSON.
        JsonObject attachments = new JsonObject();
        one.of("invocation")
                .of("attachments")
                .members()
                .forEach(
                        (key, value) ->
                                attachments.addProperty(
                                        key, Case.isText(value) ? value.getAsString() : Case.shown(value)));
        call.add("attachments", attachments);
        world.call(new Case(call));
        return world;
    }

    /** The error that refuses a URL, null when it is taken. */
    private static BywayException setUrl(World world, String url) {
        try {
            world.chain.setRuleUrls(List.of(url));
            return null;
        } catch (BywayException refused) {
            return refused;
        }
    }

    /** The rows that may serve the call. Who is available the caller says at a pick: there, the rows that picks give. */
    private static List<Integer> left(World world, Case one) {
        List<JsonElement> given = one.list("invokers");
        BitSet able = new BitSet();
        for (int row = 0; row < given.size(); row++) {
            JsonElement provider = given.get(row);
            able.set(row, !provider.isJsonObject() || new Case(provider.getAsJsonObject()).flag("available", true));
        }
        if (able.cardinality() == given.size()) {
            return world.routed();
        }
        PickOptions options = new PickOptions().balance(Balance.ROUND_ROBIN).available(world.list, able);
        TreeSet<Integer> picked = new TreeSet<>();
        try {
            for (int i = 0; i < 2 * given.size(); i++) {
                picked.add(world.chain.pick(world.invocation, options).row());
            }
        } catch (BywayException.NoInvoker nobody) {
            return List.of();
        }
        return new ArrayList<>(picked);
    }

    /** What a static script did with what upstream did. */
    private static void compare(World world, Case one, BywayException refused) {
        JsonElement expect = one.get("expect");
        List<Integer> rows = left(world, one);
        String status = "";
        String told = refused == null ? "" : refused.reason();
        if (refused == null) {
            Case all = new Case(JsonParser.parseString(world.chain.status()).getAsJsonObject());
            for (Case rule : all.cases("static")) {
                if (rule.get("failed") != null) {
                    status = rule.of("failed").text("status");
                    told = rule.of("failed").text("message");
                }
            }
        }
        JsonElement error =
                expect != null && expect.isJsonObject() ? new Case(expect.getAsJsonObject()).get("error") : null;
        boolean all = rows.size() == world.rows.size();
        if (Case.isText(error)) {
            // The part in front of the colon is Java's class of the error.
            String words = error.getAsString();
            boolean fits;
            if (words.startsWith("ClassCastException")) {
                fits = told.contains("expected a list");
            } else if (words.startsWith("interrupted")) {
                fits = status.equals("BYWAY_E_TIMEOUT");
            } else {
                fits = words.contains(": ") && told.contains(words.split(": ", 2)[1]);
            }
            need(fits && all, "told " + status + " " + told + ", want " + words);
        } else if (error != null) {
            boolean failed = refused != null || !told.isEmpty();
            need(failed == error.getAsBoolean() && all, "told " + told);
        } else {
            same(World.idsOf(world.rows, rows), expect, told.isEmpty() ? "ids" : told);
        }
    }

    private static void withUrl(Case one, String url, List<JsonElement> rows) {
        try (World world = world(one, Dialect.BYWAY, rows)) {
            compare(world, one, setUrl(world, url));
        }
    }

    private static String staticUrl(String rule, String type) {
        String encoded = URLEncoder.encode(rule, StandardCharsets.UTF_8).replace("+", "%20");
        return "script://0.0.0.0/S?" + (type == null ? "a=b" : "type=" + type) + "&rule=" + encoded;
    }

    private static void script(Case one) {
        String rule = DESCRIBED.getOrDefault(one.text("rule"), one.text("rule"));
        // Nobody in the list, nothing to route: a chain would not ask the script.
        List<JsonElement> rows = providers(one);
        withUrl(one, staticUrl(rule, one.text("script_type", null)), rows.isEmpty() ? List.of(row(1)) : rows);
    }

    private static void file(Case one) throws IOException {
        String written = one.text("consumer_url");
        String rule = one.text("rule", null);
        List<JsonElement> rows = providers(one).isEmpty() ? List.of(row(1), row(2)) : providers(one);
        Path folder = Files.createTempDirectory("byway-conform-");
        Path path = null;
        try {
            String url = written;
            if (rule != null) {
                String place = written.split("\\?", 2)[0];
                String query = written.contains("?") ? written.substring(written.indexOf('?')) : "";
                path = folder.resolve(place.substring(place.lastIndexOf('/') + 1));
                Files.writeString(path, rule.equals("<script text>") ? "[invokers.get(0)]" : rule);
                url = "file://" + path + query;
            }
            if (one.get("expect").isJsonArray()) {
                withUrl(one, url, rows);
                return;
            }
            // What a file is read as shows in what it does.
            try (World world = world(one, Dialect.BYWAY, rows)) {
                BywayException refused = setUrl(world, url);
                if (Case.isText(one.of("expect").get("error"))) {
                    need(refused != null && refused.reason().contains("No such file"), "told " + refused);
                } else {
                    need(refused == null, "refused: " + refused);
                    same(world.routed().size(), "<script text>".equals(rule) ? 1 : rows.size(), "stay");
                }
            }
        } finally {
            if (path != null) {
                Files.deleteIfExists(path);
            }
            Files.delete(folder);
        }
    }

    // By rule.

    private static void scriptApp(Case one) {
        List<JsonElement> rows = providers(one);
        Dialect dialect = World.dialectOf(one);
        // dubbo-go's own dialect has no such router; its rules are read by the default one.
        try (World world = world(one, dialect == Dialect.DUBBO_GO ? Dialect.BYWAY : dialect, rows)) {
            String application = RuleKinds.parameter(World.url(rows.get(0)), "application");
            world.setRule(application.isEmpty() ? KEY : application + ".script-router", one.text("rule"));
            List<Integer> kept = world.routed();
            if (one.of("expect").has("count")) {
                same(kept.size(), one.of("expect").get("count"), "count");
            } else {
                same(World.idsOf(rows, kept), one.get("expect"), "ids");
            }
        }
    }

    private static final Map<String, String> EVENTS =
            Map.of(
                    "ADDED", GOOD,
                    "MODIFIED good", GOOD,
                    "MODIFIED enabled: false", GOOD.replace("enabled: true", "enabled: false"),
                    "MODIFIED type: nosuch, enabled: true", GOOD.replace("type: javascript", "type: nosuch"),
                    "MODIFIED without script", "configVersion: v3.0\nkey: demo-provider\ntype: javascript\n",
                    "MODIFIED bad yaml", "script: [",
                    "DELETED", "",
                    "no rule", "");

    private static void lifecycle(Case one) {
        if (!one.get("expect").isJsonArray()) {
            List<JsonElement> rows = List.of(row(1), row(2));
            try (World world = world(one, Dialect.DUBBO_3, rows)) {
                // A removal has no content.
                world.setRule(KEY, GOOD);
                need(world.removeRule(KEY) == null, "not removed");
                same(world.routed().size(), rows.size(), "filtered");
            }
            return;
        }
        try (World world = world(one, Dialect.DUBBO_3, providers(one))) {
            for (Case step : one.cases("expect")) {
                String event = step.text("event");
                String text = EVENTS.get(event);
                need(text != null, "no event " + event);
                if (event.startsWith("MODIFIED type: nosuch")) {
                    // Upstream keeps its compiled script for this step.
                    world.setRule(KEY, GOOD);
                }
                if (!text.isEmpty()) {
                    world.setRule(KEY, text);
                } else if (event.equals("DELETED")) {
                    world.removeRule(KEY);
                }
                JsonElement sane = step.get("sane_route");
                same(
                        World.idsOf(world.rows, world.routed()),
                        sane != null && sane.isJsonArray() ? sane : step.get("route"),
                        event);
            }
        }
    }

    // Reports.

    private static List<String> keptBy(Case given, String text) {
        List<JsonElement> rows = providers(given);
        try (World world = world(given, Dialect.BYWAY, rows)) {
            setUrl(world, staticUrl(text, null));
            return World.idsOf(rows, world.routed());
        }
    }

    private static void reported(Case one) {
        Case given = one.of("input");
        Object got;
        if (Case.isText(given.get("script"))) {
            got = keptBy(given, given.text("script"));
        } else {
            List<Object> each = new ArrayList<>();
            given.texts("scripts").forEach(text -> each.add(keptBy(given, text)));
            got = each;
        }
        same(got, one.of("expect").get("kept"), "kept");
    }
}
