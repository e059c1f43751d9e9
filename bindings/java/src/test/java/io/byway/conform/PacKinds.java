package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.byway.BywayException;
import io.byway.Dns;
import io.byway.DnsRequest;
import io.byway.Engine;
import io.byway.Ip;
import io.byway.Library;
import io.byway.PacOptions;
import io.byway.Proxy;
import io.byway.ProxySelector;
import io.byway.Status;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Proxy scripts: helpers, arguments, answers, limits. An expression is put into a script whose answer shows its value. */
final class PacKinds {
    static final Map<String, Case.Run> KINDS =
            Library.hasFeature("script")
                    ? Map.of(
                            "proxy/pac", PacKinds::pac,
                            "proxy/pac_string", PacKinds::pacString,
                            "bugs/pac", PacKinds::reported)
                    : Map.of();

    /** Ample, so that a busy machine changes no answer; cases about time bring their own. */
    private static final Duration AMPLE = Duration.ofSeconds(60);

    private static final String PLAIN_URL = "http://example.com/";

    private static final Map<String, Integer> STATUSES =
            Map.of(
                    "pac_timeout", Status.E_TIMEOUT,
                    "pac_memory", Status.E_LIMIT,
                    "pac_script_failed", Status.E_PAC);

    private final Engine engine;
    private final Map<String, String> names = new LinkedHashMap<>();
    private final List<InetAddress> own = new ArrayList<>();
    private final List<Object> asked = new ArrayList<>();
    private final Dns dns;
    private final boolean browsers;
    private final Duration timeLimit;

    /** An engine whose clock and names are the case's; {@code browsers}: what scripts in the wild rely on. */
    private PacKinds(Case given, String now, boolean browsers, Duration timeLimit) {
        long moment = now == null ? 0 : Instant.parse(now).toEpochMilli();
        engine = new Engine(new Engine.Options().wallMillis(() -> moment));
        // Where a case says in words that every lookup fails, there are no names.
        given.of("dns").members().forEach((name, ip) -> names.put(name, ip.getAsString()));
        String mine = names.remove("myIpAddress");
        if (mine != null) {
            own.add(Ip.parse(mine));
        }
        given.texts("local_addresses").forEach(ip -> own.add(Ip.parse(ip)));
        this.browsers = browsers;
        this.timeLimit = timeLimit;
        dns = Dns.answering(engine, this::lookup);
    }

    private void lookup(DnsRequest request) throws UnknownHostException {
        String host = request.host();
        asked.add(host);
        boolean found = false;
        for (Map.Entry<String, String> name : names.entrySet()) {
            String pattern = name.getKey();
            if (pattern.startsWith("*") ? host.endsWith(pattern.substring(1)) : host.equals(pattern)) {
                request.add(Ip.parse(name.getValue()));
                found = true;
            }
        }
        if (!found) {
            throw new UnknownHostException("no such name");
        }
    }

    private ProxySelector selector(String script) {
        return ProxySelector.pac(
                engine,
                new PacOptions()
                        .url("pac")
                        .source(script)
                        .dns(dns)
                        .myAddresses(own)
                        .timeLimit(timeLimit)
                        .utcOffset(ZoneOffset.UTC)
                        .emptyIsDirect(browsers)
                        .browserCalendar(browsers),
                null);
    }

    private List<Proxy> ask(ProxySelector selector, String url) {
        return engine.proxiesForUrl(selector, url, null, Duration.ofSeconds(120));
    }

    /** The value of an expression of {@code url} and {@code host}, as JSON shows it. */
    private JsonElement value(String expression, String url) {
        String script =
                "function FindProxyForURL(url, host) { return 'DIRECT;' + JSON.stringify([" + expression + "]); }";
        String told = engine.explainProxiesForUrl(selector(script), url, null, Duration.ofSeconds(120));
        String answer =
                JsonParser.parseString(told).getAsJsonObject().getAsJsonObject("script").get("answer").getAsString();
        return JsonParser.parseString(answer.substring(answer.indexOf(';') + 1)).getAsJsonArray().get(0);
    }

    private static void pac(Case one) {
        Case given = one.of("input");
        Case expect = one.of("expect");
        switch (given.text("op")) {
            case "helper":
                helper(given, expect);
                break;
            case "helper_resolver_sees":
                resolverSees(given, expect);
                break;
            case "arguments":
                arguments(given, expect);
                break;
            case "find":
                find(given, expect);
                break;
            case "alert":
                throw new Case.Skips("what a script logs");
            default:
                throw new Case.Fails("no operation " + given.text("op"));
        }
    }

    private static void helper(Case given, Case expect) {
        if (Case.isText(given.get("dns")) && given.text("expr").contains("myIpAddress")) {
            throw new Case.Skips("a machine without addresses");
        }
        PacKinds world = new PacKinds(given, given.text("now", null), true, AMPLE);
        try (Engine ends = world.engine) {
            JsonElement got;
            try {
                got = world.value(given.text("expr"), PLAIN_URL);
            } catch (BywayException error) {
                boolean thrown = expect.flag("throws") && error.code() == Status.E_PAC;
                need(thrown, error + ", want " + Case.shown(expect.object));
                need(error.toString().contains(expect.text("kind")), error + ", want " + expect.text("kind"));
                return;
            }
            need(!expect.has("throws"), "got " + got + ", want " + Case.shown(expect.object));
            same(got, expect.object.get("value"), "value");
        }
    }

    private static void resolverSees(Case given, Case expect) {
        if (expect.texts("resolver_input").equals(List.of(""))) {
            throw new Case.Skips("an empty name is nobody's to resolve");
        }
        PacKinds world = new PacKinds(given, null, true, AMPLE);
        try (Engine ends = world.engine) {
            try {
                world.value(given.text("expr"), PLAIN_URL);
            } catch (BywayException error) {
                need(error.code() != Status.E_PAC, error.toString());
            }
            same(world.asked, expect.get("resolver_input"), "names asked");
        }
    }

    private static void arguments(Case given, Case expect) {
        PacKinds world = new PacKinds(given, null, true, AMPLE);
        try (Engine ends = world.engine) {
            JsonArray want = new JsonArray();
            want.add(expect.get("url_arg"));
            want.add(expect.get("host_arg"));
            same(world.value("[url, host]", given.text("url")), want, "arguments");
        }
    }

    /** A script for the cases that describe one in words. */
    private static String described(String script) {
        int access =
                script.equals("(FindProxyForURL is a getter that throws on first access)")
                        ? 1
                        : script.equals("(FindProxyForURL is a getter that throws on second access)") ? 2 : 0;
        return access == 0
                ? script
                : "var n = 0; Object.defineProperty(globalThis, 'FindProxyForURL', { get() { if (++n >= "
                        + access
                        + ") throw new Error('no'); return function () { return 'DIRECT'; }; } });";
    }

    private static void find(Case given, Case expect) {
        if (expect.has("my_ip_calls")) {
            throw new Case.Skips("how often a script asks for this machine's addresses");
        }
        Duration limit = expect.text("error").equals("pac_timeout") ? Duration.ZERO : AMPLE;
        PacKinds world = new PacKinds(given, given.text("now", null), true, limit);
        try (Engine ends = world.engine) {
            String url = given.text("url", PLAIN_URL);
            String script = described(given.text("script"));
            boolean loading = true;
            List<Proxy> got;
            try {
                ProxySelector selector = world.selector(script);
                loading = false;
                got = world.ask(selector, url);
            } catch (BywayException error) {
                String want = expect.text("error", null);
                need(want != null, error.toString());
                boolean known = false;
                for (String name : want.split("\\|")) {
                    known |= STATUSES.getOrDefault(name, 0) == error.code();
                }
                need(known, error + " " + error.name() + ", want " + want);
                if (expect.has("stage")) {
                    same(loading ? "load" : "resolve", expect.get("stage"), "stage");
                }
                return;
            }
            need(!expect.has("error"), "got " + got + ", want " + Case.shown(expect.object));
            if (expect.has("sequence")) {
                int calls = given.integer("calls", 1);
                same(world.places(script, url, calls), expect.get("sequence"), "sequence");
                same(world.places(script, url, calls), expect.get("after_reload"), "after a reload");
            } else {
                ProxyKinds.sameList(got, expect.cases("proxies"), "proxies");
            }
        }
    }

    private List<Object> places(String script, String url, int calls) {
        ProxySelector selector = selector(script);
        List<Object> places = new ArrayList<>();
        for (int i = 0; i < calls; i++) {
            Proxy first = ask(selector, url).get(0);
            places.add(first.host() + ":" + first.port());
        }
        return places;
    }

    private static void pacString(Case one) {
        Case given = one.of("input");
        Case expect = one.of("expect");
        if (given.get("keep_types") != null) {
            throw new Case.Skips("lists of kinds a host can use are its own");
        }
        PacKinds world = new PacKinds(given, null, true, AMPLE);
        try (Engine ends = world.engine) {
            List<Proxy> got;
            try {
                String answer = Case.shown(new JsonPrimitive(given.text("pac")));
                got = world.ask(world.selector("function FindProxyForURL() { return " + answer + "; }"), PLAIN_URL);
            } catch (BywayException error) {
                need(expect.has("error"), error.toString());
                return;
            }
            need(!expect.has("error"), "got " + got);
            ProxyKinds.sameList(got, expect.cases("proxies"), "proxies");
        }
    }

    private static List<Object> urls(List<Proxy> proxies) {
        List<Object> urls = new ArrayList<>();
        proxies.forEach(proxy -> urls.add(ProxyKinds.url(proxy)));
        return urls;
    }

    /** The defaults. */
    private static void reported(Case one) {
        Case given = one.of("input");
        Case expect = one.of("expect");
        Duration limit =
                given.get("budget_ms") == null ? AMPLE : Duration.ofMillis((long) given.number("budget_ms", 0));
        PacKinds world = new PacKinds(given, given.text("clock", null), false, limit);
        try (Engine ends = world.engine) {
            try {
                List<Object> got = urls(world.ask(world.selector(given.text("script")), given.text("url")));
                need(!expect.has("error"), "got " + got);
                List<Object> want = new ArrayList<>();
                for (String url : expect.texts("proxies")) {
                    want.add(url.replace("socks5://", "socks5h://").replace("socks://", "socks4://"));
                }
                same(got, want, "proxies");
            } catch (BywayException error) {
                String want = expect.text("error", null);
                boolean known = want != null && error.code() == STATUSES.getOrDefault(want, Status.E_PAC);
                need(known, error + " " + error.name() + ", want " + want);
                need(!want.equals("pac_syntax") || error.line() > 0, "no line and column: " + error);
            }
            if (expect.has("then")) {
                Case then = expect.of("then");
                same(urls(world.ask(world.selector(then.text("script")), given.text("url"))), then.get("proxies"), "then");
            }
        }
    }
}
