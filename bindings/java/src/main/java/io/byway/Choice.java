package io.byway;

import java.util.Objects;

/** A routing result: the providers that may serve a call, by the host's tags and in list order. Pins the list. */
public final class Choice extends Handle {
    Choice(long pointer) {
        super(pointer, Choice::free);
    }

    /** How many providers may serve the call. */
    public int size() {
        long self = enter();
        try {
            return size(self);
        } finally {
            exit();
        }
    }

    /** True when none may. */
    public boolean isEmpty() {
        return size() == 0;
    }

    /** The tag of one of them, in list order, from 0. */
    public long tag(int index) {
        if (index < 0) {
            Objects.checkIndex(index, size());
        }
        long self = enter();
        try {
            return tag(self, index);
        } finally {
            exit();
        }
    }

    /** All tags, in one crossing. */
    public long[] tags() {
        long self = enter();
        try {
            return tags(self);
        } finally {
            exit();
        }
    }

    /** The list they were chosen from, also when the chain has another one by now. */
    public Invokers invokers() {
        long self = enter();
        try {
            return new Invokers(invokers(self));
        } finally {
            exit();
        }
    }

    /** Number of the world, list and rules, that answered. */
    public long generation() {
        long self = enter();
        try {
            return generation(self);
        } finally {
            exit();
        }
    }

    /** Name of the router that left nobody; null when somebody is left, or nobody was there to begin with. */
    public String emptiedBy() {
        long self = enter();
        try {
            byte[] name = emptiedBy(self);
            return name == null ? null : Texts.of(name);
        } finally {
            exit();
        }
    }

    static native int size(long self);

    static native long tag(long self, int index);

    static native long[] tags(long self);

    static native int tagsInto(long self, long[] into);

    static native long invokers(long self);

    static native long generation(long self);

    static native byte[] emptiedBy(long self);

    private static native void free(long self);
}
