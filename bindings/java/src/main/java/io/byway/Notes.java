package io.byway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Memory in which an invocation notes what is set, in the form that natives read: an int that says what, then ints and
 * texts, each text behind its length. The engine goes on looking at the texts, so the memory outlives every call that was
 * told of it.
 */
final class Notes {
    static final int METHOD = 0;
    static final int METHOD_ID = 1;
    static final int TYPES = 2;
    static final int ARGUMENTS = 3;
    static final int ATTACHMENT = 4;

    private static final int FIRST = 512;

    private ByteBuffer memory;
    private long address;

    Notes() {
        allocate(FIRST);
    }

    private void allocate(int capacity) {
        memory = ByteBuffer.allocateDirect(capacity).order(ByteOrder.nativeOrder());
        address = Library.address(memory);
    }

    long address() {
        return address;
    }

    int length() {
        return memory.position();
    }

    void clear() {
        memory.clear();
    }

    void method(byte[] name) {
        room(8 + name.length);
        memory.putInt(METHOD).putInt(name.length).put(name);
    }

    void methodId(int id) {
        room(8);
        memory.putInt(METHOD_ID).putInt(id);
    }

    void texts(int kind, String[] texts, String parameter) {
        byte[][] each = new byte[texts.length][];
        int total = 8;
        for (int i = 0; i < each.length; i++) {
            each[i] = Texts.utf8OrNull(texts[i], parameter);
            if (each[i] == null && kind != ARGUMENTS) {
                throw new NullPointerException(parameter + "[" + i + "]");
            }
            total = Math.addExact(total, 4 + (each[i] == null ? 0 : each[i].length));
        }
        room(total);
        memory.putInt(kind).putInt(each.length);
        for (byte[] one : each) {
            if (one == null) {
                memory.putInt(-1);
            } else {
                memory.putInt(one.length).put(one);
            }
        }
    }

    void attachment(byte[] key, byte[] value) {
        room(Math.addExact(12 + key.length, value.length));
        memory.putInt(ATTACHMENT).putInt(key.length).put(key).putInt(value.length).put(value);
    }

    /** Room for this many bytes more. What was replaced is left out before more memory is taken. */
    private void room(int bytes) {
        if (memory.remaining() >= bytes) {
            return;
        }
        byte[] kept = latest();
        int needed = Math.addExact(kept.length, bytes);
        if (needed > memory.capacity() / 2) {
            // Another one, not this one longer: the engine may be reading it on another thread.
            allocate(Math.max(2 * memory.capacity(), Math.addExact(needed, needed / 2)));
        } else {
            memory.clear();
        }
        memory.put(kept);
    }

    /** The notes without those that a later one replaces. */
    private byte[] latest() {
        byte[] all = new byte[memory.position()];
        memory.flip();
        memory.get(all);
        ByteBuffer notes = ByteBuffer.wrap(all).order(ByteOrder.nativeOrder());
        Map<Object, byte[]> latest = new LinkedHashMap<>();
        while (notes.hasRemaining()) {
            int from = notes.position();
            int kind = notes.getInt();
            Object key = kind == METHOD_ID ? METHOD : kind;
            switch (kind) {
                case METHOD_ID:
                    notes.getInt();
                    break;
                case METHOD:
                    skip(notes);
                    break;
                case ATTACHMENT:
                    int start = notes.position();
                    skip(notes);
                    key = ByteBuffer.wrap(Arrays.copyOfRange(all, start, notes.position()));
                    skip(notes);
                    break;
                default:
                    for (int left = notes.getInt(); left > 0; left--) {
                        skip(notes);
                    }
            }
            latest.put(key, Arrays.copyOfRange(all, from, notes.position()));
        }
        int total = 0;
        for (byte[] one : latest.values()) {
            total += one.length;
        }
        byte[] kept = new byte[total];
        int at = 0;
        for (byte[] one : latest.values()) {
            System.arraycopy(one, 0, kept, at, one.length);
            at += one.length;
        }
        return kept;
    }

    private static void skip(ByteBuffer notes) {
        int length = notes.getInt();
        if (length > 0) {
            notes.position(notes.position() + length);
        }
    }
}
