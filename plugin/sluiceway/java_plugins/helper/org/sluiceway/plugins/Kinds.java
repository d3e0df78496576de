package org.sluiceway.plugins;

import java.util.HashMap;
import java.util.Map;

/** The kinds of objects that Python can create. */
final class Kinds {
    static Map<String, Hosted.Factory> all() {
        Map<String, Hosted.Factory> kinds = new HashMap<>();
        kinds.put("connector", ConnectorObject::new);
        kinds.put("source", SourceObject::new);
        kinds.put("sink", SinkObject::new);
        kinds.put("transforms", TransformsObject::new);
        kinds.put("converter", ConverterObject::new);
        kinds.put("provider", (python, args) -> new ProviderObject(args));
        kinds.put("metrics", (python, args) -> (method, arguments, body) -> Hosted.Answer.of(LocalMetrics.values()));
        kinds.put("plugins", (python, args) -> new PluginsObject());
        return kinds;
    }

    private Kinds() {}
}
