package io.byway.conform;

import com.google.gson.JsonElement;
import io.byway.Address;
import io.byway.Compat;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.Failure;
import io.byway.Ip;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The vocabulary of okhttp.jsonl: its addresses, proxies, failures and versions as byway's. */
final class OkHttpWords {
    private static final Map<String, Failure> WHOLE =
            Map.ofEntries(
                    Map.entry("plain_io", Failure.IO),
                    Map.entry("refused", Failure.REFUSED),
                    Map.entry("connection_shutdown", Failure.CONNECTION_SHUTDOWN),
                    Map.entry("file_not_found", Failure.REQUEST_BODY),
                    Map.entry("protocol", Failure.PROTOCOL),
                    Map.entry("interrupted_io", Failure.INTERRUPTED),
                    Map.entry("socket_timeout", Failure.TIMEOUT),
                    Map.entry("timeout", Failure.TIMEOUT),
                    Map.entry("tls_handshake_cert_cause", Failure.TLS_CERTIFICATE),
                    Map.entry("tls_handshake_other", Failure.TLS_HANDSHAKE),
                    Map.entry("tls_peer_unverified", Failure.TLS_PEER_UNVERIFIED),
                    Map.entry("tls_other", Failure.TLS),
                    Map.entry("stream_reset_refused", Failure.STREAM_REFUSED),
                    Map.entry("stream_reset_cancel", Failure.STREAM_CANCELED),
                    Map.entry("stream_reset_other", Failure.STREAM_RESET),
                    Map.entry("unknown_host", Failure.UNKNOWN_HOST),
                    Map.entry("http_code_407_without_http_proxy", Failure.AUTH_WITHOUT_PROXY),
                    Map.entry("unreachable", Failure.UNREACHABLE));

    /** In this order: the first part found decides. */
    private static final List<Map.Entry<String, Failure>> PARTS =
            List.of(
                    Map.entry("lost the race", Failure.CANCELED),
                    Map.entry("407", Failure.PROXY_AUTH),
                    Map.entry("certificate", Failure.TLS_CERTIFICATE),
                    Map.entry("handshake", Failure.TLS_HANDSHAKE),
                    Map.entry("tls", Failure.TLS_HANDSHAKE),
                    Map.entry("timeout", Failure.TIMEOUT));

    private OkHttpWords() {}

    /** The failure a name of the cases stands for. */
    static Failure failure(String name) {
        if (name == null) {
            return Failure.IO;
        }
        Failure whole = WHOLE.get(name);
        if (whole != null) {
            return whole;
        }
        return PARTS.stream().filter(part -> name.contains(part.getKey())).map(Map.Entry::getValue).findFirst()
                .orElse(Failure.IO);
    }

    /** The line of OkHttp a case is about. */
    static Compat line(Case one) {
        return one.text("line").startsWith("3") ? Compat.OKHTTP_3 : Compat.OKHTTP_5;
    }

    /** {@code {"type": "HTTP", "host": ..., "ip": ..., "port": ...}}; null for DIRECT and null. */
    static Proxy proxy(Case proxy) {
        String type = proxy.text("type", "DIRECT");
        if (type.equals("DIRECT")) {
            return null;
        }
        ProxyKind kind = type.equals("SOCKS") ? ProxyKind.SOCKS5H : ProxyKind.HTTP;
        int port = proxy.integer("port", 0);
        return proxy.get("ip") == null
                ? new Proxy(kind, proxy.text("host"), port)
                : new Proxy(kind, proxy.text("host"), Ip.parse(proxy.text("ip")), port);
    }

    /** {@code {"scheme": ..., "host": ..., "port": ..., "protocols": [...]}}. */
    static Address address(Engine engine, Case address, Case explicitProxy, Dns dns, ProxySelector chooser) {
        return new Address(
                engine,
                new Address.Options(address.text("host"), address.integer("port", 0))
                        .scheme(address.text("scheme", "http"))
                        .direct(explicitProxy.text("type").equals("DIRECT"))
                        .proxy(proxy(explicitProxy))
                        .dns(dns)
                        .proxySelector(chooser)
                        .protocols(address.texts("protocols")));
    }

    static List<InetAddress> ips(List<JsonElement> texts) {
        List<InetAddress> addresses = new ArrayList<>();
        for (JsonElement text : texts) {
            addresses.add(Ip.parse(text.getAsString()));
        }
        return addresses;
    }

    /** Text of an address, null for none. */
    static String text(InetAddress address) {
        return address == null ? null : Ip.text(address);
    }

    static List<String> texts(Iterable<InetAddress> addresses) {
        List<String> texts = new ArrayList<>();
        addresses.forEach(address -> texts.add(text(address)));
        return texts;
    }
}
