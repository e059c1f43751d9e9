import io.byway.Address;
import io.byway.Connected;
import io.byway.Dial;
import io.byway.DialFailure;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import io.byway.Route;
import io.byway.Selection;
import io.byway.Selector;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A tour of connection routing in Java, on local sockets: names of one's own, an address where nobody listens, a proxy that
 * is down and one that works, what is remembered of it, and the explanation of all that.
 *
 * <pre>java -cp bindings/java/target/byway-0.1.0.jar examples/Tour.java</pre>
 */
public final class Tour {
    private Tour() {}

    /** Answers every connection like a small server, which is also a proxy. */
    private static ServerSocket serve(ExecutorService threads, String host) throws IOException {
        ServerSocket server = new ServerSocket(0, 16, InetAddress.getByName(host));
        threads.execute(
                () -> {
                    while (true) {
                        try (Socket socket = server.accept()) {
                            BufferedReader in =
                                    new BufferedReader(
                                            new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
                            for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {}
                            socket.getOutputStream()
                                    .write("HTTP/1.1 200 OK\r\n\r\nhello\n".getBytes(StandardCharsets.UTF_8));
                        } catch (IOException closed) {
                            return;
                        }
                    }
                });
        return server;
    }

    private static String get(Socket socket) throws IOException {
        socket.getOutputStream().write("GET / HTTP/1.1\r\nHost: web.example\r\n\r\n".getBytes(StandardCharsets.UTF_8));
        BufferedReader in =
                new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        String last = "";
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            last = line;
        }
        return last;
    }

    public static void main(String[] arguments) throws IOException {
        ExecutorService threads =
                Executors.newCachedThreadPool(
                        work -> {
                            Thread thread = new Thread(work);
                            thread.setDaemon(true);
                            return thread;
                        });
        // One per client; remembers what failed, is used from every thread.
        try (ServerSocket web = serve(threads, "127.0.0.1");
                Engine engine = new Engine()) {
            int port = web.getLocalPort();
            Dns dns = Dns.hosts(engine, "127.0.0.2 web.example\n127.0.0.1 web.example\n");
            Address address = new Address(engine, new Address.Options("web.example", port).dns(dns));

            System.out.println("A connection: nobody listens on the first address.");
            try (Dial dial = new Dial(address);
                    Connected connected = dial.run(Duration.ofSeconds(20))) {
                for (DialFailure failure : dial.failures()) {
                    System.out.println("    " + failure);
                }
                Route route = connected.route();
                try (Socket socket = connected.socket()) {
                    System.out.println("    " + get(socket) + " over " + route);
                }
            }

            System.out.println("The next selection knows which address failed:");
            for (Selection selection : new Selector(address)) {
                System.out.println("    " + selection.routes());
            }

            System.out.println("Proxies: one is down, the other is chosen next.");
            int down;
            try (ServerSocket gone = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
                down = gone.getLocalPort();
            }
            List<Proxy> proxies =
                    List.of(
                            new Proxy(ProxyKind.HTTP, "127.0.0.1", down), new Proxy(ProxyKind.HTTP, "127.0.0.1", port));
            ProxySelector chooser = new ProxySelector(engine, uri -> proxies);
            Address through =
                    new Address(engine, new Address.Options("origin.example", 443).tls(true).proxySelector(chooser));
            try (Dial dial = new Dial(through);
                    Connected connected = dial.run(Duration.ofSeconds(20))) {
                System.out.println("    connected through " + connected.route().proxy());
            }

            System.out.println("And why:");
            try (Selector selector = new Selector(through)) {
                selector.next();
                System.out.println(selector.explain());
            }
        }
    }
}
