package io.byway.conform;

import com.google.gson.JsonElement;
import io.byway.BywayException;
import io.byway.Chain;
import io.byway.Dialect;
import io.byway.Engine;
import io.byway.Invocation;
import io.byway.Invokers;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * What the cases about chains stand on: a case's engine, providers, consumer and call. Tags are rows + 1; monotonic time
 * stands still until it is moved.
 */
final class World implements AutoCloseable {
    volatile long now = 3_600_000_000_000L;
    final List<JsonElement> rows;
    final Engine engine;
    final Chain chain;
    final Invokers list;
    final Invocation invocation = new Invocation();

    World(Dialect dialect, String consumer, List<JsonElement> rows) {
        this(dialect, consumer, rows, null, "", null, null);
    }

    /** {@code extra} is added to each URL that does not have {@code unless}; no sources: a seed, the system's time. */
    World(
            Dialect dialect,
            String consumer,
            List<JsonElement> rows,
            String extra,
            String unless,
            LongSupplier random,
            LongSupplier wall) {
        this.rows = rows;
        Engine.Options options = new Engine.Options().seed(7).dialect(dialect).monotonicNanos(() -> now);
        if (random != null) {
            options.random(random);
        }
        if (wall != null) {
            options.wallMillis(wall);
        }
        engine = new Engine(options);
        List<String> urls = new ArrayList<>();
        long[] tags = new long[rows.size()];
        for (JsonElement row : rows) {
            tags[urls.size()] = urls.size() + 1;
            String url = url(row);
            if (extra != null && !url.contains(unless)) {
                url += (url.contains("?") ? "&" : "?") + extra;
            }
            urls.add(url);
        }
        try {
            chain = new Chain(engine, consumer);
            list = new Invokers(engine, urls, tags);
            chain.setInvokers(list);
        } catch (RuntimeException refused) {
            engine.close();
            throw refused;
        }
    }

    static String url(JsonElement row) {
        return Case.isText(row) ? row.getAsString() : row.getAsJsonObject().get("url").getAsString();
    }

    @Override
    public void close() {
        invocation.close();
        engine.close();
    }

    boolean call(Case given) {
        return call(given, null);
    }

    /** Sets the call; says whether the case names a method. */
    boolean call(Case given, List<String> types) {
        List<JsonElement> arguments = given.list("arguments");
        String[] texts = new String[arguments.size()];
        for (int i = 0; i < texts.length; i++) {
            JsonElement one = arguments.get(i);
            texts[i] = one.isJsonNull() ? null : Case.isText(one) ? one.getAsString() : Case.shown(one);
        }
        boolean named = Case.isText(given.get("method"));
        invocation.reset().method(named ? given.text("method") : "").arguments(texts);
        if (types != null) {
            invocation.types(types.toArray(new String[0]));
        } else if (texts.length > 0 && !Case.isText(arguments.get(0))) {
            // A first argument that is no text names no method of a generic call.
            String[] objects = new String[texts.length];
            java.util.Arrays.fill(objects, "java.lang.Object");
            invocation.types(objects);
        }
        for (Map.Entry<String, JsonElement> one : given.of("attachments").members().entrySet()) {
            if (Case.isText(one.getValue())) {
                invocation.attach(one.getKey(), one.getValue().getAsString());
            }
        }
        return named;
    }

    /** Rows that may serve the call. */
    List<Integer> routed() {
        return rowsOf(chain.tags(invocation));
    }

    static List<Integer> rowsOf(long[] tags) {
        List<Integer> rows = new ArrayList<>();
        for (long tag : tags) {
            rows.add((int) tag - 1);
        }
        return rows;
    }

    /** The error that refuses a rule, null when it is taken. */
    BywayException setRule(String key, String text) {
        try {
            engine.setRule(key, text);
            return null;
        } catch (BywayException refused) {
            return refused;
        }
    }

    BywayException removeRule(String key) {
        try {
            engine.removeRule(key);
            return null;
        } catch (BywayException refused) {
            return refused;
        }
    }

    static List<String> idsOf(List<JsonElement> invokers, List<Integer> rows) {
        List<String> ids = new ArrayList<>();
        for (int row : rows) {
            ids.add(new Case(invokers.get(row).getAsJsonObject()).text("id", null));
        }
        return ids;
    }

    /** The dialect of an implementation's name, null when byway has none. */
    static Dialect dialectNamed(String name) {
        if (name.startsWith("dubbo-3")) {
            return Dialect.DUBBO_3;
        }
        switch (name) {
            case "byway":
                return Dialect.BYWAY;
            case "dubbo-2.7":
                return Dialect.DUBBO_2_7;
            case "dubbo-go":
                return Dialect.DUBBO_GO;
            default:
                return null;
        }
    }

    /** The dialect a case of dubbo_chain.jsonl comes from. */
    static Dialect dialectOf(Case one) {
        String source = one.text("source");
        if (source.startsWith("dubbo-go")) {
            return Dialect.DUBBO_GO;
        }
        return source.contains("2.7") ? Dialect.DUBBO_2_7 : Dialect.DUBBO_3;
    }

    /** The answer the default dialect gives where a case says that upstream is wrong; null when it does not say. */
    static JsonElement saneOf(Case one) {
        for (String name : List.of("expect_byway", "sane_expect", "fixed_expect")) {
            if (one.get(name) != null) {
                return Case.isText(one.get(name)) ? null : one.get(name);
            }
        }
        return null;
    }
}
