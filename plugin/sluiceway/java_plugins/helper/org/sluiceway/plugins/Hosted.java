package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;

/** An object that Python calls by frames. All its calls come from one thread, which it has to itself. */
interface Hosted {
    /** Carries out a request. What it throws becomes an error frame. The body of the answer must stay unchanged until the next call. */
    Answer call(String method, JsonNode args, ByteBuffer body) throws Exception;

    /** Called after each answer was written, to prepare the next one while Python handles this one. Must not throw. */
    default void answered() {}

    /** JSON and bytes for Python. */
    record Answer(Object header, ByteBuffer body) {
        static final Answer NONE = new Answer(null, null);

        static Answer of(Object header) {
            return new Answer(header, null);
        }
    }

    /** Creates an object of one kind; runs on the object's thread. */
    interface Factory {
        Hosted create(Calls python, JsonNode args) throws Exception;
    }

    /** Requests of a hosted object to its Python object. Any thread may call. */
    interface Calls {
        JsonNode call(String method, Object args);
    }
}
