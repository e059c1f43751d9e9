package io.byway.conform;

import static io.byway.conform.Case.same;

import io.byway.Address;
import io.byway.BywayException;
import io.byway.Compat;
import io.byway.Connected;
import io.byway.Dial;
import io.byway.DialEvent;
import io.byway.DialFailure;
import io.byway.DialOptions;
import io.byway.Engine;
import io.byway.Hooks;
import io.byway.Ip;
import io.byway.PollFd;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.Resume;
import io.byway.Route;
import io.byway.Status;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * okhttp.jsonl race: upstream's own time lines through a dial of an engine that behaves as upstream's connector. A plan is
 * a route; what its lines say is read from the dial's events, on a clock of the test's own.
 */
final class UpstreamRaceKinds implements AutoCloseable, Hooks {
    static final Map<String, Case.Run> KINDS = Map.of("okhttp/race", UpstreamRaceKinds::race);

    /** The proxy closes the first connection, and opens the tunnel on the second. */
    private static final String CHALLENGE =
            "HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"p\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

    private static final String TUNNEL = "HTTP/1.1 200 OK\r\n\r\n";

    private static final class Plan {
        final Case spec;
        final String id;

        /** Null for one that another plan's route is tried again as. */
        Route route;

        OwnNetwork.Listener listener;

        Plan(Case spec) {
            this.spec = spec;
            id = Case.shown(spec.get("id"));
        }

        boolean fromPlanner() {
            return spec.flag("from_planner", true);
        }

        boolean connectedAlready() {
            return spec.flag("already_connected");
        }

        boolean crashes() {
            return spec.text("tcp_error").startsWith("crash:");
        }

        String error() {
            String said = spec.text("tcp_error", spec.text("planning_error", spec.text("tls_error", "?")));
            return crashes() ? said.substring(6) : said;
        }

        /**
         * A route that connects, at once or when told so, or is refused; for a plan whose connect ends in another plan a
         * proxy that wants credentials on a new connection.
         */
        void makeRoute(Engine engine) {
            String ip = connectedAlready() ? "127.0.0.1" : OwnNetwork.ip(4, 1);
            listener = OwnNetwork.listen(ip, 0, !spec.has("tcp_error"));
            Proxy proxy = spec.has("tcp_next") ? new Proxy(ProxyKind.HTTP, ip, listener.port) : null;
            Address address = new Address(engine, new Address.Options("192.0.2.99", 443).tls(true));
            route = Route.of(address, proxy, Ip.parse(ip), listener.port);
        }
    }

    private static final class Attempt {
        /** By whose route, and as which plan. */
        Plan way;

        Plan as;
        int fd = -1;
        int sockets;
        boolean canceled;
        boolean won;

        /** When its connect comes to an end; null when it does not, or has. */
        Long ends;
    }

    private final Case one;
    private final Engine engine = new Engine(new Engine.Options().compat(Compat.OKHTTP_5));
    private final Map<String, Plan> plans = new LinkedHashMap<>();

    /** The plan a route is tried as. */
    private final Map<Plan, Plan> current = new HashMap<>();

    private final Map<Integer, Attempt> attempts = new TreeMap<>();
    private final Deque<Plan> opened = new ArrayDeque<>();
    private final TreeMap<Long, List<String>> lines = new TreeMap<>();
    private final OwnNetwork.Limit limit = new OwnNetwork.Limit();
    private final List<Map<String, Object>> results = new ArrayList<>();
    private final Dial dial;
    private long now;
    private int told;

    private UpstreamRaceKinds(Case one) {
        this.one = one;
        Set<String> again = new HashSet<>();
        for (Case spec : one.cases("plans")) {
            Plan plan = new Plan(spec);
            plans.put(plan.id, plan);
            current.put(plan, plan);
            for (String name : List.of("retry", "tcp_next")) {
                if (spec.has(name)) {
                    again.add(Case.shown(spec.get(name)));
                }
            }
        }
        plans.values().stream().filter(plan -> !again.contains(plan.id)).forEach(plan -> plan.makeRoute(engine));
        List<Route> routes =
                plans.values().stream().filter(Plan::fromPlanner).map(plan -> plan.route).collect(Collectors.toList());
        DialOptions options =
                new DialOptions()
                        .hooks(this)
                        .events(true)
                        .attemptDelay(Duration.ofMillis(one.integer("delay_ms", 0)))
                        .attemptTimeout(DialOptions.NONE);
        dial = Dial.over(engine, routes, options);
    }

    @Override
    public void close() {
        limit.lower(false);
        dial.close();
        for (Plan plan : plans.values()) {
            if (plan.listener != null) {
                plan.listener.close();
            }
        }
        engine.close();
    }

    private Plan planAt(Plan of, String member) {
        return of.spec.has(member) ? plans.get(Case.shown(of.spec.get(member))) : null;
    }

    private void sayAt(long at, String line) {
        lines.computeIfAbsent(at, none -> new ArrayList<>()).add(line);
    }

    private void say(Plan plan, String what) {
        sayAt(now, "plan " + plan.id + " " + what);
    }

    /** Planning fails here. What upstream does not expect, a crash, is here that the system has nothing more to give. */
    @Override
    public int openSocket(int family, int protocol, Route route) throws IOException {
        for (Plan plan : plans.values()) {
            if (plan.route == null || !OwnNetwork.sameHop(plan.route, route)) {
                continue;
            }
            opened.add(plan);
            Plan as = current.get(plan);
            limit.lower(as.crashes());
            if (as.spec.has("planning_error")) {
                throw new IOException(as.error());
            }
            return -1;
        }
        throw new Case.Fails("a socket for no plan: " + route);
    }

    @Override
    public String proxyAuth(int attempt, Route route, List<String> challenges) {
        return "Basic dTpw";
    }

    private void started(Attempt it, int fd) {
        it.way = opened.remove();
        it.as = current.get(it.way);
        it.fd = fd;
        it.ends = null;
        it.sockets++;
        if (it.sockets > 1) { // the same attempt over a new connection: what upstream calls the next plan
            it.as = planAt(it.as, "tcp_next");
        } else if (it.as.fromPlanner()) {
            sayAt(now, "take plan " + it.as.id);
        }
        if (it.as.spec.has("planning_error") || it.as.connectedAlready()) {
            return;
        }
        say(it.as, "TCP connecting...");
        if (!it.as.crashes()) {
            it.ends = now + it.as.spec.integer("tcp_delay_ms", 0);
        }
    }

    private void failed(Attempt it) {
        it.ends = null;
        if (!it.won) {
            if (!it.as.spec.has("planning_error")) {
                say(it.as, "TCP connect failed");
            }
        } else if (it.as.spec.has("tls_error")) { // the host has said so with resume
            say(it.as, "TLS connect failed");
        } else if (it.as.spec.has("tls_next")) {
            say(it.as, "needs follow-up");
        }
    }

    /** Others are cancelled because one has connected: upstream says that first. */
    private Attempt canceled(Attempt it, Attempt connected) {
        Attempt winner = connected;
        for (Attempt other : attempts.values()) {
            boolean due = other != it && !other.canceled && other.ends != null && other.ends == now;
            if (winner == null && due && !other.as.spec.flag("yields")) {
                winner = other;
                say(other.as, "TCP connected");
            }
        }
        say(it.as, "cancel");
        // Upstream's socket ends its connect when it would have ended; here it was closed at once.
        sayAt(it.ends == null ? now : Math.max(it.ends, now), "plan " + it.as.id + " TCP connect canceled");
        it.canceled = true;
        it.ends = null;
        Plan retry = planAt(it.as, "retry");
        if (retry != null) {
            current.put(it.way, retry);
        }
        return winner;
    }

    private void follow() {
        Attempt connected = null;
        for (DialEvent event = dial.nextEvent(); event != null; event = dial.nextEvent()) {
            Attempt it = attempts.computeIfAbsent(event.attempt(), none -> new Attempt());
            switch (event.kind()) {
                case START:
                    started(it, event.fd());
                    break;
                case FD_CLOSING:
                    if (it.as.spec.has("tcp_next")) {
                        say(it.as, "needs follow-up");
                    }
                    break;
                case FAILED:
                    failed(it);
                    break;
                case CANCELED:
                    connected = canceled(it, connected);
                    break;
                case WON:
                    it.won = true;
                    it.ends = null;
                    if (!it.as.connectedAlready()) {
                        if (connected != it) {
                            say(it.as, "TCP connected");
                        }
                        say(it.as, "TLS connecting...");
                    }
                    break;
                default:
                    break;
            }
        }
    }

    private Connected stepDial(List<PollFd> ready) {
        try {
            return dial.stepAt(now, ready);
        } finally {
            limit.lower(false);
            follow();
        }
    }

    /** One step in which the connects that are due are told to the dial. */
    private Connected step(boolean withYielding) {
        List<PollFd> ready = new ArrayList<>();
        List<PollFd> answers = new ArrayList<>();
        attempts.forEach(
                (number, it) -> {
                    if (it.ends != null && it.ends <= now && (withYielding || !it.as.spec.flag("yields"))) {
                        ready.add(new PollFd(number, it.fd, Libc.POLLOUT, Libc.POLLOUT));
                    }
                });
        told = ready.size();
        Connected connected = stepDial(ready);
        for (PollFd entry : ready) {
            Attempt it = attempts.get(entry.id());
            if (connected == null && it.way.spec.has("tcp_next") && it.ends != null && it.ends == now) {
                // Connected, and the request is written: the answer.
                it.ends = null;
                it.way.listener.answer(it.sockets > 1 ? TUNNEL : CHALLENGE);
                connected = stepDial(List.of(new PollFd(entry.id(), it.fd, Libc.POLLIN, Libc.POLLIN)));
            }
        }
        return connected;
    }

    /** Steps until nothing more happens at this moment; a connect that yields is told when all else is done. */
    private Connected settle() {
        Connected connected = null;
        for (told = 1; told > 0 && connected == null; ) {
            connected = step(false);
            if (connected == null && told == 0) {
                connected = step(true);
            }
        }
        return connected;
    }

    /** TLS over the connection that won, and what comes of it; true when that was the last find. */
    private boolean use(Connected connected) {
        Plan as = attempts.get(connected.attempt()).as;
        Plan next = planAt(as, "tls_next");
        boolean error = as.spec.has("tls_error");
        connected.close();
        if (!as.connectedAlready()) {
            now += as.spec.integer("tls_delay_ms", 0);
        }
        try (Connected other = dial.stepAt(now, List.of())) {
            same(other, null, "a step after the end");
        } catch (BywayException over) {
            same(over.code(), Status.E_STATE, "a step after the end");
        }
        if (!error && next == null) {
            if (!as.connectedAlready()) {
                say(as, "TLS connected");
            }
            results.add(Map.of("winner", as.spec.get("id")));
            if (results.size() == one.integer("find_calls", 1)) {
                return true;
            }
        }
        dial.resume(connected.attempt(), error ? Resume.TLS : Resume.CLOSED, next == null ? null : next.route);
        follow();
        return false;
    }

    /** What upstream throws: the first failure, the others suppressed. */
    private void endFailed() {
        List<DialFailure> failures = dial.failures();
        List<String> errors =
                failures.stream().map(failure -> attempts.get(failure.attempt()).as.error()).collect(Collectors.toList());
        Map<String, Object> result = new HashMap<>();
        result.put("error", errors.isEmpty() ? null : errors.get(0));
        result.put("suppressed", errors.isEmpty() ? errors : errors.subList(1, errors.size()));
        result.put("unchecked", failures.stream().anyMatch(failure -> failure.name().equals("FD_LIMIT")));
        results.add(result);
    }

    private void run() {
        try {
            for (int steps = 0; steps < 1000; steps++) {
                Connected connected = settle();
                if (connected != null) {
                    if (use(connected)) {
                        break;
                    }
                    continue;
                }
                OptionalLong left = dial.deadline();
                long next = left.isPresent() ? now + left.getAsLong() : Long.MAX_VALUE;
                for (Attempt it : attempts.values()) {
                    next = it.ends == null ? next : Math.min(next, it.ends);
                }
                Case.need(next < Long.MAX_VALUE, "nothing happens after " + now + " ms");
                now = Math.max(now, next);
            }
        } catch (BywayException ended) {
            endFailed();
        }
        List<Object> timeline = new ArrayList<>();
        lines.forEach((at, said) -> timeline.add(Map.of("at_ms", at, "events", said)));
        same(timeline, one.get("timeline"), "timeline");
        List<Case> wanted = one.of("expect").cases("results");
        for (int i = 0; i < results.size() && i < wanted.size(); i++) {
            // A result says what its case asks for.
            Map<String, Object> shown = new HashMap<>(results.get(i));
            shown.keySet().retainAll(wanted.get(i).members().keySet());
            results.set(i, shown);
        }
        same(results, one.of("expect").get("results"), "results");
    }

    private static void race(Case one) throws Exception {
        OwnNetwork.inside(
                () -> {
                    // A hook that throws is part of the case and nobody's news.
                    Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> {});
                    try (UpstreamRaceKinds races = new UpstreamRaceKinds(one)) {
                        races.run();
                    }
                });
    }
}
