package io.byway.conform;

import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.byway.Address;
import io.byway.BywayException;
import io.byway.CapPolicy;
import io.byway.Connected;
import io.byway.Dial;
import io.byway.DialEvent;
import io.byway.DialOptions;
import io.byway.Dns;
import io.byway.DnsRequest;
import io.byway.Engine;
import io.byway.Hooks;
import io.byway.Ip;
import io.byway.OnFailure;
import io.byway.PollFd;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.RaceUntil;
import io.byway.Resume;
import io.byway.Route;
import io.byway.Selector;
import io.byway.Status;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Collectors;

/**
 * A race through {@link Dial} on a clock of the test's own. Sockets are real, in a network of their own; what happened on
 * one is told to the dial at the moment the case says, so a connect "takes" as long as it should.
 */
final class RaceWorld implements AutoCloseable, Hooks {
    private static final int HOST_PORT = 443;
    private static final Map<String, String> FAULTS =
            Map.of("TIMEOUT_ATTEMPT", "timeout", "TIMEOUT_READY", "handshake_timeout", "TLS_FAILED", "tls_failed");

    /** Where a route's connect goes: something that answers as the case says, if not when. */
    static final class Way {
        final Case spec;
        final OwnNetwork.Listener listener;
        final Route route;
        int tries;

        Way(Case spec, OwnNetwork.Listener listener, Route route) {
            this.spec = spec;
            this.listener = listener;
            this.route = route;
        }

        String id() {
            return spec.text("id");
        }

        private Case as(String name) {
            return tries > 1 && spec.of("retry").has(name) ? spec.of("retry") : spec;
        }

        String outcome() {
            return as("outcome").text("outcome", "ok");
        }

        long after() {
            return as("after_ms").integer("after_ms", 0);
        }

        boolean atOnce() {
            return as("sync").flag("sync");
        }

        /** The proxy's answer, which is there when the dial is told so. */
        void reply() {
            String outcome = spec.of("ready").text("outcome", "ok");
            String status = outcome.startsWith("tunnel_status:") ? outcome.substring(14) + " no" : "200 OK";
            listener.answer(outcome.startsWith("socks") ? "" : "HTTP/1.1 " + status + "\r\n\r\n");
        }
    }

    /** Something that happens on an attempt's socket. */
    private static final class Due {
        final long at;
        final int attempt;
        final Way way;
        final boolean answered;

        Due(long at, int attempt, Way way, boolean answered) {
            this.at = at;
            this.attempt = attempt;
            this.way = way;
            this.answered = answered;
        }
    }

    /** One answer of the resolver: the addresses of a family, and when they come. */
    private static final class Answer {
        final long at;
        final int family;
        final List<InetAddress> ips = new ArrayList<>();

        Answer(long at, int family) {
            this.at = at;
            this.family = family;
        }
    }

    final Engine engine;
    final List<Way> ways = new ArrayList<>();
    Dial dial;

    private final Case one;
    private final Case options;
    private final OwnNetwork.Limit limit = new OwnNetwork.Limit();
    private final List<Due> events = new ArrayList<>();
    private final Deque<Way> opened = new ArrayDeque<>();
    private final Map<Integer, Way> wayOf = new HashMap<>();
    private final Map<Integer, Integer> fdOf = new HashMap<>();
    private final List<Answer> answers = new ArrayList<>();
    private final List<Route> routes;

    /** Asked, and not answered yet. */
    private DnsRequest request;

    private Address host;
    private Selector selector;

    RaceWorld(Case one) {
        this.one = one;
        options = one.of("options");
        engine = new Engine(new Engine.Options().commitOnSuccess(options.text("commit_failures").equals("on_success")));
        // By its resolver's answers; or because what is remembered of failures hangs on the selector routes have in common.
        if (one.has("dns") || options.has("commit_failures")) {
            makeHost();
        } else {
            one.cases("routes").forEach(this::makeWay);
        }
        routes = ways.stream().map(way -> way.route).collect(Collectors.toList());
        for (Case resume : one.cases("resume")) {
            if (resume.has("follow_up")) {
                makeWay(resume.of("follow_up"));
            }
        }
    }

    @Override
    public void close() {
        limit.lower(false);
        if (dial != null) {
            dial.close();
        }
        ways.forEach(way -> way.listener.close());
        engine.close();
    }

    private void makeWay(Case spec) {
        String outcome = spec.text("outcome", "ok");
        boolean works = outcome.equals("ok") || outcome.equals("pending");
        boolean sync = spec.flag("sync");
        if (spec.of("retry").text("outcome").equals("ok")) {
            works = true;
            sync = false;
        }
        String own = OwnNetwork.ip(4, 1);
        String ip = !sync ? own : works ? "127.0.0.1" : OwnNetwork.NOWHERE;
        OwnNetwork.Listener listener = OwnNetwork.listen(sync && works ? "127.0.0.1" : own, 0, works);
        Address.Options where = new Address.Options(ip, listener.port);
        if (spec.get("ready") != null && !options.text("race_until", "tcp").equals("tcp")) {
            where = new Address.Options("192.0.2.99", 443).proxy(new Proxy(ProxyKind.HTTP, ip, listener.port));
        }
        Route route;
        try (Selector only = new Selector(new Address(engine, where.tls(true)))) {
            route = only.next(Duration.ZERO).get(0);
        }
        ways.add(new Way(spec, listener, route));
    }

    private void makeHost() {
        Dns dns = Dns.answering(engine, this::lookup);
        host = new Address(engine, new Address.Options("race.example", HOST_PORT).tls(true).dns(dns));
        List<Case> given = one.cases("dns");
        if (given.isEmpty()) {
            JsonObject alone = new JsonObject();
            alone.addProperty("at_ms", 0);
            alone.addProperty("family", "v4");
            alone.add("routes", one.get("routes"));
            given = List.of(new Case(alone));
        }
        for (Case answer : given) {
            Answer made = new Answer(answer.integer("at_ms", 0), answer.text("family").equals("v4") ? 4 : 6);
            for (Case spec : answer.cases("routes")) {
                String outcome = spec.text("outcome", "ok");
                String ip = OwnNetwork.ip(made.family, ways.size() + 1);
                InetAddress hop = Ip.parse(ip);
                boolean works = outcome.equals("ok") || outcome.equals("pending");
                made.ips.add(hop);
                Route route = Route.of(host, null, hop, HOST_PORT);
                ways.add(new Way(spec, OwnNetwork.listen(ip, HOST_PORT, works), route));
            }
            answers.add(made);
        }
        selector = new Selector(host, new Selector.Options().early(true));
    }

    private void lookup(DnsRequest asked) {
        asked.later();
        request = asked;
    }

    /** Gives the first answer that is due, so that a step sees each of them come. */
    private void give(long now) {
        Answer due = answers.stream().filter(answer -> answer.at <= now).findFirst().orElse(null);
        if (request == null || due == null) {
            return;
        }
        answers.remove(due);
        if (!due.ips.isEmpty()) {
            request.add(due.ips);
        }
        request.familyDone(due.family);
        if (answers.isEmpty()) {
            request.finish();
            request = null;
        }
    }

    private OptionalLong nextAnswer() {
        return answers.stream().mapToLong(answer -> answer.at).min();
    }

    @Override
    public int openSocket(int family, int protocol, Route route) {
        for (Way way : ways) {
            if (OwnNetwork.sameHop(way.route, route)) {
                way.tries++;
                opened.add(way);
                limit.lower(way.outcome().equals("fd_limit"));
                return -1;
            }
        }
        throw new Case.Fails("a socket for no route: " + route);
    }

    /** What the dial did in a step: new attempts get their end, dialogues their answer. */
    private void follow(long now) {
        for (DialEvent event = dial.nextEvent(); event != null; event = dial.nextEvent()) {
            int attempt = event.attempt();
            switch (event.kind()) {
                case START:
                    Way started = opened.remove();
                    wayOf.put(attempt, started);
                    fdOf.put(attempt, event.fd());
                    if (event.fd() >= 0 && !started.atOnce() && !started.outcome().equals("pending")) {
                        events.add(new Due(now + started.after(), attempt, started, false));
                    }
                    break;
                case HANDSHAKE:
                    Way way = wayOf.get(attempt);
                    Case ready = way.spec.of("ready");
                    if (!ready.text("outcome", "ok").equals("pending")) {
                        events.add(new Due(now + ready.integer("after_ms", 0), attempt, way, true));
                    }
                    break;
                case FD_CLOSING:
                    events.removeIf(due -> due.attempt == attempt);
                    break;
                default:
                    break;
            }
        }
    }

    private List<PollFd> due(long now) {
        List<PollFd> ready = new ArrayList<>();
        for (Due due : events) {
            if (due.at <= now) {
                if (due.answered) {
                    due.way.reply();
                }
                short bits = due.answered ? Libc.POLLIN : Libc.POLLOUT;
                ready.add(new PollFd(due.attempt, fdOf.get(due.attempt), bits, bits));
            }
        }
        events.removeIf(due -> due.at <= now);
        return ready;
    }

    private Connected step(long now, List<PollFd> ready) {
        try {
            return dial.stepAt(now, ready);
        } finally {
            limit.lower(false);
            follow(now);
        }
    }

    /** A step after the socket was taken: there is no other one to take. */
    private void passTime(long now) {
        try (Connected other = dial.stepAt(now, List.of())) {
            same(other, null, "a step after the end");
        } catch (BywayException error) {
            same(error.code(), Status.E_STATE, "a step after the end");
        }
    }

    private Duration millis(String name) {
        return Duration.ofMillis(options.integer(name, 0));
    }

    private Dial made() {
        String failure = options.text("on_failure");
        int most = options.integer("max_in_flight", 0);
        DialOptions dialing =
                new DialOptions()
                        .hooks(this)
                        .events(true)
                        .nextOnRefusal(options.text("tunnel_refusal").equals("next"))
                        .maxInFlight(most == 0 ? -1 : most)
                        .capPolicy(options.text("cap_policy").equals("wait") ? CapPolicy.WAIT : CapPolicy.DROP_OLDEST)
                        .onFailure(
                                failure.equals("immediate")
                                        ? OnFailure.IMMEDIATE
                                        : failure.equals("latest") ? OnFailure.LATEST : OnFailure.WHEN_IDLE)
                        .raceUntil(options.text("race_until").equals("ready") ? RaceUntil.READY : RaceUntil.TCP)
                        .firstFamilyCount(options.integer("first_family_count", 0))
                        .attemptDelay(millis("attempt_delay_ms"))
                        .resolutionDelay(millis("resolution_delay_ms"))
                        .attemptTimeout(millis("attempt_timeout_ms"))
                        .readyTimeout(millis("ready_timeout_ms"))
                        .overallTimeout(millis("overall_timeout_ms"))
                        .readyExtend(millis("ready_extend_ms"));
        return selector != null ? Dial.over(engine, selector, dialing) : Dial.over(engine, routes, dialing);
    }

    private static Long earlier(Long one, long other) {
        return one == null || other < one ? Long.valueOf(other) : one;
    }

    /** When something happens next, null when nothing does before a deadline of the dial's. */
    private Long upcoming(long now, int cancelAt) {
        Long next = null;
        for (Due due : events) {
            next = earlier(next, due.at);
        }
        if (nextAnswer().isPresent() && nextAnswer().getAsLong() > now) {
            next = earlier(next, nextAnswer().getAsLong());
        }
        return cancelAt > now ? earlier(next, cancelAt) : next;
    }

    /** The case's time line: how it ended, the deadlines that were named on the way, and the dial's waterfall. */
    Map<String, Object> race() {
        Map<String, Object> got = new HashMap<>();
        List<Object> deadlines = new ArrayList<>();
        List<Object> handoffs = new ArrayList<>();
        Deque<Case> resumes = new ArrayDeque<>(one.cases("resume"));
        int cancelAt = one.integer("cancel_at_ms", -1);
        long now = 0;
        dial = made();
        try {
            for (int steps = 0; steps < 1000; steps++) {
                List<PollFd> ready = due(now);
                if (cancelAt >= 0 && cancelAt <= now) {
                    dial.cancel();
                }
                give(now);
                Connected connected = step(now, ready);
                if (connected == null && request != null && nextAnswer().orElse(now + 1) <= now) {
                    continue; // the next answer of this moment
                }
                if (connected != null) {
                    got.put("result", "connected");
                    handoffs.add(List.of(wayOf.get(connected.attempt()).id(), now));
                    connected.close();
                    if (resumes.isEmpty()) {
                        got.put("winner", wayOf.get(connected.attempt()).id());
                        break;
                    }
                    Case resume = resumes.remove();
                    now += resume.integer("after_ms", 0);
                    passTime(now);
                    Route followUp = resume.has("follow_up") ? ways.get(routes.size()).route : null;
                    dial.resume(connected.attempt(), Resume.TLS, followUp);
                    follow(now);
                    continue;
                }
                Long next = upcoming(now, cancelAt);
                if (next != null && next <= now) {
                    continue;
                }
                OptionalLong left = dial.deadline();
                Long deadline = left.isPresent() ? Long.valueOf(now + left.getAsLong()) : null;
                List<Object> named = new ArrayList<>(List.of(now));
                named.add(deadline);
                deadlines.add(named);
                if (next == null && deadline == null) {
                    throw new Case.Fails("nothing happens after " + now + " ms");
                }
                now = deadline == null ? next : earlier(next, deadline);
            }
        } catch (BywayException.Canceled ended) {
            got.put("result", "canceled");
        } catch (BywayException.Timeout ended) {
            got.put("result", "timeout");
        } catch (BywayException ended) {
            got.put("result", "failed");
        }
        got.put("at_ms", now);
        got.put("deadlines", deadlines);
        got.put("handoffs", handoffs);
        readWaterfall(got);
        return got;
    }

    private void readWaterfall(Map<String, Object> got) {
        Map<String, List<List<Object>>> lists = new LinkedHashMap<>();
        for (String name : List.of("starts", "failed", "canceled", "dropped", "local_errors")) {
            lists.put(name, new ArrayList<>());
        }
        JsonObject told = JsonParser.parseString(dial.explainJson()).getAsJsonObject();
        JsonArray attempts = told.has("attempts") ? told.getAsJsonArray("attempts") : new JsonArray();
        attempts.forEach(attempt -> readAttempt(new Case(attempt.getAsJsonObject()), lists, got));
        lists.forEach(
                (name, entries) -> {
                    // By the time of their end, equal times in order of start.
                    if (!name.equals("starts")) {
                        entries.sort(Comparator.comparingLong(entry -> (Long) entry.get(entry.size() - 1)));
                    }
                    got.put(name, entries);
                });
    }

    private void readAttempt(Case attempt, Map<String, List<List<Object>>> lists, Map<String, Object> got) {
        Way way = wayOf.get(attempt.integer("attempt", 0));
        long ended = attempt.integer("ended_ms", 0);
        String fault = attempt.text("fault");
        if (!(fault.equals("FD_LIMIT") && way.tries > 1)) {
            lists.get("starts").add(List.of(way.id(), attempt.integer("started_ms", 0)));
        }
        if (attempt.text("outcome").equals("canceled")) {
            boolean oldest = attempt.text("reason").startsWith("oldest");
            lists.get(oldest ? "dropped" : "canceled").add(List.of(way.id(), ended));
        } else if (attempt.text("outcome").equals("failed")) {
            String why = way.spec.text("outcome", "ok");
            if (why.equals("ok")) {
                why = way.spec.of("ready").text("outcome", "ok");
            }
            why = FAULTS.getOrDefault(fault, why);
            if (why.startsWith("tunnel_status") && !got.containsKey("error")) {
                got.put("error", why);
            } else {
                boolean local = fault.equals("FD_LIMIT") || fault.equals("NO_LOCAL_ROUTE");
                lists.get(local ? "local_errors" : "failed").add(List.of(way.id(), why, ended));
            }
        }
    }
}
