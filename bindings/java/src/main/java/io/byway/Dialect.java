package io.byway;

/** Whose reading of rules decides. */
public enum Dialect {
    /** byway's own. */
    BYWAY(Abi.DIALECT_BYWAY),

    /** Dubbo Java 3.3. */
    DUBBO_3(Abi.DIALECT_DUBBO_3),

    /** Dubbo Java 2.7. */
    DUBBO_2_7(Abi.DIALECT_DUBBO_2_7),

    /** dubbo-go. */
    DUBBO_GO(Abi.DIALECT_DUBBO_GO);

    private static final Dialect[] ALL = values();

    private final int number;

    Dialect(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }

    static Dialect of(int number) {
        for (Dialect one : ALL) {
            if (one.number == number) {
                return one;
            }
        }
        throw new IllegalArgumentException("no Dialect has number " + number);
    }
}
