package io.byway;

import java.time.Duration;
import java.time.Instant;

/** How a source stands. */
public final class SourceStatus {
    private final long[] fields;
    private final BywayException lastError;

    SourceStatus(long[] fields, BywayException lastError) {
        this.fields = fields;
        this.lastError = lastError;
    }

    /** What is served is kept up to date at the moment. */
    public boolean isConnected() {
        return fields[0] != 0;
    }

    /** When it was connected, or was lost; null before the first connection. */
    public Instant since() {
        return fields[1] < 0 ? null : Instant.ofEpochMilli(fields[1]);
    }

    /** Since when what is served is not known to be what the centre holds; null before the first contact. */
    public Duration age() {
        return fields[2] < 0 ? null : Duration.ofMillis(fields[2]);
    }

    /** Counts what changed. */
    public long generation() {
        return fields[3];
    }

    /** Keys, lists and other things followed. */
    public long keys() {
        return fields[4];
    }

    /** Complaints so far. */
    public long errors() {
        return fields[5];
    }

    /** The last complaint, which stays when things are right again; null for none. */
    public BywayException lastError() {
        return lastError;
    }

    @Override
    public String toString() {
        return (isConnected() ? "connected" : "away") + " since " + since() + ", age " + age() + ", keys " + keys();
    }
}
