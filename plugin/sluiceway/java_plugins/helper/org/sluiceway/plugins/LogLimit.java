package org.sluiceway.plugins;

import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import org.apache.logging.log4j.core.Appender;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.logging.log4j.core.filter.AbstractFilterable;

/**
 * Leaves out lines of the log where plugins write so many that they would fill the disk. The system property
 * {@code sluiceway.log.lines.per.second} sets the rate, and ten times as many may come at once.
 */
final class LogLimit extends AbstractFilter {
    private static final String RATE = "sluiceway.log.lines.per.second";
    private static final int BURST = 10;
    private static final long NOTE_EVERY = 10_000_000_000L;
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss,SSS");

    private final int rate;
    private double left;
    private long updated = System.nanoTime();
    private long dropped;
    private long noted = updated;

    private LogLimit(int rate) {
        this.rate = rate;
        left = (double) rate * BURST;
    }

    static void install() {
        LogLimit limit = new LogLimit(Math.max(1, Integer.getInteger(RATE, 1000)));
        for (Appender each : LoggerContext.getContext(false).getConfiguration().getAppenders().values())
            if (each instanceof AbstractFilterable filterable) filterable.addFilter(limit);
    }

    @Override
    public Result filter(LogEvent event) {
        return accepts() ? Result.NEUTRAL : Result.DENY;
    }

    private synchronized boolean accepts() {
        long now = System.nanoTime();
        left = Math.min((double) rate * BURST, left + (now - updated) * 1e-9 * rate);
        updated = now;
        if (left < 1) {
            dropped++;
            return false;
        }
        if (dropped > 0 && now - noted > NOTE_EVERY) note();
        left--;
        return true;
    }

    /** Writes to standard error itself, because an appender must not be called by its own filter. */
    private void note() {
        System.err.println("[" + LocalDateTime.now().format(TIME) + "] WARN Left out " + dropped + " lines of the log: the plugins write more than "
            + rate + " a second. Set -D" + RATE + " in sluiceway.java.opts for more. (" + LogLimit.class.getName() + ")");
        dropped = 0;
        noted = updated;
    }
}
