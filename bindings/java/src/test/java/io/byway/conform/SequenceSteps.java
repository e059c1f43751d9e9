package io.byway.conform;

import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import io.byway.BywayException;
import io.byway.Dialect;
import io.byway.Event;
import io.byway.Invokers;
import io.byway.Listener;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Steps against one chain; events are told by whoever polls. */
final class SequenceSteps {
    private static final String KEY = "com.foo.BarService::.condition-router";
    private static final List<Event.Kind> RULES = List.of(Event.Kind.RULE);

    private final World world;
    private final List<Event> heard = new ArrayList<>();
    private final Map<String, Listener> listeners = new LinkedHashMap<>();
    private final Map<String, Integer> calls = new LinkedHashMap<>();
    private final Map<String, Object> got = new LinkedHashMap<>();

    private SequenceSteps(World world) {
        this.world = world;
        world.engine.addListener(RULES, heard::add);
    }

    private static List<String> texts(JsonArray words, int from) {
        List<String> texts = new ArrayList<>();
        if (words.size() > from && words.get(from).isJsonArray()) {
            words.get(from).getAsJsonArray().forEach(one -> texts.add(one.getAsString()));
        }
        return texts;
    }

    private void setInvokers(List<String> names) {
        if (!names.isEmpty()) {
            world.chain.setInvokers(new Invokers(world.engine, WordKinds.urlsOf(names)));
        }
    }

    private void route(List<String> names) {
        long[] tags;
        try {
            setInvokers(names);
            world.invocation.reset().method("m");
            tags = world.chain.tags(world.invocation);
        } catch (BywayException.Shutdown closed) {
            got.put("error", "closed");
            return;
        }
        List<Object> kept = new ArrayList<>();
        for (long tag : tags) {
            if (names.isEmpty()) {
                kept.add(tag);
                continue;
            }
            int row = world.chain.invokers().rowOf(tag);
            kept.add(names.get(row).contains("://") ? (Object) row : names.get(row));
        }
        got.put("kept", kept);
    }

    private void step(JsonArray words) {
        switch (words.get(0).getAsString()) {
            case "push_rule":
                world.setRule(KEY, words.get(1).getAsString());
                break;
            case "push_event":
                Case event = new Case(words.get(1).getAsJsonObject());
                if (event.text("type").equals("delete")) {
                    world.removeRule(KEY);
                } else {
                    world.setRule(KEY, Case.shown(event.object.get("value")));
                }
                break;
            case "publish":
                world.setRule(KEY, "conditions: ['=> host=10.0.0.1']");
                break;
            case "set_invokers":
                setInvokers(texts(words, 1));
                break;
            case "route":
                route(texts(words, 1));
                break;
            case "destroy":
                world.engine.shutdown(Duration.ofSeconds(30));
                break;
            case "add_listener":
                String name = words.get(2).getAsString();
                calls.put(name, 0);
                listeners.put(
                        name, world.engine.addListener(RULES, told -> calls.merge(name, 1, Integer::sum)));
                break;
            case "remove_listener":
                listeners.get(words.get(2).getAsString()).close();
                break;
            case "create":
                break;
            default:
                throw new Case.Fails("no step " + words.get(0));
        }
        try {
            world.engine.queue().poll(Duration.ZERO);
        } catch (BywayException.Shutdown over) {
            // Nothing is told any more.
        }
    }

    static void sequence(Case one) {
        String area = one.text("area");
        Case expect = one.of("expect");
        if (!area.equals("chain") && !area.equals("condition")) {
            RouteSequences.run(one);
            return;
        }
        List<JsonElement> steps = one.of("input").list("steps");
        if (steps.stream().anyMatch(step -> step.getAsJsonArray().get(0).getAsString().equals("source_down"))) {
            throw new Case.Skips("a centre that can be lost needs a server");
        }
        String consumer = "consumer://10.20.3.1/com.foo.BarService";
        List<JsonElement> rows = WordKinds.elements(List.of("dubbo://10.0.0.1:1/S"));
        try (World world = new World(Dialect.BYWAY, consumer, rows)) {
            SequenceSteps run = new SequenceSteps(world);
            steps.forEach(step -> run.step(step.getAsJsonArray()));
            int refused = (int) run.heard.stream().filter(event -> event.status() < 0).count();
            if (expect.has("called")) {
                run.got.put(
                        "called",
                        run.calls.entrySet().stream()
                                .filter(told -> told.getValue() > 0)
                                .map(Map.Entry::getKey)
                                .collect(Collectors.toList()));
            }
            if (expect.has("errors")) {
                run.got.put("errors", refused);
            }
            if (expect.has("events")) {
                run.got.put("events", Collections.nCopies(refused, "rule_error"));
            }
            if (expect.has("panic")) {
                run.got.put("panic", false);
            }
            same(run.got, expect.object, "outcome");
        }
    }
}
