package io.byway;

import java.time.Duration;
import java.time.Instant;

/** What a provider reported about itself. */
public final class CallReport {
    final long timeMillis;
    final double load;
    final double latencyMillis;

    /**
     * A report.
     *
     * @param time its wall clock, Dubbo's {@code curTime}
     * @param load its CPU load, on any scale all providers share
     * @param latency its own measure of the response time, Dubbo's {@code rt}
     */
    public CallReport(Instant time, double load, Duration latency) {
        timeMillis = time.toEpochMilli();
        this.load = load;
        latencyMillis = latency.getSeconds() * 1e3 + latency.getNano() / 1e6;
    }
}
