/**
 * byway is a route engine. It answers two questions: where do I connect next ({@link io.byway.Selector}), and which
 * provider serves this call ({@link io.byway.Chain})?
 *
 * <pre>{@code
 * Engine engine = new Engine();
 * Dns dns = new Dns(engine, host -> List.of(InetAddress.getByName("192.0.2.1")));
 * Address address = new Address(engine, new Address.Options("a.example", 443).tls(true).dns(dns));
 * try (Selector selector = new Selector(address)) {
 *     for (Selection selection : selector) {
 *         for (Route route : selection) {
 *             // connect to route.hopAddress(), then engine.connected(route) or
 *             engine.connectFailed(route, Failure.REFUSED);
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p>Objects that own something of the library are {@link java.lang.AutoCloseable}; what is not closed goes with the
 * garbage collector. Failures are {@link io.byway.BywayException}s.
 */
package io.byway;
