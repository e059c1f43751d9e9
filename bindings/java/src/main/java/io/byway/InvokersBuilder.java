package io.byway;

import java.util.Collection;

/**
 * Makes a provider list, whole or as an update of another, which stays as it is. Used by one thread at a time.
 *
 * <pre>{@code
 * InvokersBuilder builder = new InvokersBuilder(engine, invokers);
 * builder.set("tri://10.0.0.1:20880/x?weight=50", 101);
 * builder.remove(102);
 * chain.setInvokers(builder.finish());
 * }</pre>
 */
public final class InvokersBuilder extends Handle {
    /** A whole list. */
    public InvokersBuilder(Engine engine) {
        this(engine, null, Invokers.DEFAULT);
    }

    /** An update of {@code base}; what it does not touch is shared with it. */
    public InvokersBuilder(Engine engine, Invokers base) {
        this(engine, base, Invokers.DEFAULT);
    }

    /** A whole list, or an update where {@code base} is not null. */
    public InvokersBuilder(Engine engine, Invokers base, Invokers.Options options) {
        super(made(engine, base, options), InvokersBuilder::free);
    }

    @Override
    String gone() {
        return "the builder has made its list or was closed";
    }

    private static long made(Engine engine, Invokers base, Invokers.Options options) {
        try (Held held = new Held()) {
            return make(held.needed(engine, "engine"), held.of(base), options.keepUrls, options.onEnd);
        }
    }

    /**
     * Adds a provider at the end.
     *
     * @throws BywayException.Invokers for an unusable URL, a tag of 0 or one that is in the list; {@link #finish} then throws
     *     the first of them
     */
    public InvokersBuilder add(String url, long tag) {
        byte[] text = Texts.utf8(url, "url");
        long self = enter();
        try {
            add(self, text, tag);
        } finally {
            exit();
        }
        return this;
    }

    /** Adds providers at the end; with null a tag is the URL's index among all URLs given. */
    public InvokersBuilder addMany(Collection<String> urls, long[] tags) {
        Texts texts = Texts.pack(urls, "urls");
        Invokers.checkTags(texts, tags);
        long self = enter();
        try {
            addMany(self, texts.bytes, texts.lengths, tags);
        } finally {
            exit();
        }
        return this;
    }

    /** Replaces the URL of the provider with this tag in its place, or adds it at the end. */
    public InvokersBuilder set(String url, long tag) {
        byte[] text = Texts.utf8(url, "url");
        long self = enter();
        try {
            set(self, text, tag);
        } finally {
            exit();
        }
        return this;
    }

    /**
     * Takes a provider out.
     *
     * @throws BywayException.Argument when there is none with this tag; the list stays usable
     */
    public InvokersBuilder remove(long tag) {
        long self = enter();
        try {
            remove(self, tag);
        } finally {
            exit();
        }
        return this;
    }

    /** Makes the list; the builder is used up, whatever comes of it. */
    public Invokers finish() {
        long self = enter();
        try {
            return new Invokers(finish(self));
        } finally {
            exit();
            close();
        }
    }

    private static native long make(long engine, long base, boolean keepUrls, Object onEnd);

    private static native void add(long self, byte[] url, long tag);

    private static native void addMany(long self, byte[] urls, int[] lengths, long[] tags);

    private static native void set(long self, byte[] url, long tag);

    private static native void remove(long self, long tag);

    private static native long finish(long self);

    private static native void free(long self);
}
