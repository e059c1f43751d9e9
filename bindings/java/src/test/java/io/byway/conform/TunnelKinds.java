package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import io.byway.Address;
import io.byway.BywayException;
import io.byway.Compat;
import io.byway.Connected;
import io.byway.Dial;
import io.byway.DialFailure;
import io.byway.DialOptions;
import io.byway.Engine;
import io.byway.Hooks;
import io.byway.Ip;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.Route;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * okhttp.jsonl connect_tunnel: upstream's tunnels through a dial of an engine that behaves as upstream's connector, and a
 * proxy that answers in whole pieces; Rust and C cut its answers at every place.
 */
final class TunnelKinds {
    static final Map<String, Case.Run> KINDS = Map.of("okhttp/connect_tunnel", TunnelKinds::run);

    private static final String CHALLENGE = "Proxy-Authenticate: Basic realm=\"p\"\r\n";

    private TunnelKinds() {}

    /** What the proxy says, and whether it closes behind it. */
    private static final class Reply {
        final String text;
        final boolean closes;

        Reply(String text, boolean closes) {
            this.text = text;
            this.closes = closes;
        }
    }

    /** {@code 407 keep-alive}, {@code 407 close x21}, {@code 200 followed by 5 stray bytes}... */
    private static List<Reply> replies(Case one) {
        List<Reply> all = new ArrayList<>();
        for (String phrase : one.texts("replies")) {
            Matcher parts = Pattern.compile("(.*?)(?: x(\\d+))?").matcher(phrase);
            need(parts.matches(), phrase);
            String what = parts.group(1);
            String head = "HTTP/1.1 " + what.split(" ")[0] + " x\r\n";
            String text;
            if (what.contains("keep-alive")) {
                text = head + CHALLENGE + "Content-Length: 0\r\n\r\n";
            } else if (what.endsWith(" close")) {
                text = head + CHALLENGE + "Connection: close\r\nContent-Length: 0\r\n\r\n";
            } else if (what.contains("stray bytes")) {
                text = head + "\r\nstray";
            } else if (what.contains("Content-Length 5")) {
                text = head + "Content-Length: 5\r\n\r\nabc";
            } else {
                need(!what.contains(" "), "cannot read " + phrase);
                text = head + "\r\n";
            }
            int times = parts.group(2) == null ? 1 : Integer.parseInt(parts.group(2));
            for (int i = 0; i < times; i++) {
                all.add(new Reply(text, what.contains("then closed")));
            }
        }
        return all;
    }

    /** The proxy: a reply for each request, on as many connections as come. */
    private static final class Server extends Thread {
        final ServerSocket listener;
        final List<Reply> replies;
        int requests;
        int connections;
        String asked;

        Server(List<Reply> replies) throws IOException {
            listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
            this.replies = new ArrayList<>(replies);
        }

        @Override
        public void run() {
            while (true) {
                try (Socket socket = listener.accept()) {
                    socket.setTcpNoDelay(true);
                    connections++;
                    while (hear(socket.getInputStream())) {
                        requests++;
                        if (replies.isEmpty()) {
                            break;
                        }
                        Reply reply = replies.remove(0);
                        socket.getOutputStream().write(reply.text.getBytes(StandardCharsets.ISO_8859_1));
                        if (reply.closes) {
                            break;
                        }
                    }
                } catch (IOException over) {
                    if (listener.isClosed()) {
                        return;
                    }
                }
            }
        }

        /** Reads one request; false at the end of the connection. */
        private boolean hear(InputStream in) throws IOException {
            StringBuilder head = new StringBuilder();
            while (head.indexOf("\r\n\r\n") < 0) {
                int next = in.read();
                if (next < 0) {
                    return false;
                }
                head.append((char) next);
            }
            asked = head.substring(0, head.indexOf("\r\n"));
            return true;
        }
    }

    private static final Map<String, String> MESSAGES = new HashMap<>();

    static {
        MESSAGES.put("CONNECT_AUTH_REQUIRED", "Failed to authenticate with proxy");
        MESSAGES.put("EARLY_DATA", "TLS tunnel buffered too many bytes!");
        MESSAGES.put("CONNECT_AUTH_LOOP", "Too many tunnel connections attempted: 21");
        for (String name : List.of("PROXY_CLOSED", "TRUNCATED", "UNEXPECTED_END")) {
            MESSAGES.put(name, "unexpected end of stream");
        }
    }

    private static void run(Case one) throws Exception {
        Server server = new Server(replies(one));
        server.start();
        DialFailure failure = null;
        Hooks hooks =
                new Hooks() {
                    @Override
                    public String proxyAuth(int attempt, Route route, List<String> challenges) {
                        return one.flag("credentials") && !challenges.isEmpty() ? "Basic dXNlcjpwYXNz" : null;
                    }
                };
        int port = server.listener.getLocalPort();
        try (Engine engine = new Engine(new Engine.Options().compat(Compat.OKHTTP_5))) {
            Address address = new Address(engine, new Address.Options("o.example", 443).tls(true));
            Route route =
                    Route.of(address, new Proxy(ProxyKind.HTTP, "127.0.0.1", port), Ip.parse("127.0.0.1"), port);
            try (Dial dial = Dial.over(engine, List.of(route), new DialOptions().hooks(hooks))) {
                try (Connected connected = dial.run()) {
                    need(connected != null, "no socket");
                } catch (BywayException refused) {
                    failure = dial.failures().get(0);
                }
            }
        } finally {
            server.listener.close();
            server.join();
        }
        Map<String, Object> got = new HashMap<>();
        got.put("result", failure == null ? "tunnel" : "error");
        got.put("connects", server.requests);
        got.put("tcp_connections", server.connections);
        same(server.asked, "CONNECT o.example:443 HTTP/1.1", "request");
        if (failure != null) {
            boolean status = failure.name().equals("CONNECT_STATUS");
            got.put("error", failure.name().equals("CONNECT_AUTH_LOOP") ? "protocol" : "io");
            got.put(
                    "message",
                    status
                            ? "Unexpected response code for CONNECT: " + failure.number()
                            : MESSAGES.getOrDefault(failure.name(), failure.name()));
        }
        one.of("expect").members().forEach((name, want) -> same(got.get(name), want, name));
    }
}
