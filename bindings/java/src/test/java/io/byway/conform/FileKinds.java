package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import io.byway.Chain;
import io.byway.Dialect;
import io.byway.Event;
import io.byway.Source;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Rules in files that change: each way to change a file is seen once, whole, and nothing else is. */
final class FileKinds {
    static final Map<String, Case.Run> KINDS = Map.of("bugs/file_watch", FileKinds::fileWatch);

    private static final String KEY = "a.tag-router";
    private static final String MARKER = "S::.condition-router";
    private static final String OLD =
            "# the old rule\nkey: a\ntags: [{name: old, addresses: ['10.0.0.1:20880']}]\n";
    private static final String NEW =
            "# the new rule\nkey: a\ntags: [{name: gray, addresses: ['10.0.0.1:20880']}]\n";

    private final World world;
    private final Path folder;
    private final Path file;
    private final List<Event> heard = new ArrayList<>();

    /** A chain that follows a folder, and what was told of its rules. */
    private FileKinds(World world, Path folder) {
        this.world = world;
        this.folder = folder;
        file = folder.resolve(KEY);
        world.engine.addListener(List.of(Event.Kind.RULE), heard::add);
        world.invocation.reset().method("m").attach("dubbo.tag", "gray");
    }

    private long told(String key) {
        return heard.stream().filter(event -> event.subject().equals(key)).count();
    }

    /** Polls until something holds; false when it does not. */
    private boolean until(BooleanSupplier good) {
        for (int i = 0; i < 600 && !good.getAsBoolean(); i++) {
            world.engine.queue().poll(Duration.ofMillis(100));
        }
        return good.getAsBoolean();
    }

    private void follow() {
        Source source = Source.file(world.engine, folder.toString());
        world.chain.bind(source, Duration.ofSeconds(60), new Chain.BindOptions().rulesOnly(true));
        need(until(() -> told(KEY) > 0), "the old text is not seen");
    }

    /** At once, as editors do. */
    private void put(String name, String text) throws IOException {
        Path fresh = folder.resolve(".new");
        Files.writeString(fresh, text);
        Files.move(fresh, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    }

    /** Another file, so that a look has happened. */
    private void mark() throws IOException {
        put(MARKER, "conditions: ['method=x => host=10.0.0.1']");
        need(until(() -> told(MARKER) > 0), "the other file is not seen");
    }

    private void pointTo(String name, String text) throws IOException {
        Files.writeString(Files.createDirectory(folder.resolve(name)).resolve(KEY), text);
        Path link = Files.createSymbolicLink(folder.resolve("..tmp"), Path.of(name));
        Files.move(link, folder.resolve("..data"), StandardCopyOption.ATOMIC_MOVE);
    }

    private int revision() {
        for (Case router : new Case(JsonParser.parseString(world.chain.status()).getAsJsonObject()).cases("routers")) {
            if (router.text("key").equals(KEY)) {
                return router.integer("revision", 0);
            }
        }
        throw new Case.Fails("no router of tags");
    }

    private void change(String variant) throws IOException {
        switch (variant) {
            case "write_in_place":
                Files.writeString(file, NEW);
                break;
            case "rename_over":
                put(KEY, NEW);
                break;
            case "symlink_dir_swap":
                pointTo("..2", NEW);
                break;
            case "delete_create":
                Files.delete(file);
                Files.writeString(file, NEW);
                break;
            case "touch_only":
                Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis()));
                mark();
                break;
            case "truncate_then_write":
                long before = told(KEY);
                try (Writer writer = Files.newBufferedWriter(file)) {
                    writer.write(NEW.substring(0, 20));
                    writer.flush();
                    // A look happens in between, and half a text is not taken.
                    mark();
                    same(told(KEY), before, "texts taken in between");
                    writer.write(NEW.substring(20));
                }
                break;
            default:
                throw new Case.Fails("no way " + variant);
        }
    }

    /** Whether a change was seen: once, and whole. */
    private static boolean oneVariant(String variant) throws IOException {
        Path folder = Files.createTempDirectory("byway-watch-");
        List<JsonElement> rows =
                WordKinds.elements(
                        List.of(
                                "dubbo://10.0.0.1:20880/S?application=a",
                                "dubbo://10.0.0.2:20880/S?application=a"));
        try (World world = new World(Dialect.BYWAY, "consumer://10.1.1.1/S", rows)) {
            FileKinds watched = new FileKinds(world, folder);
            if (variant.equals("symlink_dir_swap")) {
                watched.pointTo("..1", OLD);
                Files.createSymbolicLink(watched.file, Path.of("..data", KEY));
            } else {
                Files.writeString(watched.file, OLD);
            }
            watched.follow();
            long before = watched.told(KEY);
            watched.change(variant);
            if (variant.equals("touch_only")) {
                return watched.told(KEY) > before || watched.revision() > 1;
            }
            // Whether calls with the new rule's tag get its provider.
            if (!watched.until(() -> world.routed().equals(List.of(0)))) {
                return false;
            }
            // A file that is away for longer than a moment is deleted, and its return a first text.
            need(
                    watched.revision() == 2 || variant.equals("delete_create"),
                    variant + ": " + watched.revision() + " texts");
            need(watched.heard.stream().allMatch(event -> event.status() >= 0), variant + ": an error was told");
            return true;
        } finally {
            remove(folder);
        }
    }

    private static void remove(Path folder) throws IOException {
        List<Path> all;
        try (Stream<Path> below = Files.walk(folder)) {
            all = below.sorted(Comparator.reverseOrder()).collect(Collectors.toList());
        }
        for (Path one : all) {
            Files.delete(one);
        }
    }

    private static void fileWatch(Case one) throws IOException {
        List<Boolean> reloaded = new ArrayList<>();
        for (String variant : one.of("input").texts("variants")) {
            reloaded.add(oneVariant(variant));
        }
        same(reloaded, one.of("expect").get("reloaded"), "reloaded");
    }
}
