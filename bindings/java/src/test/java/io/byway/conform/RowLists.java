package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonPrimitive;
import io.byway.BywayException;
import io.byway.Choice;
import io.byway.Dialect;
import io.byway.Router;
import io.byway.Status;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Lists of rows: each state of a list is what a chain with a host's routers leaves. */
final class RowLists {
    /** Who came later, and over which list a set was made: nothing a set has. */
    private static final Set<String> FOREIGN = Set.of("has_tail", "tail_list", "origin_list");

    private final Map<String, Rows> all = new HashMap<>();
    private int asked;

    private RowLists() {}

    static void run(Case one) {
        RowLists lists = new RowLists();
        for (Case step : one.cases("steps")) {
            if (!FOREIGN.contains(step.text("op"))) {
                lists.step(step);
            }
        }
        if (lists.asked == 0) {
            throw new Case.Skips("sets have no cursors, tails or origins");
        }
    }

    /** Members of a list in its order, and which of them are left. */
    private static final class Rows {
        private final Set<String> members = new LinkedHashSet<>();
        private final Set<String> kept = new HashSet<>();

        void add(String name) {
            members.add(name);
            kept.add(name);
        }

        private static World world(List<String> names, Rows... sets) {
            World world =
                    new World(Dialect.BYWAY, "consumer://10.0.0.1/S", WordKinds.elements(WordKinds.urlsOf(names)));
            int priority = 0;
            for (Rows set : sets) {
                Router.Route route =
                        request -> {
                            for (int i = 0; i < request.size(); i++) {
                                if (set.kept.contains(names.get((int) request.tag(i) - 1))) {
                                    request.keep(i);
                                }
                            }
                        };
                Router.Options options = new Router.Options().priority(priority);
                world.chain.addRouter(new Router(world.engine, "set" + priority++, route, options));
            }
            world.invocation.reset().method("m");
            return world;
        }

        /** Who is left of this list, and of the other one. */
        List<String> left(Rows... other) {
            Set<String> both = new LinkedHashSet<>(members);
            List<Rows> sets = new ArrayList<>(List.of(this));
            for (Rows one : other) {
                both.addAll(one.members);
                sets.add(one);
            }
            List<String> names = new ArrayList<>(both);
            List<String> left = new ArrayList<>();
            try (World world = world(names, sets.toArray(new Rows[0]));
                    Choice choice = world.chain.route(world.invocation)) {
                for (int i = 0; i < choice.size(); i++) {
                    left.add(names.get((int) choice.tag(i) - 1));
                }
            }
            return left;
        }

        /** One of those that are left; null when nobody is. */
        String picked() {
            List<String> names = new ArrayList<>(members);
            try (World world = world(names, this)) {
                return names.get((int) world.chain.pick(world.invocation).tag() - 1);
            } catch (BywayException nobody) {
                need(nobody.code() == Status.E_NO_INVOKER, nobody.toString());
                return null;
            }
        }
    }

    private static List<String> texts(JsonElement list) {
        List<String> texts = new ArrayList<>();
        list.getAsJsonArray().forEach(one -> texts.add(one.getAsString()));
        return texts;
    }

    private void step(Case step) {
        String op = step.text("op");
        List<JsonElement> arguments = step.list("args");
        boolean named =
                !arguments.isEmpty()
                        && Case.isText(arguments.get(0))
                        && (op.equals("new") || !all.containsKey(""));
        // A step names its list first where the case has several.
        String name = named ? arguments.remove(0).getAsString() : "";
        if (op.equals("new")) {
            Rows made = new Rows();
            texts(arguments.get(0)).forEach(made::add);
            all.put(name, made);
            return;
        }
        Rows rows = all.get(name);
        if (rows == null) {
            throw new Case.Skips(op + ": sets have no such thing");
        }
        if (op.equals("list_iterator")) {
            walk(rows, arguments.get(0).getAsInt(), step);
            asked++;
            return;
        }
        Object got = ask(rows, op, arguments.isEmpty() ? JsonNull.INSTANCE : arguments.get(0), arguments);
        boolean wants = false;
        for (String member : List.of("sane_expect", "fixed_expect", "expect")) {
            if (!wants && step.has(member)) {
                same(got, step.object.get(member), op);
                wants = true;
            }
        }
        if (step.has("throws") && !wants) {
            need(got == null, op + ": there is something");
        }
        asked += wants || step.has("throws") ? 1 : 0;
    }

    /** A cursor that removes what it passes, one way and then the other. */
    private static void walk(Rows rows, int at, Case step) {
        if (!step.flag("remove")) {
            throw new Case.Skips("rows have no cursor");
        }
        List<String> left = rows.left();
        List<String> before = left.subList(0, at);
        List<String> behind = left.subList(at, left.size());
        boolean forward = step.text("walk").startsWith("forward");
        (forward ? behind : before).forEach(rows.kept::remove);
        same(rows.left(), step.get("after_first_half"), "after the first half");
        (forward ? before : behind).forEach(rows.kept::remove);
        same(rows.left(), step.get("after_second_half"), "after the second half");
    }

    /** What a step asks; null for what is not there, a place past the end among it. */
    private Object ask(Rows rows, String op, JsonElement argument, List<JsonElement> arguments) {
        List<String> left = rows.left();
        String text = Case.isText(argument) ? argument.getAsString() : "";
        int at = Case.isNumber(argument) ? argument.getAsInt() : 0;
        switch (op) {
            case "size":
                return left.size();
            case "is_empty":
                return left.isEmpty();
            case "to_list":
                return left;
            case "sub_list":
                return left.subList(at, arguments.get(1).getAsInt());
            case "contains":
                return left.contains(text);
            case "index_of":
                return left.indexOf(text);
            case "get":
                return at < left.size() ? left.get(at) : null;
            case "remove_at":
                if (at >= left.size()) {
                    return null;
                }
                rows.kept.remove(left.get(at));
                return left.get(at);
            case "and":
                return rows.left(all.get(text));
            case "new_from":
                Rows copy = new Rows();
                left.forEach(copy::add);
                return copy.left();
            case "new_from_empty":
                return new Rows().left();
            case "random_select_one":
                return rows.picked() == null ? null : new JsonPrimitive(rows.picked());
            case "remove":
                rows.kept.remove(text);
                return null;
            case "remove_all":
            case "remove_if":
                rows.kept.removeAll(texts(argument));
                return null;
            case "add":
                rows.add(text);
                return null;
            case "add_all":
                texts(argument).forEach(rows::add);
                return null;
            case "add_all_bitlist":
                all.get(text).left().forEach(rows::add);
                return null;
            case "add_index":
                rows.kept.add(new ArrayList<>(rows.members).get(at));
                return null;
            case "clear":
                rows.members.clear();
                rows.kept.clear();
                return null;
            case "clone":
                Rows cloned = new Rows();
                cloned.members.addAll(rows.members);
                cloned.kept.addAll(rows.kept);
                all.put(text.isEmpty() ? "clone" : text, cloned);
                return null;
            default:
                throw new Case.Skips(op + ": sets have no such thing");
        }
    }
}
