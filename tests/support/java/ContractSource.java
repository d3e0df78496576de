package test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * Reads numbers from a queue, which is a file with the next one. Its kinds of tasks rely on what Kafka Connect promises source tasks.
 * The key {@code kind} is the task's class; {@code log} is a file with the calls: start, "took" the numbers that poll returned,
 * "record" with a number, commit, stop.
 */
public class ContractSource extends SourceConnector {
    private Map<String, String> config;

    @Override public void start(Map<String, String> config) { this.config = config; }
    @Override public Class<? extends Task> taskClass() {
        try {
            return Class.forName("test.ContractSource$" + config.get("kind")).asSubclass(Task.class);
        } catch (ClassNotFoundException error) {
            throw new IllegalArgumentException(error);
        }
    }
    @Override public List<Map<String, String>> taskConfigs(int max) { return List.of(config); }
    @Override public void stop() {}
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }
    @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) { return ExactlyOnceSupport.SUPPORTED; }

    /** Forgets what it has read, as a queue with automatic acknowledgement does. */
    public static class Draining extends SourceTask {
        static final int BATCH = 10;
        Map<String, String> config;
        private int batches;

        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> config) {
            this.config = config;
            note("start");
        }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            rest();
            long first = next();
            next(first + BATCH);
            return taken(first);
        }
        @Override public void stop() { note("stop"); }

        /** Waits before a batch; with {@code block} for minutes after some, until it is interrupted. */
        void rest() throws InterruptedException {
            boolean blocks = ++batches % 4 == 0 && config.containsKey("block");
            if (!blocks) {
                Thread.sleep(20);
                return;
            }
            note("waits");
            try {
                Thread.sleep(600_000);
            } catch (InterruptedException wanted) {
                note("interrupted");
            }
        }

        List<SourceRecord> taken(long first) {
            List<SourceRecord> records = new ArrayList<>();
            for (long n = first; n < first + BATCH; n++) records.add(record(n));
            note("took " + first);
            return records;
        }
        SourceRecord record(long n) { return new SourceRecord(null, null, config.get("topic"), Schema.STRING_SCHEMA, Long.toString(n)); }
        long next() {
            try {
                Path queue = Path.of(config.get("queue"));
                return Files.exists(queue) ? Long.parseLong(Files.readString(queue)) : 0;
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        void next(long number) {
            try {
                Path queue = Path.of(config.get("queue"));
                Path written = Files.writeString(queue.resolveSibling(queue.getFileName() + ".new"), Long.toString(number));
                Files.move(written, queue, StandardCopyOption.ATOMIC_MOVE); // a kill must not leave half of it
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        synchronized void note(String line) {
            try {
                Files.writeString(Path.of(config.get("log")), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** Reads from its offset on; the runtime may poll ahead. */
    public static class Reading extends Draining {
        private long next;

        @Override public void start(Map<String, String> config) {
            super.start(config);
            Map<String, Object> stored = context.offsetStorageReader().offset(Map.of("queue", "1"));
            next = stored == null ? 0 : (Long) stored.get("next");
        }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            rest();
            List<SourceRecord> records = taken(next);
            next += BATCH;
            return records;
        }
        @Override SourceRecord record(long n) {
            return new SourceRecord(Map.of("queue", "1"), Map.of("next", n + 1), config.get("topic"), Schema.STRING_SCHEMA, Long.toString(n));
        }
    }

    /** Removes numbers from the queue when Kafka has them, and does not read on before: {@code poll} waits for it. */
    public static class Acknowledging extends Draining {
        long first;
        private int left;

        @Override public List<SourceRecord> poll() throws InterruptedException {
            synchronized (this) {
                while (left > 0) await();
                left = BATCH;
                first = next();
            }
            return taken(first);
        }
        void await() throws InterruptedException { wait(); }
        synchronized boolean acknowledged() { return left == 0; }

        @Override public synchronized void commitRecord(SourceRecord record, RecordMetadata metadata) {
            note("record " + record.value());
            if (--left == 0) {
                next(first + BATCH);
                notifyAll();
            }
        }
        @Override public void commit() { note("commit"); }
    }

    /** Waits for a limited time, as sources of IBM MQ do. */
    public static class Limited extends Acknowledging {
        @Override void await() throws InterruptedException {
            wait(20_000);
            if (!acknowledged()) throw new IllegalStateException("not acknowledged within 20 s");
        }
    }

    /** Waits in {@code poll} until a commit of the last batch. */
    public static class Committing extends Acknowledging {
        private boolean committed = true;

        @Override public List<SourceRecord> poll() throws InterruptedException {
            synchronized (this) {
                while (!committed) wait();
                committed = false;
            }
            return super.poll();
        }
        @Override public synchronized void commit() {
            super.commit();
            if (acknowledged()) {
                committed = true;
                notifyAll();
            }
        }
    }

    /** Sets the next offset in {@code commit}, and has nothing to return before. */
    public static class OffsetInCommit extends Acknowledging {
        private boolean committed = true;

        @Override public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(20);
            synchronized (this) {
                if (!committed) return null;
                committed = false;
            }
            return super.poll();
        }
        @Override public synchronized void commit() {
            super.commit();
            committed |= acknowledged();
        }
    }

    /** Reads in a thread of its own, which goes on after Kafka has the last batch. */
    public static class Threaded extends Acknowledging {
        private final BlockingQueue<List<SourceRecord>> batches = new ArrayBlockingQueue<>(1);
        private Thread reader;

        @Override public void start(Map<String, String> config) {
            super.start(config);
            reader = new Thread(() -> {
                try {
                    while (true) batches.put(super.poll());
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                }
            });
            reader.setDaemon(true);
            reader.start();
        }
        @Override List<SourceRecord> taken(long first) {
            List<SourceRecord> records = new ArrayList<>();
            for (long n = first; n < first + BATCH; n++) records.add(record(n));
            return records;
        }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            List<SourceRecord> batch = batches.poll(100, TimeUnit.MILLISECONDS);
            if (batch != null) note("took " + batch.get(0).value());
            return batch;
        }
        @Override public void stop() {
            reader.interrupt();
            super.stop();
        }
    }

    /** Throws exceptions, which Kafka Connect logs. */
    public static class Throwing extends Acknowledging {
        @Override public synchronized void commitRecord(SourceRecord record, RecordMetadata metadata) {
            super.commitRecord(record, metadata);
            throw new IllegalStateException("the queue is gone");
        }
        @Override public void commit() {
            super.commit();
            throw new IllegalStateException("the queue is gone");
        }
    }
}
