package io.byway;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The native library. Loaded on first use of any class; {@link Loader} says from where. */
public final class Library {
    private Library() {}

    /** Loads and checks once; a failure is repeated to everybody who asks. */
    private static final class Loaded {
        static final String PATH = Loader.load();

        static {
            check();
        }
    }

    /**
     * Loads the library if it is not. Needed only by who wants to choose the moment.
     *
     * @throws UnsatisfiedLinkError naming every place that was looked at
     */
    public static void load() {
        path();
    }

    /** The file it was loaded from, or its name where the JVM's own search found it. */
    public static String path() {
        return Loaded.PATH;
    }

    /** Version of the loaded library. */
    public static String version() {
        load();
        return Texts.of(version0());
    }

    /** True when the library was built with this feature, for example {@code script}. */
    public static boolean hasFeature(String name) {
        load();
        return hasFeature0(Texts.utf8(name, "name"));
    }

    static String statusName(int status) {
        load();
        return Texts.of(statusName0(status));
    }

    static String statusMessage(int status) {
        load();
        return Texts.of(statusMessage0(status));
    }

    /** Address of a direct buffer. */
    static long address(ByteBuffer buffer) {
        return bufferAddress0(buffer);
    }

    private static void check() {
        if (abiVersion0() != Abi.ABI_VERSION) {
            throw new UnsatisfiedLinkError(
                    Loaded.PATH + " speaks ABI " + abiVersion0() + ", these classes " + Abi.ABI_VERSION);
        }
        List<String> there = Arrays.asList(Texts.of(layout0()).split("\n"));
        List<String> missing = new ArrayList<>(Arrays.asList(Abi.LAYOUT));
        missing.removeAll(there);
        if (!missing.isEmpty()) {
            throw new UnsatisfiedLinkError(
                    Loaded.PATH + " has other structs than these classes: expected " + missing + " among " + there);
        }
    }

    private static native int abiVersion0();

    private static native byte[] version0();

    private static native boolean hasFeature0(byte[] name);

    private static native byte[] statusName0(int status);

    private static native byte[] statusMessage0(int status);

    private static native byte[] layout0();

    private static native long bufferAddress0(ByteBuffer buffer);

    /** Does nothing: what a crossing costs. */
    static native long nothing0(long value);
}
