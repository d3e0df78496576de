package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;

/** An object that Python calls by frames. All its calls come from one thread, which it has to itself. */
interface Hosted {
    /** Carries out a request. What it throws becomes an error frame. The body of the answer must stay unchanged until the next call. */
    Answer call(String method, JsonNode args, ByteBuffer body) throws Exception;

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

    /** What a hosted object can call. Any thread may. */
    interface Calls {
        /** Sends a request to the Python object and returns its result. */
        JsonNode call(String method, Object args);

        /** Returns another object of this process by its number. */
        Hosted object(int number);
    }
}
