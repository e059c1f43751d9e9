package io.byway.conform;

import static io.byway.conform.Case.need;

import io.byway.Address;
import io.byway.BywayException;
import io.byway.Dial;
import io.byway.DialOptions;
import io.byway.Engine;
import io.byway.Ip;
import io.byway.Route;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A network of the test's own, in which nothing happens but what the test does. */
final class OwnNetwork {
    /** No route leads there. */
    static final String NOWHERE = "203.0.113.1";

    private static final int OWN_IPV6 = 15;
    private static final int SIOCSIFFLAGS = 0x8914;
    private static final int SIOCSIFADDR = 0x8916;
    private static final int IFF_UP_AND_RUNNING = 0x1 | 0x40;
    private static final int IFREQ = 40;
    private static final int IFREQ_NAME = 16;

    private OwnNetwork() {}

    /** What happens in the network. */
    @FunctionalInterface
    interface Test {
        void run() throws Exception;
    }

    /** A socket at an address, and its port. */
    static final class Listener {
        final int fd;
        final int port;

        Listener(int fd, int port) {
            this.fd = fd;
            this.port = port;
        }

        /** Takes the connection that is there, reads what it said, answers, and ends. */
        void answer(String said) {
            int accepted = Libc.accept(fd, null, null);
            need(accepted >= 0, "no connection");
            need(Libc.read(accepted, new byte[2048], 2048) > 0, "the dial says nothing to the proxy");
            byte[] bytes = said.getBytes(StandardCharsets.ISO_8859_1);
            need(Libc.write(accepted, bytes, bytes.length) == bytes.length, "no answer");
            Libc.shutdown(accepted, Libc.SHUT_WR);
            Libc.close(accepted);
        }

        void close() {
            Libc.close(fd);
        }
    }

    /** How many descriptors this process may have: as many as ever, or none but those that are there. */
    static final class Limit {
        private final long[] usual = new long[2];
        private boolean low;

        Limit() {
            need(Libc.getrlimit(Libc.RLIMIT_NOFILE, usual) == 0, "no limit of descriptors");
        }

        void lower(boolean on) {
            if (on != low) {
                int done = Libc.setrlimit(Libc.RLIMIT_NOFILE, new long[] {on ? 3 : usual[0], usual[1]});
                need(done == 0, "the limit of descriptors cannot be set");
                low = on;
            }
        }
    }

    /** Address {@code number} of family 4 or 6 in that network. */
    static String ip(int family, int number) {
        return family == 4 ? "192.0.2." + number : "2001:db8::" + Integer.toHexString(number);
    }

    /**
     * Runs a test on a thread in a network of its own: loopback up, 192.0.2.0/24 and some addresses of 2001:db8::/64 this
     * machine's without being loopback addresses. What it throws is thrown here.
     */
    static void inside(Test test) throws Exception {
        Throwable[] thrown = new Throwable[1];
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                if (!made()) {
                                    throw new Case.Skips("network namespaces are not allowed here");
                                }
                                loadAll();
                                test.run();
                            } catch (Throwable why) { // told by the thread that asked
                                thrown[0] = why;
                            }
                        });
        thread.start();
        thread.join();
        if (thrown[0] instanceof Error) {
            throw (Error) thrown[0];
        }
        if (thrown[0] != null) {
            throw (Exception) thrown[0];
        }
    }

    /** A dial that fails, and whose classes are there from here on: without descriptors none can be loaded. */
    private static void loadAll() {
        Listener listener = listen(ip(4, 1), 0, false);
        try (Engine engine = new Engine()) {
            Address address = new Address(engine, new Address.Options(ip(4, 1), listener.port));
            Route route = Route.of(address, null, Ip.parse(ip(4, 1)), listener.port);
            try (Dial dial = Dial.over(engine, List.of(route), new DialOptions().events(true))) {
                dial.run().close();
                throw new Case.Fails("a socket that does not listen is connected to");
            } catch (BywayException.Connect refused) {
                need(refused.causes().size() == 1, refused.toString());
            }
        } finally {
            listener.close();
        }
    }

    private static ByteBuffer buffer(int size) {
        return ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
    }

    private static ByteBuffer request(String name) {
        ByteBuffer request = buffer(IFREQ);
        request.put(name.getBytes(StandardCharsets.US_ASCII)).position(IFREQ_NAME);
        return request;
    }

    private static byte[] socketAddress(InetAddress ip, int port) {
        boolean six = ip.getAddress().length == 16;
        ByteBuffer at = buffer(six ? 28 : 16).putShort((short) (six ? Libc.AF_INET6 : Libc.AF_INET));
        at.put((byte) (port >> 8)).put((byte) port);
        if (six) {
            at.putInt(0);
        }
        return at.put(ip.getAddress()).array();
    }

    /** For the calling thread alone; false where that is not allowed. */
    private static boolean made() throws InterruptedException {
        if (Libc.unshare(Libc.CLONE_NEWNET) != 0) {
            return false;
        }
        int four = Libc.socket(Libc.AF_INET, Libc.SOCK_DGRAM, 0);
        byte[] up = request("lo").putShort((short) IFF_UP_AND_RUNNING).array();
        byte[] address = request("lo:1").put(socketAddress(Ip.parse(ip(4, 1)), 0)).array();
        boolean good = Libc.ioctl(four, SIOCSIFFLAGS, up) == 0 && Libc.ioctl(four, SIOCSIFADDR, address) == 0;
        Libc.close(four);
        int six = Libc.socket(Libc.AF_INET6, Libc.SOCK_DGRAM, 0);
        for (int i = 1; i <= OWN_IPV6 && good; i++) {
            ByteBuffer own = buffer(24).put(Ip.parse(ip(6, i)).getAddress()).putInt(128).putInt(Libc.if_nametoindex("lo"));
            good = Libc.ioctl(six, SIOCSIFADDR, own.array()) == 0;
        }
        Libc.close(six);
        for (int i = 1; i <= OWN_IPV6 && good; i++) {
            waitUntilUsable(Ip.parse(ip(6, i)));
        }
        return good;
    }

    /** Until the kernel has found out that nobody else has this address: before that no socket gets it. */
    private static void waitUntilUsable(InetAddress ip) throws InterruptedException {
        byte[] at = socketAddress(ip, 0);
        int fd = Libc.socket(Libc.AF_INET6, Libc.SOCK_DGRAM, 0);
        while (Libc.bind(fd, at, at.length) != 0) {
            Thread.sleep(1);
        }
        Libc.close(fd);
    }

    /** A socket at this address, port 0 is any, that takes connections if {@code works}. */
    static Listener listen(String ip, int port, boolean works) {
        byte[] at = socketAddress(Ip.parse(ip), port);
        int fd = Libc.socket(at.length == 28 ? Libc.AF_INET6 : Libc.AF_INET, Libc.SOCK_STREAM, 0);
        need(
                Libc.setsockopt(fd, Libc.SOL_SOCKET, Libc.SO_REUSEADDR, new int[] {1}, 4) == 0
                        && Libc.bind(fd, at, at.length) == 0
                        && (!works || Libc.listen(fd, 8) == 0)
                        && Libc.getsockname(fd, at, new int[] {at.length}) == 0,
                "no listener at " + ip);
        return new Listener(fd, (at[2] & 0xff) << 8 | at[3] & 0xff);
    }

    /** Whether two routes connect to the same place. */
    static boolean sameHop(Route one, Route other) {
        return one.hopPort() == other.hopPort() && one.hop().equals(other.hop());
    }
}
