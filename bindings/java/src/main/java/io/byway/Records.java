package io.byway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Memory into which the library writes all routes of a selection at once. A few buffers are shared by all threads, so
 * that a thread, of which there may be many, has none of its own.
 */
final class Records {
    /** In front of the records: their number, -1 when they did not fit; and the bytes that all of it takes. */
    static final int HEAD = 16;

    private static final int FIRST = 8 << 10;
    private static final int KEPT_AT_MOST = 1 << 20;
    private static final int PLACES = 16;
    private static final AtomicReferenceArray<Records> FREE = new AtomicReferenceArray<>(PLACES);

    final ByteBuffer memory;
    final long address;

    private Records(int capacity) {
        memory = ByteBuffer.allocateDirect(capacity).order(ByteOrder.nativeOrder());
        address = Library.address(memory);
    }

    static Records take() {
        Records free = FREE.getAndSet(place(), null);
        return free != null ? free : new Records(FIRST);
    }

    static void give(Records records) {
        if (records.memory.capacity() <= KEPT_AT_MOST) {
            FREE.lazySet(place(), records);
        }
    }

    private static int place() {
        long id = Thread.currentThread().getId();
        return (int) (id ^ id >>> 4) & (PLACES - 1);
    }

    int capacity() {
        return memory.capacity();
    }

    boolean fits() {
        return memory.getInt(0) >= 0;
    }

    /** A buffer that is large enough for what did not fit here. */
    Records larger() {
        return new Records(Math.addExact(memory.getInt(4), 64));
    }

    int count() {
        return memory.getInt(0);
    }

    /** Everything behind the head, as Java's own. */
    byte[] copy() {
        byte[] content = new byte[memory.getInt(4) - HEAD];
        memory.position(HEAD);
        memory.get(content);
        return content;
    }
}
