package test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;

/** Connectors that fail, each in a way of its own. */
public class BadSources extends SourceConnector {
    @Override public void start(Map<String, String> config) {}
    @Override public Class<? extends Task> taskClass() { return ScriptedSource.ScriptedTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int max) { return List.of(Map.of()); }
    @Override public void stop() {}
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }

    public static class ConstructorThrows extends BadSources {
        public ConstructorThrows() { throw new IllegalStateException("no license"); }
    }

    public static class StaticBlockThrows extends BadSources {
        static { if (true) throw new IllegalStateException("no native library"); }
    }

    /** The tests remove the class that it needs from the jar. */
    public static class NeedsMissing extends BadSources {
        private final Missing missing = new Missing();
    }

    public static class Missing {}

    public static class Exits extends BadSources {
        @Override public Config validate(Map<String, String> config) { System.exit(4); return null; }
    }

    public static class Overflows extends BadSources {
        @Override public Config validate(Map<String, String> config) { return validate(config); }
    }

    public static class FillsMemory extends BadSources {
        @Override public Config validate(Map<String, String> config) {
            List<byte[]> heap = new ArrayList<>();
            while (true) heap.add(new byte[1 << 20]);
        }
    }

    public static class Hangs extends BadSources {
        @Override public Config validate(Map<String, String> config) {
            while (true) try { Thread.sleep(1000); } catch (InterruptedException ignored) { }
        }
    }

    public static class TaskConstructorHangs extends BadSources {
        @Override public Class<? extends Task> taskClass() { return HangingTask.class; }
    }

    public static class HangingTask extends ScriptedSource.ScriptedTask {
        public HangingTask() { while (true) try { Thread.sleep(1000); } catch (InterruptedException ignored) { } }
    }

    public static class ThrowingTask extends ScriptedSource.ScriptedTask {
        public ThrowingTask() { throw new IllegalStateException("no license"); }
    }
}
