package io.byway.conform;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Runs the cases of tests/vectors through the Java package: every case of every file in BYWAY_VECTORS that some subject
 * runs; a file, kind or id as an argument runs those alone. The last line is {@code java: N passed, N failed, N skipped
 * (kinds ...)}; kinds that no subject runs are counted there, by name.
 */
public final class Main {
    /** One file a subject; each names the kinds it runs, as {@code file/kind}. */
    private static final List<Map<String, Case.Run>> SUBJECTS =
            List.of(
                    OkHttpKinds.KINDS,
                    OkHttpSelectorKinds.KINDS,
                    DialogueKinds.KINDS,
                    OrderKinds.KINDS,
                    NetKinds.KINDS,
                    ProxyKinds.KINDS,
                    PacKinds.KINDS,
                    RetryKinds.KINDS,
                    RaceKinds.KINDS,
                    UpstreamRaceKinds.KINDS,
                    RuleKinds.KINDS,
                    TagKinds.KINDS,
                    MeshKinds.KINDS,
                    ScriptKinds.KINDS,
                    WordKinds.KINDS,
                    PickKinds.KINDS,
                    FileKinds.KINDS,
                    InsideKinds.KINDS,
                    TunnelKinds.KINDS,
                    BeyondKinds.KINDS);

    private final Set<String> only;
    private final Map<String, Case.Run> kinds = new HashMap<>();
    private final Map<String, Integer> skipped = new LinkedHashMap<>();
    private int passed;
    private int failed;

    private Main(String[] arguments) {
        only = new HashSet<>(Arrays.asList(arguments));
        SUBJECTS.forEach(kinds::putAll);
    }

    /** Ends with 1 when a case fails. */
    public static void main(String[] arguments) throws Exception {
        String folder = System.getenv().getOrDefault("BYWAY_VECTORS", "tests/vectors");
        Main main = new Main(arguments);
        List<Path> files;
        try (Stream<Path> all = Files.list(Paths.get(folder))) {
            files = all.filter(file -> file.toString().endsWith(".jsonl")).sorted().collect(Collectors.toList());
        }
        for (Path file : files) {
            String stem = file.getFileName().toString().replace(".jsonl", "");
            for (String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
                if (!line.isBlank()) {
                    main.run(stem, line);
                }
            }
        }
        System.out.println(main.count());
        System.exit(main.failed > 0 ? 1 : 0);
    }

    private void run(String file, String line) {
        JsonObject object;
        try {
            object = JsonParser.parseString(line).getAsJsonObject();
        } catch (RuntimeException error) {
            failed++;
            System.out.println("FAIL " + file + " ?: not JSON");
            return;
        }
        Case one = new Case(object);
        String kind = one.text("kind", "?");
        String id = one.text("id", "?");
        if (!only.isEmpty() && !only.contains(file) && !only.contains(kind) && !only.contains(id)) {
            return;
        }
        Case.Run run = kinds.get(file + "/" + kind);
        if (run == null) {
            skipped.merge(file + "/" + kind, 1, Integer::sum);
            return;
        }
        try {
            run.run(one);
            passed++;
        } catch (Case.Skips why) {
            skipped.merge(kind + ": " + why.getMessage(), 1, Integer::sum);
        } catch (Case.Fails why) {
            failed++;
            System.out.println("FAIL " + file + " " + id + " (" + kind + "): " + why.getMessage());
        } catch (Throwable broken) {
            // A case that breaks its runner does not hold either.
            failed++;
            StringWriter trace = new StringWriter();
            broken.printStackTrace(new PrintWriter(trace));
            String[] lines = trace.toString().split("\n");
            String shown = String.join(" / ", Arrays.asList(lines).subList(0, Math.min(6, lines.length)));
            System.out.println("FAIL " + file + " " + id + " (" + kind + "): " + shown);
        }
    }

    private String count() {
        String line = "java: " + passed + " passed, " + failed + " failed";
        if (skipped.isEmpty()) {
            return line;
        }
        int total = skipped.values().stream().mapToInt(Integer::intValue).sum();
        String named =
                skipped.entrySet().stream().map(e -> e.getKey() + " " + e.getValue()).collect(Collectors.joining(", "));
        return line + ", " + total + " skipped (kinds " + named + ")";
    }
}
