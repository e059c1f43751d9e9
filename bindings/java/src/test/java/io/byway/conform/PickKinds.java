package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.byway.Balance;
import io.byway.CallReport;
import io.byway.Dialect;
import io.byway.Invocation;
import io.byway.PickOptions;
import io.byway.Picked;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Load balancing, stickiness and second choices, through picks of a chain. */
final class PickKinds implements AutoCloseable {
    static final Map<String, Case.Run> KINDS =
            Map.of(
                    "dubbo_chain/lb", PickKinds::balance,
                    "dubbo_chain/sticky", PickKinds::sticky,
                    "dubbo_chain/cluster-select", PickKinds::choose);

    private static final Map<String, Balance> BALANCES =
            Map.of(
                    "random", Balance.RANDOM,
                    "roundrobin", Balance.ROUND_ROBIN,
                    "leastactive", Balance.LEAST_ACTIVE,
                    "shortestresponse", Balance.SHORTEST_RESPONSE,
                    "consistenthash", Balance.CONSISTENT_HASH,
                    "adaptive", Balance.P2C);

    private final World world;
    private final List<Case> rows = new ArrayList<>();
    private Balance balance;

    /** A chain over the case's invokers that picks by the case's algorithm. A generic call is unwrapped as hosts do. */
    private PickKinds(Case one, Dialect dialect) {
        String consumer = "consumer://127.0.0.1/S?router=-default";
        if (!one.flag("availablecheck", true)) {
            consumer += "&cluster.availablecheck=false";
        }
        balance = BALANCES.getOrDefault(one.text("algorithm"), Balance.AUTO);
        world = new World(dialect, consumer, one.list("invokers"));
        one.cases("invokers").forEach(rows::add);
        Case call = one.of("invocation");
        List<JsonElement> arguments = call.list("arguments");
        if (call.text("method").startsWith("$invoke") && arguments.size() == 3) {
            // Behind the method and the types come the method's own arguments.
            List<String> texts = new ArrayList<>(List.of(arguments.get(0).getAsString(), ""));
            arguments.get(2).getAsJsonArray().forEach(value -> texts.add(value.getAsString()));
            world.invocation.reset().method(call.text("method")).arguments(texts);
        } else if (!world.call(call)) {
            world.invocation.reset().method("m");
        }
    }

    @Override
    public void close() {
        world.close();
    }

    private PickOptions options() {
        return new PickOptions().balance(balance);
    }

    private Picked pick() {
        return pick(options());
    }

    private Picked pick(PickOptions options) {
        return world.chain.pick(world.invocation, options);
    }

    private boolean end(Picked picked, boolean ok, long latencyMillis) {
        return world.chain.pickEnd(picked.ticket(), ok, Duration.ofMillis(latencyMillis));
    }

    /** Some cases call the third provider by the letter of its upstream variable ({@code E} for protocol test5). */
    private int rowOf(String name) {
        for (int row = 0; row < rows.size(); row++) {
            if (name.equals(rows.get(row).text("id"))) {
                return row;
            }
        }
        String protocol = "test" + (name.charAt(0) - 'A' + 1) + "://";
        for (int row = 0; row < rows.size(); row++) {
            if (rows.get(row).text("url").startsWith(protocol)) {
                return row;
            }
        }
        return 0;
    }

    private String idAt(int row) {
        return rows.get(row).text("id", null);
    }

    /** Begins a call on one provider: the only one that is available. */
    private Picked beginOn(int row) {
        BitSet only = new BitSet();
        only.set(row);
        return pick(options().available(world.list, only));
    }

    private double weight(int row) {
        Matcher found = Pattern.compile("weight=(\\d+)").matcher(rows.get(row).text("url"));
        return found.find() ? Double.parseDouble(found.group(1)) : 100;
    }

    private double weights() {
        double total = 0;
        for (int row = 0; row < rows.size(); row++) {
            total += weight(row);
        }
        return total;
    }

    private int[] count(int runs, PickOptions options) {
        int[] counts = new int[rows.size()];
        for (int i = 0; i < runs; i++) {
            Picked picked = pick(options);
            end(picked, false, 0);
            counts[picked.row()]++;
        }
        return counts;
    }

    private int[] countOnThreads(int runs, int threads) {
        int[] counts = new int[rows.size()];
        List<CompletableFuture<Void>> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            running.add(
                    CompletableFuture.runAsync(
                            () -> {
                                int[] own = new int[counts.length];
                                try (Invocation call = new Invocation("test")) {
                                    for (int turn = 0; turn < runs / threads; turn++) {
                                        own[world.chain.pick(call, options()).row()]++;
                                    }
                                }
                                synchronized (counts) {
                                    Arrays.setAll(counts, row -> counts[row] + own[row]);
                                }
                            },
                            task -> new Thread(task).start()));
        }
        running.forEach(CompletableFuture::join);
        return counts;
    }

    private void sequence(List<String> want, PickOptions options) {
        for (String expected : want) {
            String got = idAt(pick(options).row());
            same(expected.length() == 1 ? got.substring(0, 1) : got, expected, "pick");
        }
    }

    private void adaptive(Map<String, JsonElement> metrics, int runs) {
        Map<Integer, Case> byRow = new HashMap<>();
        metrics.forEach((name, metric) -> byRow.put(rowOf(name), new Case(metric.getAsJsonObject())));
        int[] counts = new int[rows.size()];
        for (int i = 0; i < runs; i++) {
            Picked picked = pick();
            Case metric = byRow.get(picked.row());
            counts[picked.row()]++;
            CallReport report =
                    new CallReport(
                            Instant.ofEpochMilli(i),
                            metric.number("load", 0),
                            Duration.ofNanos((long) (metric.number("rt", 0) * 1e6)));
            need(
                    world.chain.pickEnd(picked.ticket(), !metric.flag("error"), null, report),
                    "a ticket that does not end");
        }
        double unit = Math.floor(runs / weights());
        int worst = 0;
        int fewest = 0;
        for (int row = 0; row < counts.length; row++) {
            double ewma = 25 + byRow.get(row).number("rt", 0) / 2;
            need(
                    Math.abs(counts[row] / (weight(row) * ewma) - unit) < 2 * unit,
                    "row " + row + " got " + counts[row]);
            worst = byRow.get(row).number("load", 0) > byRow.get(worst).number("load", 0) ? row : worst;
            fewest = counts[row] < counts[fewest] ? row : fewest;
        }
        same(fewest, worst, "the row with the highest load gets the fewest calls");
    }

    private void everyOneIsHit() {
        int[] counts = new int[rows.size()];
        for (int number = 0; number < 1000; number++) {
            world.invocation.reset().method("method1").arguments("arg" + number, "arg2", "arg3");
            int home = pick().row();
            counts[home]++;
            for (int again = 0; again < 4; again++) {
                same(pick().row(), home, "arg" + number);
            }
        }
        need(Arrays.stream(counts).allMatch(count -> count > 0), "somebody is never hit: " + Arrays.toString(counts));
    }

    private void asserted(Case one, String words) {
        Case expect = one.of("expect");
        if (words.startsWith("same invoker as the plain call")) {
            JsonObject plain = one.object.deepCopy();
            JsonObject call = new JsonObject();
            call.add("method", one.of("invocation").list("arguments").get(0));
            call.add("arguments", one.of("invocation").list("arguments").get(2));
            plain.add("invocation", call);
            try (PickKinds other = new PickKinds(new Case(plain), Dialect.DUBBO_3)) {
                same(other.pick().row(), pick().row(), "row");
            }
            return;
        }
        if (words.equals("every invoker is hit")) {
            everyOneIsHit();
            return;
        }
        if (words.contains("window")) {
            // One slow answer, then a new window in which it no longer counts.
            end(beginOn(rows.size() - 1), true, 5000);
            world.now += 30_001_000_000L;
        }
        int runs = expect.integer("runs", 0);
        int threads = expect.integer("threads", 1);
        int[] counts = threads > 1 ? countOnThreads(runs, threads) : count(runs, options());
        double total = weights();
        double average = (double) runs / counts.length;
        for (int row = 0; row < counts.length; row++) {
            double weight = weight(row);
            double difference = Math.abs(counts[row] - average);
            boolean good;
            if (words.equals("sum is 10000")) {
                good = true;
            } else if (words.startsWith("within 100% of average")) {
                good = counts[row] > 0 && difference <= average;
            } else if (words.startsWith("each count differs")) {
                good = difference < 1;
            } else if (words.startsWith("count per invoker within 10")) {
                good = Math.abs(counts[row] - Math.floor(runs / total) * weight) <= 10;
            } else if (words.contains("share by weight")) {
                good = counts[row] > 0 && Math.abs(counts[row] / weight - runs / total) < 2 * runs / total;
            } else {
                throw new Case.Fails("not understood: " + words);
            }
            need(good, "row " + row + " got " + counts[row] + ": " + words);
        }
        same(Arrays.stream(counts).sum(), runs, "sum");
    }

    private void shares(Case expect) {
        int runs = expect.integer("runs", 0);
        int[] counts = count(runs, options());
        if (!expect.of("counts").members().isEmpty()) {
            expect.of("counts").members().forEach((name, want) -> same(counts[rowOf(name)], want, name));
            return;
        }
        double[] share = new double[counts.length];
        Map<String, JsonElement> observed = expect.of("observed").members();
        observed.forEach(
                (name, seen) -> {
                    // Observed counts are themselves one draw; they stand for the nearest simple share.
                    double even = 1.0 / observed.size();
                    double part = seen.getAsDouble() / runs;
                    share[rowOf(name)] = Math.abs(part - even) < 0.05 ? even : part;
                });
        expect.of("share").members().forEach((name, part) -> share[rowOf(name)] = part.getAsDouble());
        Matcher ratio = Pattern.compile("(.).(.) about ([\\d.]+)\\s*:\\s*([\\d.]+).*").matcher(expect.text("ratio"));
        if (ratio.matches()) {
            double left = Double.parseDouble(ratio.group(3));
            double right = Double.parseDouble(ratio.group(4));
            share[rowOf(ratio.group(1))] = left / (left + right);
            share[rowOf(ratio.group(2))] = right / (left + right);
        }
        for (int row = 0; row < counts.length; row++) {
            double p = share[row];
            need(
                    Math.abs(counts[row] - p * runs) <= 5 * Math.sqrt(runs * p * (1 - p)),
                    "row " + row + " got " + counts[row] + " of " + runs + ", share " + p);
        }
    }

    private static void balance(Case one) {
        JsonElement expect = one.get("expect");
        try (PickKinds picks = new PickKinds(one, Dialect.DUBBO_3)) {
            one.of("active")
                    .members()
                    .forEach(
                            (name, calls) -> {
                                for (int i = calls.getAsInt(); i > 0; i--) {
                                    picks.beginOn(picks.rowOf(name));
                                }
                            });
            one.of("stats")
                    .members()
                    .forEach(
                            (name, words) -> {
                                Matcher told =
                                        Pattern.compile("one success of (\\d+) ms and (\\d+) active")
                                                .matcher(words.getAsString());
                                need(told.matches(), "not understood: " + words);
                                picks.end(
                                        picks.beginOn(picks.rowOf(name)), true, Long.parseLong(told.group(1)));
                                for (int i = Integer.parseInt(told.group(2)); i > 0; i--) {
                                    picks.beginOn(picks.rowOf(name));
                                }
                            });
            Case wanted = one.of("expect");
            if (expect.isJsonArray()) {
                picks.sequence(one.texts("expect"), picks.options());
            } else if (Case.isText(wanted.get("sequence"))) {
                picks.sequence(Arrays.asList(wanted.text("sequence").split("")), picks.options());
            } else if (!one.of("provider_metrics").members().isEmpty()) {
                picks.adaptive(one.of("provider_metrics").members(), wanted.integer("runs", 0));
            } else if (Case.isText(wanted.get("assert"))) {
                picks.asserted(one, wanted.text("assert"));
            } else {
                picks.shares(wanted);
            }
        }
        Map<String, JsonElement> sane = one.of("sane").members();
        if (!sane.isEmpty()) {
            try (PickKinds picks = new PickKinds(one, Dialect.BYWAY)) {
                int runs = sane.values().stream().mapToInt(JsonElement::getAsInt).sum();
                int[] counts = picks.count(runs, picks.options());
                sane.forEach((name, want) -> same(counts[picks.rowOf(name)], want, "[byway] " + name));
            }
        }
    }

    private static void sticky(Case one) {
        try (PickKinds picks = new PickKinds(one, Dialect.DUBBO_3)) {
            picks.balance = Balance.ROUND_ROBIN;
            JsonElement five = one.of("expect").get("five_selects");
            if (five != null && five.isJsonArray()) {
                picks.sequence(one.of("expect").texts("five_selects"), picks.options());
                return;
            }
            long stuck = picks.pick().tag();
            same(picks.pick().tag(), stuck, "it stays");
            need(picks.pick(picks.options().exclude(stuck)).tag() != stuck, "it does not leave");
        }
    }

    private static void choose(Case one) {
        JsonElement expect = one.get("expect");
        try (PickKinds picks = new PickKinds(one, Dialect.DUBBO_3)) {
            BitSet able = new BitSet();
            for (int row = 0; row < picks.rows.size(); row++) {
                able.set(row, picks.rows.get(row).flag("available", true));
            }
            List<String> selected = one.texts("selected");
            long[] tried = selected.stream().mapToLong(name -> picks.rowOf(name) + 1).toArray();
            if (tried.length == 1 && !selected.get(0).equals(picks.idAt((int) tried[0] - 1))) {
                // A number that is in no list.
                tried[0] = 999;
            }
            // Upstream's tests that name no algorithm drive a round robin or a stub that returns the first.
            if (picks.balance == Balance.AUTO) {
                picks.balance = Balance.ROUND_ROBIN;
            }
            PickOptions options = picks.options().available(picks.world.list, able).exclude(tried);
            if (expect.isJsonArray()) {
                picks.sequence(one.texts("expect"), options);
            } else if (one.of("expect").has("runs")) {
                int[] counts = picks.count(one.of("expect").integer("runs", 0), options);
                need(
                        counts[1] + counts[3] == 1000 && counts[1] > 200 && counts[3] > 200,
                        Arrays.toString(counts));
            } else {
                List<String> any = one.of("expect").texts("any_of");
                for (int i = 0; i < 100; i++) {
                    Picked picked = picks.pick(options);
                    picks.end(picked, true, 1);
                    String name = picks.idAt(picked.row());
                    need(any.isEmpty() ? able.get(picked.row()) : any.contains(name), "got " + name);
                }
            }
        }
    }
}
