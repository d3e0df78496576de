package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;

/** The kinds of objects that Python can create. */
final class Kinds {
    static Map<String, Hosted.Factory> all() {
        Map<String, Hosted.Factory> kinds = new HashMap<>();
        kinds.put("connector", ConnectorObject::new);
        kinds.put("source", SourceObject::new);
        kinds.put("sentRecords", (python, args) -> source(python, args).sentRecords());
        kinds.put("offsetCommits", (python, args) -> source(python, args).offsetCommits());
        kinds.put("sink", SinkObject::new);
        kinds.put("transforms", TransformsObject::new);
        kinds.put("converter", ConverterObject::new);
        kinds.put("provider", (python, args) -> new ProviderObject(args));
        kinds.put("metrics", (python, args) -> (method, arguments, body) -> Hosted.Answer.of(LocalMetrics.values()));
        kinds.put("plugins", (python, args) -> new PluginsObject());
        return kinds;
    }

    private static SourceObject source(Hosted.Calls python, JsonNode args) {
        return (SourceObject) python.object(args.get("task").asInt());
    }

    private Kinds() {}
}
