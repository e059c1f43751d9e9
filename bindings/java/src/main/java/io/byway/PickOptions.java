package io.byway;

import java.util.BitSet;

/** What is asked of a pick. May be kept and changed between picks of one thread. */
public final class PickOptions {
    static final PickOptions DEFAULT = new PickOptions();

    int balance;
    int flags;
    long[] exclude;
    long[] available;
    long availableList;

    /** How; by default as the providers say. */
    public PickOptions balance(Balance balance) {
        this.balance = balance.number();
        return this;
    }

    /**
     * True: stay with the provider picked last as long as it can serve; false: do not; null: as the providers'
     * {@code sticky} says.
     */
    public PickOptions sticky(Boolean sticky) {
        flags = sticky == null ? 0 : sticky ? Abi.PICK_STICKY : Abi.PICK_NOT_STICKY;
        return this;
    }

    /** Tags tried before, for a retry. */
    public PickOptions exclude(long... tags) {
        exclude = tags.length == 0 ? null : tags.clone();
        return this;
    }

    /** The rows of a list that can be called; null: all can. */
    public PickOptions available(Invokers invokers, BitSet rows) {
        if (rows == null) {
            available = null;
            return this;
        }
        // Rows behind the last word count as unavailable.
        available = rows.toLongArray();
        availableList = invokers.generation();
        return this;
    }
}
