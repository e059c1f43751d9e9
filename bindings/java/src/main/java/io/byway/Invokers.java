package io.byway;

import java.util.Collection;
import java.util.Objects;

/**
 * An immutable list of provider URLs in the host's order, each with a number of the host's, its tag. Shared.
 *
 * <p>URLs are raw or merged, as registries give them: rows with {@code disabled=true} or {@code enabled=false} are
 * skipped, {@code empty://} clears what came before.
 */
public final class Invokers extends Handle {
    /** What a list is made with. */
    public static final class Options {
        boolean keepUrls;
        Runnable onEnd;

        /** Keep the URL texts, for {@link Invokers#url}. */
        public Options keepUrls(boolean on) {
            keepUrls = on;
            return this;
        }

        /**
         * Runs once when nothing can name the list's tags any more: no list made from this one, chain, session or choice.
         */
        public Options onEnd(Runnable onEnd) {
            this.onEnd = onEnd;
            return this;
        }
    }

    static final Options DEFAULT = new Options();

    /** A list in which a provider's tag is its index. */
    public Invokers(Engine engine, Collection<String> urls) {
        this(engine, urls, null, DEFAULT);
    }

    /** A list; {@code tags[i]} belongs to the i-th URL, none may be 0 or occur twice. */
    public Invokers(Engine engine, Collection<String> urls, long[] tags) {
        this(engine, urls, tags, DEFAULT);
    }

    /**
     * A list.
     *
     * @param tags null: a provider's tag is its index
     * @throws BywayException.Invokers naming the first unusable URL or tag by its index
     */
    public Invokers(Engine engine, Collection<String> urls, long[] tags, Options options) {
        this(made(engine, urls, tags, options));
    }

    Invokers(long pointer) {
        super(pointer, Invokers::release);
    }

    private static long made(Engine engine, Collection<String> urls, long[] tags, Options options) {
        Texts texts = Texts.pack(urls, "urls");
        checkTags(texts, tags);
        long self = engine.enter();
        try {
            return make(self, texts.bytes, texts.lengths, tags, options.keepUrls, options.onEnd);
        } finally {
            engine.exit();
        }
    }

    static void checkTags(Texts urls, long[] tags) {
        if (tags != null && tags.length != urls.lengths.length) {
            throw Errors.of(Abi.E_ARGUMENT, urls.lengths.length + " urls but " + tags.length + " tags", "tags");
        }
    }

    /** Number of providers. */
    public int size() {
        long self = enter();
        try {
            return size(self);
        } finally {
            exit();
        }
    }

    /** The tag of a row. */
    public long tag(int row) {
        if (row < 0) {
            Objects.checkIndex(row, size());
        }
        long self = enter();
        try {
            return tag(self, row);
        } finally {
            exit();
        }
    }

    /** Every tag, in the order of the rows. */
    public long[] tags() {
        long self = enter();
        try {
            return tags(self);
        } finally {
            exit();
        }
    }

    /** The URL of a row; needs {@link Options#keepUrls}. */
    public String url(int row) {
        if (row < 0) {
            Objects.checkIndex(row, size());
        }
        long self = enter();
        try {
            return Texts.of(url(self, row));
        } finally {
            exit();
        }
    }

    /**
     * The row of the provider with this tag.
     *
     * @throws BywayException.Argument when the list has none
     */
    public int rowOf(long tag) {
        long self = enter();
        try {
            return rowOf(self, tag);
        } finally {
            exit();
        }
    }

    /** A number no other list of this process has. */
    public long generation() {
        long self = enter();
        try {
            return generation(self);
        } finally {
            exit();
        }
    }

    /** Where natives call. */
    static final class Callbacks {
        private Callbacks() {}

        static void ended(Object target) {
            try {
                ((Runnable) target).run();
            } catch (Throwable thrown) {
                Errors.report(thrown);
            }
        }
    }

    private static native long make(
            long engine, byte[] urls, int[] lengths, long[] tags, boolean keepUrls, Object onEnd);

    private static native int size(long self);

    private static native long tag(long self, int row);

    private static native long[] tags(long self);

    private static native byte[] url(long self, int row);

    private static native int rowOf(long self, long tag);

    private static native long generation(long self);

    private static native void release(long self);
}
