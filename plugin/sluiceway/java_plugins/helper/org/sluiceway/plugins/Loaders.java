package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.MalformedURLException;
import java.net.URL;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoader;

/**
 * Connect's class loaders of plugins, one for each location of plugin.path. A reference to a plugin is
 * {@code {"class": ..., "location": ..., "jars": [...]}}; without a location it is on the class path.
 */
final class Loaders {
    private static final Map<String, ClassLoader> BY_LOCATION = new HashMap<>();

    static synchronized ClassLoader of(JsonNode plugin) throws MalformedURLException {
        if (!plugin.hasNonNull("location")) return Loaders.class.getClassLoader();
        String location = plugin.get("location").asText();
        ClassLoader known = BY_LOCATION.get(location);
        if (known != null) return known;
        URL[] jars = new URL[plugin.path("jars").size()];
        for (int i = 0; i < jars.length; i++) jars[i] = Path.of(plugin.get("jars").get(i).asText()).toUri().toURL();
        ClassLoader loader = new PluginClassLoader(Path.of(location).toUri().toURL(), jars, Loaders.class.getClassLoader());
        BY_LOCATION.put(location, loader);
        return loader;
    }

    /** Makes a plugin's loader the calling thread's context class loader, as plugins expect, and returns a new instance of it. */
    static <T> T create(JsonNode plugin, Class<T> type) throws Exception {
        ClassLoader loader = of(plugin);
        Thread.currentThread().setContextClassLoader(loader);
        String name = plugin.get("class").asText();
        Object created;
        try {
            created = Utils.newInstance(Class.forName(name, true, loader));
        } catch (ClassNotFoundException error) {
            throw error;
        } catch (Throwable error) {
            throw new ConnectException("Instantiation error of " + name + ": " + root(error), error);
        }
        return type.cast(created);
    }

    /** Returns the error at the end of a chain of causes. */
    static Throwable root(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        return cause;
    }

    /** Returns a JSON object of texts as a map; null stays null. */
    static Map<String, String> texts(JsonNode object) {
        Map<String, String> texts = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> each : object.properties())
            texts.put(each.getKey(), each.getValue().isNull() ? null : each.getValue().asText());
        return texts;
    }

    private Loaders() {}
}
