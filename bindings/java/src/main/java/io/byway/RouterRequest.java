package io.byway;

import java.util.Objects;

/** What a host's router is asked: which of these providers stay? Only until the callback returns. */
public final class RouterRequest {
    private long pointer;
    private final long[] tags;
    private final byte[] method;
    private final boolean explaining;
    private final byte[] keep;
    private boolean passed;

    RouterRequest(long pointer, long[] tags, byte[] method, boolean explaining, byte[] keep) {
        this.pointer = pointer;
        this.tags = tags;
        this.method = method;
        this.explaining = explaining;
        this.keep = keep;
    }

    /** How many providers came in. */
    public int size() {
        return tags.length;
    }

    /** The tag of one of them, in list order, from 0. */
    public long tag(int index) {
        return tags[index];
    }

    /** All tags. */
    public long[] tags() {
        return tags.clone();
    }

    /** The method that is meant. */
    public String method() {
        return Texts.of(method);
    }

    /** An explanation is made: nothing is sent anywhere with the answer, and no counter should move. */
    public boolean isExplaining() {
        return explaining;
    }

    /** This one stays; whoever is not kept goes. */
    public void keep(int index) {
        keep[index] = 1;
    }

    /** Everybody stays. */
    public void pass() {
        passed = true;
    }

    /** An attachment of the call, null when it has none of this key. */
    public String attachment(String key) {
        byte[] value = attachment(live(), Texts.utf8(key, "key"));
        return value == null ? null : Texts.of(value);
    }

    /** An argument of the call by its text; null for a null argument and behind the last one. */
    public String argument(int index) {
        if (index < 0) {
            throw new IndexOutOfBoundsException("arguments count from 0, there is none of index " + index);
        }
        byte[] value = argument(live(), index);
        return value == null ? null : Texts.of(value);
    }

    private long live() {
        if (pointer == 0) {
            throw Errors.of(Abi.E_STATE, "the router's callback has returned", "request");
        }
        return pointer;
    }

    int outcome() {
        return passed ? Abi.PASS : Abi.OK;
    }

    void returned() {
        pointer = 0;
    }

    private static native byte[] attachment(long self, byte[] key);

    private static native byte[] argument(long self, int index);
}
