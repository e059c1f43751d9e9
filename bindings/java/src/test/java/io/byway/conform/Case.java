package io.byway.conform;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One case, or a part of one: an object whose members may be missing. */
final class Case {
    /** Runs cases of one kind. */
    @FunctionalInterface
    interface Run {
        void run(Case one) throws Exception;
    }

    /** The case does not hold. */
    static final class Fails extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Fails(String why) {
            super(why);
        }
    }

    /** Why a case cannot be run from here. */
    static final class Skips extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Skips(String why) {
            super(why);
        }
    }

    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

    final JsonObject object;

    Case(JsonObject object) {
        this.object = object;
    }

    /** A member, null when it is missing or null. */
    JsonElement get(String name) {
        JsonElement value = object == null ? null : object.get(name);
        return value == null || value.isJsonNull() ? null : value;
    }

    boolean has(String name) {
        return object != null && object.has(name);
    }

    /** A member that is an object; an empty one when it is not. */
    Case of(String name) {
        JsonElement value = get(name);
        return new Case(value != null && value.isJsonObject() ? value.getAsJsonObject() : new JsonObject());
    }

    String text(String name, String otherwise) {
        JsonElement value = get(name);
        return isText(value) ? value.getAsString() : otherwise;
    }

    String text(String name) {
        return text(name, "");
    }

    double number(String name, double otherwise) {
        JsonElement value = get(name);
        return isNumber(value) ? value.getAsDouble() : otherwise;
    }

    int integer(String name, int otherwise) {
        return (int) number(name, otherwise);
    }

    boolean flag(String name, boolean otherwise) {
        JsonElement value = get(name);
        return value != null && value.isJsonPrimitive() && value.getAsJsonPrimitive().isBoolean()
                ? value.getAsBoolean()
                : otherwise;
    }

    boolean flag(String name) {
        return flag(name, false);
    }

    /** Elements of a member that is an array; none when it is not. */
    List<JsonElement> list(String name) {
        List<JsonElement> all = new ArrayList<>();
        JsonElement value = get(name);
        if (value != null && value.isJsonArray()) {
            value.getAsJsonArray().forEach(all::add);
        }
        return all;
    }

    List<Case> cases(String name) {
        List<Case> all = new ArrayList<>();
        for (JsonElement element : list(name)) {
            all.add(new Case(element.isJsonObject() ? element.getAsJsonObject() : new JsonObject()));
        }
        return all;
    }

    List<String> texts(String name) {
        List<String> all = new ArrayList<>();
        for (JsonElement element : list(name)) {
            all.add(isText(element) ? element.getAsString() : null);
        }
        return all;
    }

    /** Members of an object, in order. */
    Map<String, JsonElement> members() {
        Map<String, JsonElement> all = new LinkedHashMap<>();
        if (object != null) {
            object.entrySet().forEach(entry -> all.put(entry.getKey(), entry.getValue()));
        }
        return all;
    }

    static boolean isText(JsonElement value) {
        return value != null && value.isJsonPrimitive() && value.getAsJsonPrimitive().isString();
    }

    static boolean isNumber(JsonElement value) {
        return value != null && value.isJsonPrimitive() && value.getAsJsonPrimitive().isNumber();
    }

    static String shown(JsonElement value) {
        return value == null ? "nothing" : GSON.toJson(value);
    }

    /** Java's values as JSON: texts, numbers, booleans, null, lists and maps. */
    static JsonElement json(Object value) {
        if (value == null) {
            return JsonNull.INSTANCE;
        }
        if (value instanceof JsonElement) {
            return (JsonElement) value;
        }
        if (value instanceof String) {
            return new JsonPrimitive((String) value);
        }
        if (value instanceof Boolean) {
            return new JsonPrimitive((Boolean) value);
        }
        if (value instanceof Number) {
            return new JsonPrimitive((Number) value);
        }
        if (value instanceof Map) {
            JsonObject object = new JsonObject();
            ((Map<?, ?>) value).forEach((key, member) -> object.add((String) key, json(member)));
            return object;
        }
        JsonArray array = new JsonArray();
        for (Object element : (Iterable<?>) value) {
            array.add(json(element));
        }
        return array;
    }

    /** The same JSON: 1 is 1.0, and order of members does not count. */
    static boolean equal(JsonElement got, JsonElement want) {
        if (isNumber(got) && isNumber(want)) {
            return got.getAsDouble() == want.getAsDouble();
        }
        if (got.isJsonArray() && want.isJsonArray()) {
            JsonArray a = got.getAsJsonArray();
            JsonArray b = want.getAsJsonArray();
            boolean same = a.size() == b.size();
            for (int i = 0; same && i < a.size(); i++) {
                same = equal(a.get(i), b.get(i));
            }
            return same;
        }
        if (got.isJsonObject() && want.isJsonObject()) {
            JsonObject a = got.getAsJsonObject();
            JsonObject b = want.getAsJsonObject();
            return a.keySet().equals(b.keySet())
                    && a.keySet().stream().allMatch(key -> equal(a.get(key), b.get(key)));
        }
        return got.equals(want);
    }

    static void same(Object got, Object want, String what) {
        JsonElement have = json(got);
        JsonElement wanted = json(want);
        if (!equal(have, wanted)) {
            throw new Fails(what + ": got " + shown(have) + ", want " + shown(wanted));
        }
    }

    static void need(boolean good, String why) {
        if (!good) {
            throw new Fails(why);
        }
    }
}
