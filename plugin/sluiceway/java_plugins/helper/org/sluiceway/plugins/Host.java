package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedInputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.slf4j.MDC;
import sun.misc.Signal;

/** The process that runs Java plugins for a Python process. It reads requests from its input and ends with it. */
public final class Host {
    private static final int LONGEST_TRACE = 60_000;
    private static final int FAILED = 1;
    private static final int OUT_OF_MEMORY = 53; // as in host.py
    private static final Map<String, Hosted.Factory> KINDS = Kinds.all();

    private final Frames frames;
    private final Map<Integer, Worker> workers = new ConcurrentHashMap<>();
    private final Map<Integer, CompletableFuture<JsonNode>> calls = new ConcurrentHashMap<>();
    private final AtomicInteger lastCall = new AtomicInteger();

    private Host(Frames frames) {
        this.frames = frames;
    }

    /** The argument is the file to write frames to. */
    public static void main(String[] arguments) throws IOException {
        InputStream in = new BufferedInputStream(new FileInputStream(FileDescriptor.in), 1 << 16);
        Frames frames = new Frames(in, new FileOutputStream(arguments[0]));
        System.setIn(InputStream.nullInputStream());
        ignoreRequestsToEnd();
        int code = FAILED;
        try {
            LogLimit.install();
            new Host(frames).serve();
            code = 0;
        } catch (OutOfMemoryError error) {
            code = OUT_OF_MEMORY;
        } catch (Throwable error) {
            error.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(code); // shutdown hooks of plugins may hang
        }
    }

    /** A service manager asks all processes of a service to end. This one ends after Python, which stops the plugins first. */
    private static void ignoreRequestsToEnd() {
        for (String each : List.of("TERM", "INT", "HUP")) {
            try {
                Signal.handle(new Signal(each), signal -> {}); // programs that plugins start do not inherit a handler
            } catch (IllegalArgumentException reserved) { // by -Xrs in sluiceway.java.opts
                return;
            }
        }
    }

    private void serve() throws IOException {
        for (Frames.Frame frame = frames.read(); frame != null; frame = frames.read()) {
            if (frame.kind() == Frames.REQUEST) request(frame);
            else if (frame.kind() == Frames.ANSWER) calls.remove(frame.id()).complete(frame.header());
            else calls.remove(frame.id()).completeExceptionally(new ConnectException(frame.header().path("message").asText()));
        }
    }

    /** Passes a request to its object's thread. Only what must not wait for that thread is done here. */
    private void request(Frames.Frame frame) throws IOException {
        JsonNode args = frame.header();
        int object = args.path("object").asInt();
        Worker worker = workers.get(object);
        switch (args.path("method").asText()) {
            case "new" -> {
                worker = new Worker(object, args);
                workers.put(object, worker);
                worker.requests.add(frame);
                worker.start();
            }
            case "interrupt" -> {
                if (worker != null) worker.interrupt();
                frames.write(Frames.ANSWER, frame.id(), null, null);
            }
            case "levels" -> {
                for (Map.Entry<String, JsonNode> each : args.path("args").properties())
                    Configurator.setLevel(each.getKey(), Level.toLevel(each.getValue().asText(), Level.INFO));
                frames.write(Frames.ANSWER, frame.id(), null, null);
            }
            default -> {
                if (worker == null) fail(frame.id(), new IllegalStateException("There is no object " + object));
                else worker.requests.add(frame);
            }
        }
    }

    private void fail(int id, Throwable error) {
        try {
            frames.write(Frames.ERROR, id, describe(error), null);
        } catch (Throwable again) { // without an answer Python would wait forever
            Runtime.getRuntime().halt(again instanceof OutOfMemoryError ? OUT_OF_MEMORY : FAILED);
        }
    }

    /** Describes an error for Python: its class, the names of its superclasses, message and stack trace. */
    static Map<String, Object> describe(Throwable error) {
        List<String> classes = new ArrayList<>();
        for (Class<?> each = error.getClass(); each != Object.class; each = each.getSuperclass()) classes.add(each.getName());
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace));
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("classes", classes);
        described.put("message", error.getMessage());
        described.put("trace", trace.getBuffer().substring(0, Math.min(trace.getBuffer().length(), LONGEST_TRACE)));
        return described;
    }

    private JsonNode callPython(int object, String method, Object args) {
        int id = lastCall.incrementAndGet();
        CompletableFuture<JsonNode> answer = new CompletableFuture<>();
        calls.put(id, answer);
        Map<String, Object> header = new LinkedHashMap<>();
        header.put("object", object);
        header.put("method", method);
        header.put("args", args);
        try {
            frames.write(Frames.REQUEST, id, header, null);
            return answer.get();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new ConnectException("Interrupted while waiting for " + method, interrupted);
        } catch (IOException | ExecutionException error) {
            Throwable cause = error.getCause();
            throw cause instanceof ConnectException known ? known : new ConnectException(error);
        }
    }

    /** The thread of one object. */
    private final class Worker extends Thread implements Hosted.Calls {
        private final LinkedBlockingQueue<Frames.Frame> requests = new LinkedBlockingQueue<>();
        private final int object;
        private final String context;
        private volatile Hosted hosted;

        Worker(int object, JsonNode args) {
            super(args.path("thread").asText("object-" + object));
            setDaemon(true);
            this.object = object;
            this.context = args.path("context").asText("");
        }

        @Override
        public void run() {
            MDC.put("connector.context", context);
            while (true) {
                Frames.Frame frame;
                try {
                    frame = requests.take();
                } catch (InterruptedException late) { // meant for a call that has returned meanwhile
                    continue;
                }
                String method = frame.header().path("method").asText();
                try {
                    Hosted.Answer answer = answer(method, frame);
                    frames.write(Frames.ANSWER, frame.id(), answer.header(), answer.body());
                } catch (Throwable error) { // a plugin may throw anything; Python decides what follows
                    fail(frame.id(), error);
                }
                if (method.equals("delete")) return;
            }
        }

        @Override
        public JsonNode call(String method, Object args) {
            return callPython(object, method, args);
        }

        @Override
        public Hosted object(int number) {
            return workers.get(number).hosted;
        }

        private Hosted.Answer answer(String method, Frames.Frame frame) throws Exception {
            JsonNode args = frame.header().path("args");
            if (method.equals("new")) {
                Hosted.Factory factory = KINDS.get(frame.header().path("kind").asText());
                hosted = factory.create(this, args);
                return Hosted.Answer.NONE;
            }
            if (method.equals("delete")) {
                workers.remove(object);
                return Hosted.Answer.NONE;
            }
            return hosted.call(method, args, frame.body());
        }
    }
}
