package io.byway;

/** Which behaviour the first half shows. */
public enum Compat {
    /** byway's own rules. */
    BYWAY(Abi.COMPAT_BYWAY),

    /** Exactly as OkHttp 5. */
    OKHTTP_5(Abi.COMPAT_OKHTTP_5),

    /** Exactly as OkHttp 3.13. */
    OKHTTP_3(Abi.COMPAT_OKHTTP_3);

    private static final Compat[] ALL = values();

    private final int number;

    Compat(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static Compat of(int number) {
        for (Compat one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no Compat has number " + number);
    }
}
