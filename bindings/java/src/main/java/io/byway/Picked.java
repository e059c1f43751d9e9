package io.byway;

/** The provider picked. */
public final class Picked {
    private final long[] fields;

    Picked(long[] fields) {
        this.fields = fields;
    }

    /** Its tag. */
    public long tag() {
        return fields[0];
    }

    /** For {@link Chain#pickEnd}; 0 when nothing needs to be ended. */
    public long ticket() {
        return fields[1];
    }

    /** Its row in the list. */
    public int row() {
        return (int) fields[2];
    }

    /** False when nothing better than a provider that cannot be called was left. */
    public boolean isAvailable() {
        return fields[3] != 0;
    }

    @Override
    public String toString() {
        return "Picked(" + tag() + (isAvailable() ? "" : ", unavailable") + ")";
    }
}
