package io.byway;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Objects;

/** Texts on their way across: UTF-8, many of them in one array. */
final class Texts {
    /** All bytes, one text behind the other. */
    final byte[] bytes;

    /** Length of each. */
    final int[] lengths;

    private Texts(byte[] bytes, int[] lengths) {
        this.bytes = bytes;
        this.lengths = lengths;
    }

    /** Refuses half a character pair, which has no UTF-8. */
    static byte[] utf8(String text, String parameter) {
        Objects.requireNonNull(text, parameter);
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        if (bytes.length != text.length()) {
            // Only texts beyond ASCII can hold one.
            refuseHalfPairs(text, parameter);
        } else {
            for (byte one : bytes) {
                if (one == '?') {
                    refuseHalfPairs(text, parameter);
                    break;
                }
            }
        }
        return bytes;
    }

    private static void refuseHalfPairs(String text, String parameter) {
        for (int i = 0; i < text.length(); i++) {
            char here = text.charAt(i);
            if (Character.isHighSurrogate(here) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
                i++;
            } else if (Character.isSurrogate(here)) {
                throw Errors.of(
                        Abi.E_UTF8, "half of a surrogate pair at position " + i + " has no UTF-8", parameter);
            }
        }
    }

    static byte[] utf8OrNull(String text, String parameter) {
        return text == null ? null : utf8(text, parameter);
    }

    static String of(byte[] utf8) {
        return utf8 == null ? "" : new String(utf8, StandardCharsets.UTF_8);
    }

    static Texts pack(Collection<String> texts, String parameter) {
        Objects.requireNonNull(texts, parameter);
        byte[][] each = new byte[texts.size()][];
        int[] lengths = new int[each.length];
        int total = 0;
        int i = 0;
        for (String text : texts) {
            if (text == null) {
                throw new NullPointerException(parameter + "[" + i + "]");
            }
            each[i] = utf8(text, parameter);
            lengths[i] = each[i].length;
            total = Math.addExact(total, lengths[i]);
            i++;
        }
        byte[] bytes = new byte[total];
        int at = 0;
        for (byte[] one : each) {
            System.arraycopy(one, 0, bytes, at, one.length);
            at += one.length;
        }
        return new Texts(bytes, lengths);
    }
}
