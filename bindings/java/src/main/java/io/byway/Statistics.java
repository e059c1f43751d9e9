package io.byway;

/** Figures of an engine. */
public final class Statistics {
    private final long[] numbers;

    Statistics(long[] numbers) {
        this.numbers = numbers;
    }

    /** Routes postponed now. */
    public long postponed() {
        return numbers[0];
    }

    /** Records of the route database, including those whose postponement is over but not yet forgotten. */
    public long databaseRecords() {
        return numbers[1];
    }

    /** Failures that wait for their selector's success. */
    public long databasePending() {
        return numbers[2];
    }

    /** Times the network changed. */
    public long networkGeneration() {
        return numbers[3];
    }

    /** Operations that wait for something now. */
    public long waiting() {
        return numbers[4];
    }

    @Override
    public String toString() {
        return "Statistics[postponed=" + postponed() + ", databaseRecords=" + databaseRecords() + ", databasePending="
                + databasePending() + ", networkGeneration=" + networkGeneration() + ", waiting=" + waiting() + "]";
    }
}
