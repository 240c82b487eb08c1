package urlserver.clients;

import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A daemon, started with the arguments of the URL Frontier service in Java, on loopback. */
final class Daemon implements AutoCloseable {
    /** The line that test containers of the service in Java wait for, with our address. */
    private static final Pattern STARTED =
            Pattern.compile(".*\"address\":\"127\\.0\\.0\\.1:(\\d+)\".*Started URLFrontierServer.*");

    final int port;
    private final Process process;

    /** Starts a daemon on a port, or on a free one if it is 0. Environ replaces settings. */
    Daemon(int port, Map<String, String> environ, String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(System.getenv("URLSERVER")));
        command.addAll(List.of(args));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("URLSERVER_FRONTIER_LISTEN", "127.0.0.1:" + port);
        builder.environment().putAll(environ);
        process = builder.start();
        CompletableFuture<Integer> started = new CompletableFuture<>();
        Thread reader = new Thread(() -> read(started));
        reader.setDaemon(true);
        reader.start();
        this.port = started.get(5, TimeUnit.MINUTES);
    }

    /** Reads the log to its end, so that the daemon never waits for a reader. */
    private void read(CompletableFuture<Integer> started) {
        StringBuilder log = new StringBuilder();
        try (BufferedReader lines = process.errorReader()) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                log.append(line).append('\n');
                Matcher m = STARTED.matcher(line);
                if (m.matches()) {
                    started.complete(Integer.valueOf(m.group(1)));
                }
            }
        } catch (IOException e) {
            log.append(e);
        }
        started.completeExceptionally(new AssertionError("the daemon ended: " + log));
    }

    /** Returns a channel as stock clients make it: plaintext, without credentials. */
    ManagedChannel channel() {
        return channel("127.0.0.1", port);
    }

    static ManagedChannel channel(String host, int port) {
        return ManagedChannelBuilder.forAddress(host, port).usePlaintext().build();
    }

    /** Ends the daemon without warning. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /**
     * Ends the daemon as an operator does, and returns its exit status. Process.destroy would close the pipe of its log,
     * too, and the daemon would end by SIGPIPE when it logs that it stops.
     */
    int stop() throws InterruptedException {
        process.toHandle().destroy();
        return process.waitFor();
    }

    @Override
    public void close() throws InterruptedException {
        kill();
    }
}
