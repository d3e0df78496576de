package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads and writes the frames of the pipe. A frame is, little endian: the length of the rest (int), kind (byte), id (int), length
 * of the header (int), the header (JSON) and the body (the rest). Each side numbers its own requests; an answer has its request's id.
 */
final class Frames {
    static final byte REQUEST = 1;
    static final byte ANSWER = 2;
    static final byte ERROR = 3;
    static final ObjectMapper JSON = new ObjectMapper();
    private static final int FIXED = 9;

    record Frame(byte kind, int id, JsonNode header, ByteBuffer body) {}

    private final DataInputStream in;
    private final FileOutputStream out; // its channel would close for ever if a plugin's thread were interrupted while it writes
    private final byte[] chunk = new byte[1 << 16];

    Frames(InputStream in, FileOutputStream out) {
        this.in = new DataInputStream(in);
        this.out = out;
    }

    /** Returns the next frame, or null at the end of the input. For one thread. */
    Frame read() throws IOException {
        int length;
        try {
            length = Integer.reverseBytes(in.readInt());
        } catch (EOFException end) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        ByteBuffer frame = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        byte kind = frame.get();
        int id = frame.getInt();
        int header = frame.getInt();
        JsonNode json = JSON.readTree(bytes, FIXED, header);
        frame.position(FIXED + header);
        return new Frame(kind, id, json, frame.slice().order(ByteOrder.LITTLE_ENDIAN));
    }

    /** Writes a frame. Thread-safe. */
    void write(byte kind, int id, Object header, ByteBuffer body) throws IOException {
        byte[] json = JSON.writeValueAsBytes(header);
        ByteBuffer head = ByteBuffer.allocate(4 + FIXED + json.length).order(ByteOrder.LITTLE_ENDIAN);
        int size = body == null ? 0 : body.remaining();
        head.putInt(FIXED + json.length + size).put(kind).putInt(id).putInt(json.length).put(json).flip();
        synchronized (out) {
            out.write(head.array(), 0, head.limit());
            while (body != null && body.hasRemaining()) {
                int count = Math.min(chunk.length, body.remaining());
                body.get(chunk, 0, count);
                out.write(chunk, 0, count);
            }
        }
    }
}
