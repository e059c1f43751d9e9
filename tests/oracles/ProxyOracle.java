import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import sun.net.SocksProxy;

/** Answers of the JDK's own selector: a line is `name=value` pairs and a URL, separated by tabs; SOCKS4 is said of
 * an old one. For the JDK's internal class this is run with {@code --add-exports java.base/sun.net=ALL-UNNAMED}. */
public class ProxyOracle {
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            List<String> names = new ArrayList<>();
            for (int i = 0; i + 1 < parts.length; i++) {
                int at = parts[i].indexOf('=');
                if (at < 0) continue;
                names.add(parts[i].substring(0, at));
                System.setProperty(parts[i].substring(0, at), parts[i].substring(at + 1));
            }
            String answer;
            try {
                Proxy proxy = ProxySelector.getDefault().select(new URI(parts[parts.length - 1])).get(0);
                InetSocketAddress place = (InetSocketAddress) proxy.address();
                boolean four = proxy instanceof SocksProxy && ((SocksProxy) proxy).protocolVersion() == 4;
                answer = proxy.type() == Proxy.Type.DIRECT ? "DIRECT"
                    : proxy.type() + (four ? "4 " : " ") + place.getHostString() + ":" + place.getPort();
            } catch (Exception error) {
                answer = error.getClass().getSimpleName();
            }
            for (String name : names) System.clearProperty(name);
            out.println(answer);
        }
        out.flush();
    }
}
