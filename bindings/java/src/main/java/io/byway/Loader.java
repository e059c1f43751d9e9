package io.byway;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;

/**
 * Finds and loads the native library, in this order:
 *
 * <ol>
 *   <li>the file that the system property {@code io.byway.library} names, and nothing else when it is set;
 *   <li>{@code libbyway_jni.so} in {@code java.library.path};
 *   <li>the copy in the jar, unpacked under the hash of its content into a folder that belongs to this user:
 *       {@code io.byway.workdir}, else {@code byway-USER} in {@code java.io.tmpdir}. Copies are shared by processes and
 *       are never overwritten.
 * </ol>
 *
 * The JVM lets one class loader have a file. A second loader in the same process gets a copy of its own, and with it an
 * engine of its own: handles of one are refused by the other.
 */
final class Loader {
    static final String PROPERTY = "io.byway.library";
    static final String WORKDIR = "io.byway.workdir";
    private static final int MOST_COPIES = 64;

    private Loader() {}

    static String load() {
        String named = System.getProperty(PROPERTY);
        if (named != null && !named.isEmpty()) {
            return exactly(Paths.get(named).toAbsolutePath());
        }
        UnsatisfiedLinkError inPath;
        try {
            System.loadLibrary("byway_jni");
            return "byway_jni";
        } catch (UnsatisfiedLinkError error) {
            inPath = error;
        }
        String resource = "/META-INF/native/" + platform() + "/libbyway_jni.so";
        URL url = Loader.class.getResource(resource);
        if (url == null) {
            throw failure(
                    "byway's native library was not found: property "
                            + PROPERTY
                            + " is not set, java.library.path has no libbyway_jni.so, and the jar brings none for "
                            + platform()
                            + " ("
                            + resource
                            + ")",
                    null,
                    inPath);
        }
        Path folder = folder();
        try {
            return unpacked(folder, () -> open(url));
        } catch (IOException broken) {
            throw failure(
                    "byway's native library cannot be unpacked into "
                            + folder
                            + "; name a folder of your own with -D"
                            + WORKDIR,
                    broken,
                    inPath);
        }
    }

    private static String exactly(Path file) {
        if (!Files.exists(file)) {
            throw new UnsatisfiedLinkError("property " + PROPERTY + " names " + file + ", which does not exist");
        }
        try {
            System.load(file.toString());
            return file.toString();
        } catch (UnsatisfiedLinkError taken) {
            if (!isTaken(taken)) {
                throw taken;
            }
        }
        // Another class loader has this file: this one gets a copy.
        try {
            return unpacked(folder(), () -> Files.newInputStream(file));
        } catch (IOException broken) {
            throw failure("a second class loader needs a copy of " + file + " in " + folder(), broken, null);
        }
    }

    private static boolean isTaken(UnsatisfiedLinkError error) {
        return String.valueOf(error.getMessage()).contains("already loaded in another classloader");
    }

    /** The library's content, which may be larger than the heap has room for. */
    private interface Content {
        InputStream open() throws IOException;
    }

    /** Loads a copy of {@code content}: the shared one, or the first that no other class loader of this process has. */
    private static String unpacked(Path folder, Content content) throws IOException {
        own(folder);
        String hash = hash(content);
        for (int copy = 0; copy < MOST_COPIES; copy++) {
            String suffix = copy == 0 ? "" : "-" + copy;
            Path file = folder.resolve("libbyway_jni-" + hash.substring(0, 16) + suffix + ".so");
            place(folder, file, hash, content);
            try {
                System.load(file.toString());
                return file.toString();
            } catch (UnsatisfiedLinkError error) {
                if (isTaken(error)) {
                    continue;
                }
                throw explained(file, error);
            }
        }
        throw new UnsatisfiedLinkError(
                MOST_COPIES + " class loaders of this process have loaded byway already; share one instead");
    }

    private static void place(Path folder, Path file, String hash, Content content) throws IOException {
        if (Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && hash(() -> Files.newInputStream(file)).equals(hash)) {
            return;
        }
        Path fresh = Files.createTempFile(folder, "libbyway_jni-", ".tmp");
        try {
            try (InputStream in = content.open()) {
                Files.copy(in, fresh, StandardCopyOption.REPLACE_EXISTING);
            }
            try {
                Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
            } catch (AtomicMoveNotSupportedException | FileAlreadyExistsException other) {
                Files.move(fresh, file, StandardCopyOption.REPLACE_EXISTING);
            }
        } finally {
            Files.deleteIfExists(fresh);
        }
    }

    /** Makes the folder ours alone: whoever else could write there could give this process code to run. */
    private static void own(Path folder) throws IOException {
        try {
            Files.createDirectories(folder.getParent());
            Files.createDirectory(
                    folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        } catch (FileAlreadyExistsException there) {
            if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
                throw new IOException(folder + " is not a folder");
            }
            if (Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).stream()
                    .anyMatch(right -> right.name().equals("GROUP_WRITE") || right.name().equals("OTHERS_WRITE"))) {
                throw new IOException("others may write into " + folder);
            }
            Path probe = Files.createTempFile(folder, "byway", ".probe");
            try {
                if (!Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(Files.getOwner(probe))) {
                    throw new IOException(folder + " belongs to somebody else");
                }
            } finally {
                Files.delete(probe);
            }
        }
    }

    private static Path folder() {
        String named = System.getProperty(WORKDIR);
        if (named != null && !named.isEmpty()) {
            return Paths.get(named).toAbsolutePath();
        }
        String user = System.getProperty("user.name", "unknown").replaceAll("[^A-Za-z0-9_-]", "_");
        return Paths.get(System.getProperty("java.io.tmpdir"), "byway-" + user).toAbsolutePath();
    }

    private static UnsatisfiedLinkError explained(Path file, UnsatisfiedLinkError error) {
        String said = String.valueOf(error.getMessage());
        if (said.contains("failed to map segment") || said.contains("Operation not permitted")) {
            return failure(
                    file
                            + " cannot be executed: its file system is mounted noexec. Name another folder with -D"
                            + WORKDIR
                            + ", or unpack the library yourself and name it with -D"
                            + PROPERTY,
                    error,
                    null);
        }
        return error;
    }

    /** For example {@code linux-x86_64}, {@code linux-aarch64-musl}. */
    static String platform() {
        String os = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        if (arch.equals("amd64") || arch.equals("x64")) {
            arch = "x86_64";
        } else if (arch.equals("arm64")) {
            arch = "aarch64";
        }
        return (os.contains("linux") ? "linux" : os.replaceAll("[^a-z0-9]", "")) + "-" + arch + (isMusl() ? "-musl" : "");
    }

    /** What this process itself runs on: its own map names the C library. */
    private static boolean isMusl() {
        try {
            return new String(Files.readAllBytes(Paths.get("/proc/self/maps")), java.nio.charset.StandardCharsets.UTF_8)
                    .contains("/ld-musl-");
        } catch (IOException unknown) {
            return false;
        }
    }

    private static InputStream open(URL url) throws IOException {
        URLConnection connection = url.openConnection();
        // The JVM's cache of open jars is shared: one loader that closes would close it for the others.
        connection.setUseCaches(false);
        return connection.getInputStream();
    }

    private static String hash(Content content) throws IOException {
        try (InputStream in = content.open()) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] buffer = new byte[1 << 16];
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                digest.update(buffer, 0, read);
            }
            StringBuilder hex = new StringBuilder();
            for (byte one : digest.digest()) {
                hex.append(Character.forDigit(one >> 4 & 15, 16)).append(Character.forDigit(one & 15, 16));
            }
            return hex.toString();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static UnsatisfiedLinkError failure(String message, Throwable cause, Throwable before) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(message + (cause == null ? "" : ": " + cause));
        if (cause != null) {
            error.initCause(cause);
        }
        if (before != null) {
            error.addSuppressed(before);
        }
        return error;
    }
}
