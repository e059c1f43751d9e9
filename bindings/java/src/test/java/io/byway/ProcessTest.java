package io.byway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What needs a JVM of its own. All of them run with JNI's own checks on; a word from these fails the test. */
@Timeout(300)
class ProcessTest {
    private static final class Ended {
        final int code;
        final String output;

        Ended(int code, String output) {
            this.code = code;
            this.output = output;
        }
    }

    private static Ended run(String word, String... flags) throws Exception {
        return run(List.of(), word, flags);
    }

    /** As {@link #run(String, String...)}, started by another program. */
    private static Ended run(List<String> starter, String word, String... flags) throws Exception {
        List<String> command = new ArrayList<>(starter);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Xcheck:jni");
        if (Runtime.version().feature() >= 17) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        String folder = System.getProperty("io.byway.workdir");
        if (folder != null) {
            command.add("-Dio.byway.workdir=" + folder);
        }
        command.addAll(Arrays.asList(flags));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "io.byway.Child", word));
        Path output = Files.createTempFile("byway-child", ".txt");
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
            boolean ended = process.waitFor(200, TimeUnit.SECONDS);
            if (!ended) {
                process.destroyForcibly().waitFor();
            }
            String said = Files.readString(output, StandardCharsets.UTF_8);
            assertTrue(ended, () -> word + " does not end: " + said);
            assertFalse(said.contains("in native method"), said);
            return new Ended(process.exitValue(), said);
        } finally {
            Files.delete(output);
        }
    }

    private static String well(String word, String... flags) throws Exception {
        Ended ended = run(word, flags);
        assertEquals(0, ended.code, ended.output);
        assertTrue(ended.output.contains("ended well"), ended.output);
        return ended.output;
    }

    @Test
    void theProcessEndsWhileAnEngineIsAlive() throws Exception {
        well("live");
    }

    @Test
    void aCallbackMayEndTheProcess() throws Exception {
        assertEquals(7, run("exit").code);
    }

    @Test
    void aHundredThousandSelectionsLeaveNothingBehind() throws Exception {
        well("growth", "-Xmx48m", "-Xms48m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC");
    }

    @Test
    void objectsDieInAllOrders() throws Exception {
        well("collector", "-Xmx24m", "-XX:+UseSerialGC");
    }

    @Test
    void objectsDieInAllOrdersUnderAConcurrentCollector() throws Exception {
        well("collector", "-Xmx64m", "-XX:+UseZGC");
    }

    @Test
    void closingDuringACallEndsIt() throws Exception {
        well("closing");
    }

    @Test
    void threadsOfTheLibraryAreDaemonsWithNames() throws Exception {
        String said = well("foreign");
        assertTrue(said.matches("(?s).*told by byway-\\S+ daemon.*"), said);
        assertTrue(said.contains("nobody is there to catch this"), said);
    }

    @Test
    void aNamedLibraryThatIsMissingIsSaidSo() throws Exception {
        Ended ended = run("path", "-Dio.byway.library=/nowhere/libbyway_jni.so");
        assertTrue(ended.code != 0, ended.output);
        assertTrue(ended.output.contains("property io.byway.library names /nowhere/libbyway_jni.so"), ended.output);
    }

    @Test
    void aFolderThatOthersMayWriteIsRefused(@TempDir Path folder) throws Exception {
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        Ended ended = run("path", "-Dio.byway.workdir=" + folder);
        assertTrue(ended.output.contains("others may write into " + folder), ended.output);
    }

    @Test
    void aCopyThatWasTamperedWithIsReplaced(@TempDir Path folder) throws Exception {
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
        String flag = "-Dio.byway.workdir=" + folder;
        String said = well("path", flag);
        Path file =
                said.lines().filter(line -> line.startsWith(folder.toString())).map(Path::of).findFirst().orElseThrow();
        long size = Files.size(file);
        Files.writeString(file, "not a library");
        well("path", flag);
        assertEquals(size, Files.size(file));
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(1, left.count());
        }
    }

    /** The library as the jar has it. */
    private static Path library(Path folder) throws Exception {
        Path copy = folder.resolve("libbyway_jni.so");
        try (InputStream in = Loader.class.getResourceAsStream("/META-INF/native/" + Loader.platform() + "/libbyway_jni.so")) {
            Files.copy(in, copy);
        }
        return copy;
    }

    @Test
    void thePropertyComesFirstThenThePathOfJavaThenTheJar(@TempDir Path folder, @TempDir Path workdir) throws Exception {
        Files.setPosixFilePermissions(workdir, PosixFilePermissions.fromString("rwx------"));
        Path file = library(folder);
        String path = "-Djava.library.path=" + folder;
        String jar = "-Dio.byway.workdir=" + workdir;
        assertTrue(well("path", "-Dio.byway.library=" + file, path, jar).lines().anyMatch(file.toString()::equals));
        assertTrue(well("path", path, jar).lines().anyMatch("byway_jni"::equals));
        try (Stream<Path> left = Files.list(workdir)) {
            assertEquals(0, left.count(), "nothing was unpacked");
        }
        assertTrue(well("path", jar).lines().anyMatch(line -> line.startsWith(workdir.toString())));
    }

    @Test
    void aPlatformThatTheJarHasNothingForIsNamed() throws Exception {
        Ended ended = run("path", "-Dos.arch=s390x");
        assertTrue(ended.code != 0, ended.output);
        assertTrue(ended.output.contains("the jar brings none for linux-s390x"), ended.output);
    }

    @Test
    void aFolderThatCannotBeMadeIsNamed() throws Exception {
        Ended ended = run("path", "-Dio.byway.workdir=/proc/byway/unpacked");
        assertTrue(ended.code != 0, ended.output);
        assertTrue(ended.output.contains("cannot be unpacked into /proc/byway/unpacked"), ended.output);
        assertTrue(ended.output.contains("-Dio.byway.workdir"), ended.output);
    }

    /** In mounts of its own, so that nothing of it is left. */
    @Test
    void aFileSystemThatExecutesNothingIsNamedWithWhatHelps(@TempDir Path folder) throws Exception {
        List<String> mounts = new ArrayList<>(List.of("unshare", "--mount"));
        if (!System.getProperty("user.name").equals("root")) {
            mounts.add("--map-root-user");
        }
        mounts.addAll(List.of("sh", "-c", "mount -t tmpfs -o noexec,mode=700 tmpfs '" + folder + "' && exec \"$@\"", "sh"));
        List<String> probe = new ArrayList<>(mounts);
        probe.add("true");
        boolean may;
        try {
            may = new ProcessBuilder(probe).redirectErrorStream(true).start().waitFor() == 0;
        } catch (IOException missing) {
            may = false;
        }
        assumeTrue(may, "no mounts of one's own here");
        Ended ended = run(mounts, "path", "-Dio.byway.workdir=" + folder);
        assertTrue(ended.code != 0, ended.output);
        assertTrue(ended.output.contains("its file system is mounted noexec"), ended.output);
        assertTrue(ended.output.contains("Name another folder with -Dio.byway.workdir"), ended.output);
    }
}
