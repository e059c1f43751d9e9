package io.byway.adapters;

import io.byway.Address;
import io.byway.BywayException;
import io.byway.Engine;
import io.byway.Route;
import io.byway.Selection;
import io.byway.Selector;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import okhttp3.Dns;

/**
 * An OkHttp client's names come from byway: its resolvers, its static tables, its cache, its address filter.
 *
 * <pre>{@code
 * new OkHttpClient.Builder().dns(new BywayDns(engine, io.byway.Dns.hosts(engine, "192.0.2.1 a.example")))
 * }</pre>
 *
 * Needs OkHttp 4 or 5 on the class path. Usable from every thread.
 */
public final class BywayDns implements Dns {
    /** Any: a lookup does not depend on it. */
    private static final int PORT = 443;

    private final Engine engine;
    private final io.byway.Dns dns;
    private final Duration timeout;

    /**
     * Names as this resolver has them, in its order; OkHttp 5 interleaves the families itself.
     *
     * @param dns null for the system's resolver, on byway's own bounded threads
     */
    public BywayDns(Engine engine, io.byway.Dns dns) {
        this(engine, dns, null);
    }

    /**
     * The same with a limit.
     *
     * @param timeout how long one name may take; null for the engine's default
     */
    public BywayDns(Engine engine, io.byway.Dns dns, Duration timeout) {
        this.engine = Objects.requireNonNull(engine, "engine");
        this.dns = dns;
        this.timeout = timeout;
    }

    /** OkHttp's resolver as one of byway's. What it throws is the cause of what the caller sees. */
    public static io.byway.Dns adapt(Engine engine, Dns dns) {
        Objects.requireNonNull(dns, "dns");
        return new io.byway.Dns(
                engine,
                host -> {
                    List<InetAddress> found = dns.lookup(host);
                    if (found == null) {
                        throw new UnknownHostException(host + ": the resolver returned null");
                    }
                    return found;
                });
    }

    @Override
    public List<InetAddress> lookup(String hostname) throws UnknownHostException {
        try (Address address =
                        new Address(engine, new Address.Options(hostname, PORT).direct(true).dns(dns));
                Selector selector = new Selector(address)) {
            List<InetAddress> found = new ArrayList<>();
            for (Selection next = selector.next(timeout); next != null; next = selector.next(timeout)) {
                for (Route route : next) {
                    found.add(route.hop());
                }
            }
            return found;
        } catch (BywayException refused) {
            UnknownHostException told = new UnknownHostException(hostname + ": " + refused.getMessage());
            told.initCause(refused);
            throw told;
        }
    }
}
