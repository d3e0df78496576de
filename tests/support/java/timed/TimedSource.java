package test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * Reads the lines of files in turn, like timed_source.py: each file is a source partition, and a line begins with its time. Its task
 * overrides neither {@code commit} nor {@code commitRecord}; with the key {@code log} it does, and writes the calls to that file.
 */
public class TimedSource extends SourceConnector {
    private Map<String, String> config;

    @Override public void start(Map<String, String> config) { this.config = config; }
    @Override public Class<? extends Task> taskClass() { return config.containsKey("log") ? NotingTask.class : PlainTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int max) {
        List<List<String>> parts = new ArrayList<>();
        for (int i = 0; i < max; i++) parts.add(new ArrayList<>());
        try (Stream<Path> files = Files.list(Path.of(config.get("folder")))) {
            List<String> names = files.map(each -> each.getFileName().toString()).sorted().toList();
            for (int i = 0; i < names.size(); i++) parts.get(i % max).add(names.get(i));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        List<Map<String, String>> configs = new ArrayList<>();
        for (List<String> part : parts) {
            if (part.isEmpty()) continue;
            Map<String, String> each = new HashMap<>(config);
            each.put("files", String.join(",", part));
            configs.add(each);
        }
        return configs;
    }
    @Override public void stop() {}
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }
    @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) { return ExactlyOnceSupport.SUPPORTED; }

    /** The runtime may poll it ahead. */
    public static class PlainTask extends SourceTask {
        Map<String, String> config;
        private final Deque<SourceRecord> records = new ArrayDeque<>();

        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> config) {
            this.config = config;
            List<Map<String, String>> partitions = new ArrayList<>();
            for (String file : config.get("files").split(",")) partitions.add(Map.of("file", file));
            Map<Map<String, String>, Map<String, Object>> stored = context.offsetStorageReader().offsets(partitions);
            List<List<String>> files = new ArrayList<>();
            List<Integer> starts = new ArrayList<>();
            for (Map<String, String> each : partitions) {
                files.add(lines(each.get("file")));
                starts.add(stored.get(each) == null ? 0 : ((Long) stored.get(each).get("line")).intValue());
            }
            int longest = files.stream().mapToInt(List::size).max().orElse(0);
            for (int number = 0; number < longest; number++) {
                for (int i = 0; i < files.size(); i++) {
                    int at = starts.get(i) + number;
                    if (at < files.get(i).size()) records.add(record(partitions.get(i), at, files.get(i).get(at)));
                }
            }
        }
        private List<String> lines(String file) {
            try {
                return Files.readAllLines(Path.of(config.get("folder"), file));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        private SourceRecord record(Map<String, String> partition, int at, String line) {
            Long time = line.startsWith("-") ? null : Long.valueOf(line.split(" ")[0]);
            return new SourceRecord(partition, Map.of("line", (long) at + 1), config.get("topic"), null, null, null, Schema.STRING_SCHEMA, line, time);
        }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(10);
            List<SourceRecord> polled = new ArrayList<>();
            while (polled.size() < Integer.parseInt(config.get("batch")) && !records.isEmpty()) polled.add(records.poll());
            return polled.isEmpty() ? null : polled;
        }
        @Override public void stop() {}
    }

    public static class NotingTask extends PlainTask {
        @Override public void commit() { note("commit"); }
        @Override public void commitRecord(SourceRecord record, RecordMetadata metadata) { note((String) record.value()); }
        private synchronized void note(String line) {
            try {
                Files.writeString(Path.of(config.get("log")), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
