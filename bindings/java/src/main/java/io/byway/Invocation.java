package io.byway;

import java.util.Collection;
import java.util.Map;

/**
 * A call to be routed: method, parameter types, arguments, attachments. Made once per thread and filled anew for every
 * call; setting costs no crossing, what was set goes over with the next question.
 *
 * <pre>{@code
 * Invocation call = new Invocation();
 * int hello = chain.internMethod("sayHello");
 * call.reset().methodId(hello).attach("dubbo.tag", "gray");
 * }</pre>
 *
 * <p>Belongs to the thread that made or last {@link #reset} it; elsewhere calls throw {@link BywayException.Handle}. A
 * virtual thread may change its carrier meanwhile.
 */
public final class Invocation extends Handle {
    private final Notes notes = new Notes();
    private volatile Thread owner;

    final long pointer;

    /** The owner while the engine has read all that was set and this is open, otherwise null. */
    volatile Thread ready;

    private volatile boolean closing;

    /** An empty call. */
    public Invocation() {
        this(make());
    }

    private Invocation(long pointer) {
        super(pointer, Invocation::free);
        this.pointer = pointer;
        owner = Thread.currentThread();
    }

    /** A call of a method. */
    public Invocation(String method) {
        this();
        method(method);
    }

    /**
     * Forgets everything set; the calling thread becomes the owner.
     *
     * @throws BywayException.Handle while its thread is inside a call with it
     */
    public Invocation reset() {
        Thread here = Thread.currentThread();
        if (owner != here) {
            long self = enter();
            try {
                // Nothing to read, but the engine says whether the other thread is inside.
                fill(self, notes.address(), 0);
                owner = here;
            } finally {
                exit();
            }
        }
        ready = null;
        notes.clear();
        return this;
    }

    /** Sets the method name as called, for example {@code sayHello} or {@code $invoke}. */
    public Invocation method(String name) {
        changing().method(Texts.utf8(name, "name"));
        return this;
    }

    /** Sets the method by a number from {@link Chain#internMethod}: the fast way to name it again and again. */
    public Invocation methodId(int id) {
        changing().methodId(id);
        return this;
    }

    /** Sets the names of the parameter types, in order. */
    public Invocation types(String... names) {
        changing().texts(Notes.TYPES, names, "names");
        return this;
    }

    /**
     * Sets the arguments by their text form, in order; null is a null argument. Of a generic call ({@code $invoke}) the
     * first argument is the method that is meant, the second stands for the types, and those behind it are that method's
     * own arguments.
     */
    public Invocation arguments(String... values) {
        changing().texts(Notes.ARGUMENTS, values, "values");
        return this;
    }

    /** The same from a list. */
    public Invocation arguments(Collection<String> values) {
        return arguments(values.toArray(new String[0]));
    }

    /** Sets one attachment; one of the same key is replaced. */
    public Invocation attach(String key, String value) {
        changing().attachment(Texts.utf8(key, "key"), Texts.utf8(value, "value"));
        return this;
    }

    /** Sets many attachments. */
    public Invocation attachments(Map<String, String> texts) {
        Notes notes = changing();
        for (Map.Entry<String, String> one : texts.entrySet()) {
            notes.attachment(Texts.utf8(one.getKey(), "key"), Texts.utf8(one.getValue(), "value"));
        }
        return this;
    }

    private Notes changing() {
        checkOwner();
        ready = null;
        return notes;
    }

    void checkOwner() {
        if (owner != Thread.currentThread()) {
            throw Errors.of(Abi.E_BUSY, "the invocation belongs to another thread; reset it first", "invocation");
        }
    }

    /** Where natives find what was set. */
    long address() {
        return notes.address();
    }

    /** All of it. */
    int length() {
        return notes.length();
    }

    /** As much as is not read yet: all, or -1 for nothing. */
    int news() {
        return ready == null ? notes.length() : -1;
    }

    /** A native has read it all; still inside. */
    void wasRead() {
        ready = owner;
        if (closing) {
            ready = null;
        }
    }

    /** Has it all read again: this thread has another carrier than before. */
    void readAgain() {
        ready = null;
    }

    /** Enters with everything read, for natives that take several. */
    long filled() {
        checkOwner();
        long self = enter();
        try {
            fill(self, notes.address(), notes.length());
            wasRead();
            return self;
        } catch (Throwable thrown) {
            exit();
            throw thrown;
        }
    }

    @Override
    public void close() {
        closing = true;
        ready = null;
        super.close();
    }

    private static native long make();

    private static native void fill(long self, long notes, int length);

    private static native void free(long self);
}
