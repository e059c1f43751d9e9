package io.byway;

import java.net.InetAddress;
import java.util.List;

/** One HTTPS or SVCB record (RFC 9460). Routes carry it on to the host; byway connects by the address records. */
public final class Service {
    private String target = "";
    private int priority = 1;
    private int port;
    private List<String> alpn = List.of();
    private byte[] ech = {};
    private List<InetAddress> hints = List.of();

    /** Target name; empty means the name that was asked. */
    public Service target(String target) {
        this.target = target;
        return this;
    }

    /** SvcPriority, lower is preferred. */
    public Service priority(int priority) {
        this.priority = within(priority, "service.priority");
        return this;
    }

    /** Port, 0 when the record has none. */
    public Service port(int port) {
        this.port = within(port, "service.port");
        return this;
    }

    /** ALPN ids in order. */
    public Service alpn(List<String> alpn) {
        this.alpn = List.copyOf(alpn);
        return this;
    }

    /** Encrypted ClientHello configuration list. */
    public Service ech(byte[] ech) {
        this.ech = ech.clone();
        return this;
    }

    /** Address hints. */
    public Service hints(List<InetAddress> hints) {
        this.hints = List.copyOf(hints);
        return this;
    }

    /** Target name. */
    public String target() {
        return target;
    }

    /** SvcPriority. */
    public int priority() {
        return priority;
    }

    /** Port, 0 for none. */
    public int port() {
        return port;
    }

    /** ALPN ids in order. */
    public List<String> alpn() {
        return alpn;
    }

    /** Encrypted ClientHello configuration list, empty when there is none. */
    public byte[] ech() {
        return ech.clone();
    }

    /** Address hints. */
    public List<InetAddress> hints() {
        return hints;
    }

    byte[] echBytes() {
        return ech;
    }

    private static int within(int number, String parameter) {
        if (number < 0 || number > 65535) {
            throw Errors.of(Abi.E_ARGUMENT, "0 to 65535 are possible, not " + number, parameter);
        }
        return number;
    }
}
