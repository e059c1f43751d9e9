package io.byway.adapters;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;

/** An HTTP proxy on loopback: CONNECT, and plain requests in absolute form. It knows names of its own. */
final class LocalProxy implements AutoCloseable {
    private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<Socket> open = new CopyOnWriteArrayList<>();
    private final List<String> asked = new CopyOnWriteArrayList<>();
    private final UnaryOperator<String> names;

    /** {@code names} says where a name leads. */
    LocalProxy(UnaryOperator<String> names) throws IOException {
        this.names = names;
        start(this::accept);
    }

    int port() {
        return server.getLocalPort();
    }

    /** The request lines so far. */
    List<String> asked() {
        return asked;
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work, "local-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket client = server.accept();
                open.add(client);
                start(() -> serve(client));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void serve(Socket client) {
        try (client) {
            String head = head(client.getInputStream());
            String line = head.substring(0, head.indexOf("\r\n"));
            asked.add(line);
            String[] words = line.split(" ");
            if (words[0].equals("CONNECT")) {
                URI target = URI.create("tcp://" + words[1]);
                try (Socket origin = connect(target, 443)) {
                    write(client, "HTTP/1.1 200 Connected\r\n\r\n");
                    both(client, origin);
                }
            } else {
                URI target = URI.create(words[1]);
                try (Socket origin = connect(target, 80)) {
                    String path = target.getRawPath().isEmpty() ? "/" : target.getRawPath();
                    write(origin, words[0] + " " + path + " HTTP/1.1" + head.substring(line.length()));
                    both(client, origin);
                }
            }
        } catch (IOException ended) {
            // The client sees it.
        }
    }

    private Socket connect(URI target, int fallback) throws IOException {
        int port = target.getPort() < 0 ? fallback : target.getPort();
        Socket origin = new Socket(names.apply(target.getHost()), port);
        open.add(origin);
        return origin;
    }

    private static String head(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        while (!bytes.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
            int next = in.read();
            if (next < 0) {
                throw new IOException("the request ends in its head");
            }
            bytes.write(next);
        }
        return bytes.toString(StandardCharsets.ISO_8859_1);
    }

    private static void write(Socket to, String text) throws IOException {
        to.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    private static void both(Socket one, Socket other) throws IOException {
        start(() -> copy(other, one));
        copy(one, other);
    }

    private static void copy(Socket from, Socket to) {
        try {
            OutputStream out = to.getOutputStream();
            from.getInputStream().transferTo(out);
            to.shutdownOutput();
        } catch (IOException ended) {
            // The other side sees it.
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (Socket socket : open) {
            socket.close();
        }
    }
}
