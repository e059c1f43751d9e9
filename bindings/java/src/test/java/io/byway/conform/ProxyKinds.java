package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.byway.Address;
import io.byway.BywayException;
import io.byway.Compat;
import io.byway.Dns;
import io.byway.Engine;
import io.byway.Event;
import io.byway.Host;
import io.byway.Ip;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import io.byway.Selector;
import io.byway.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;

/**
 * Built-in proxy selectors: what they offer for a URL, seen in the event of a selection. Names, times and limits of
 * scripts are the engine's own here, so scripts that ask for others are left to those who can give them.
 */
final class ProxyKinds {
    static final Map<String, Case.Run> KINDS =
            Map.of(
                    "proxy/noproxy", ProxyKinds::noProxy,
                    "proxy/env", ProxyKinds::environment,
                    "proxy/nonproxyhosts", ProxyKinds::properties,
                    "bugs/no_proxy", ProxyKinds::noProxyReported,
                    "bugs/no_proxy_list", ProxyKinds::noProxyReported,
                    "bugs/libproxy_ignore", ProxyKinds::noProxyReported,
                    "bugs/jvm_non_proxy_hosts", ProxyKinds::nonProxyHostsReported);

    /** Implementations that are a dialect of byway, by the names the cases use. */
    private static final Map<String, String> DIALECTS =
            Map.of("curl", "curl", "go", "go", "urllib", "python", "undici", "node", "chromium", "chromium");

    private static final Map<Integer, String> ERRORS =
            Map.of(
                    Status.E_INVALID_PROXY, "invalid_proxy",
                    Status.E_INVALID_URL, "invalid_url",
                    Status.E_INVALID_HOST, "invalid_url",
                    Status.E_INVALID_PORT, "invalid_port",
                    Status.E_PROXY_SELECTOR, "refused_in_cgi");

    private static final Map<String, Integer> PORTS =
            Map.of("http", 80, "ws", 80, "https", 443, "wss", 443, "ftp", 21, "gopher", 70);

    private ProxyKinds() {}

    /** A URL as a host of byway takes it apart. */
    private static final class Place {
        final String scheme;
        final String host;
        final int port;

        Place(String url) {
            int begin = url.indexOf("://");
            scheme = url.substring(0, begin);
            String authority = url.substring(begin + 3).split("[/?#]", 2)[0];
            authority = authority.substring(authority.lastIndexOf('@') + 1);
            int colon = authority.indexOf(':', authority.startsWith("[") ? authority.indexOf(']') : 0);
            host = colon < 0 ? authority : authority.substring(0, colon);
            String digits = colon < 0 ? "" : authority.substring(colon + 1);
            port = digits.isEmpty() ? PORTS.get(scheme) : Integer.parseInt(digits);
        }
    }

    /** The list a selector gives for a URL: proxies, null for DIRECT. Throws what it fails with. */
    private static List<Proxy> offered(Function<Engine, ProxySelector> make, String url) {
        try (Engine engine = new Engine()) {
            List<Event> heard = new ArrayList<>();
            engine.addListener(List.of(Event.Kind.PROXY_SELECT_END), heard::add);
            Place place = new Place(url);
            Dns dns = new Dns(engine, name -> List.of(Ip.parse("192.0.2.1")));
            Address address =
                    new Address(
                            engine,
                            new Address.Options(place.host, place.port)
                                    .scheme(place.scheme)
                                    .dns(dns)
                                    .proxySelector(make.apply(engine)));
            // The selector is asked when it is made; a script answers later, and its answer comes with the first routes.
            try (Selector selector = new Selector(address)) {
                if (heard.isEmpty()) {
                    selector.next(Duration.ofSeconds(30));
                }
            }
            BywayException error = heard.get(0).error();
            if (error != null) {
                throw error.causes().isEmpty() ? error : error.causes().get(0);
            }
            return heard.get(0).proxies();
        }
    }

    private static Object shown(Proxy proxy) {
        return proxy == null
                ? Map.of("type", "direct")
                : Map.of(
                        "type", proxy.kind().name().toLowerCase(Locale.ROOT), "host", proxy.host(), "port", proxy.port());
    }

    /** User and password are shown nowhere; who a proxy is for is compared apart. */
    private static JsonElement wanted(JsonElement entry) {
        JsonObject shown = new JsonObject();
        for (String name : List.of("type", "host", "port")) {
            if (entry.getAsJsonObject().has(name)) {
                shown.add(name, entry.getAsJsonObject().get(name));
            }
        }
        return shown;
    }

    private static String category(BywayException error) {
        return ERRORS.getOrDefault(error.code(), error.name());
    }

    /** An answer against {@code {"proxies": [...]}} or {@code {"error": category}}. */
    private static void check(String what, Function<Engine, ProxySelector> make, String url, Case expect) {
        List<Proxy> got;
        try {
            got = offered(make, url);
        } catch (BywayException error) {
            String want = expect.text("error", null);
            need(want != null, what + ": " + error + ", want " + Case.shown(expect.object));
            // java.lang.IllegalArgumentException is the JDK's word for a port it cannot use.
            boolean known = want.contains("IllegalArgumentException") || want.equals("configuration");
            need(known || category(error).equals(want), what + ": " + error + ", want " + want);
            return;
        }
        need(!expect.has("error"), what + ": got " + got + ", want " + Case.shown(expect.object));
        List<Object> entries = new ArrayList<>();
        got.forEach(proxy -> entries.add(shown(proxy)));
        JsonArray want = new JsonArray();
        expect.list("proxies").forEach(entry -> want.add(wanted(entry)));
        same(entries, want, what);
        List<Case> whole = expect.cases("proxies");
        for (int i = 0; i < got.size(); i++) {
            Case entry = whole.get(i);
            if (entry.has("user")) {
                Proxy like =
                        new Proxy(
                                        ProxyKind.valueOf(entry.text("type").toUpperCase(Locale.ROOT)),
                                        entry.text("host"),
                                        entry.integer("port", 0))
                                .withCredentials(entry.text("user"), entry.text("password"));
                need(like.equals(got.get(i)), what + ": another user");
            }
        }
    }

    private static Function<Engine, ProxySelector> byEnvironment(Map<String, String> variables, String dialect) {
        return engine -> ProxySelector.environment(engine, variables, dialect);
    }

    private static Map<String, String> table(Case object) {
        Map<String, String> table = new LinkedHashMap<>();
        object.members().forEach((name, value) -> table.put(name, value.getAsString()));
        return table;
    }

    private static final List<Proxy> DIRECT = Collections.singletonList(null);

    private static boolean bypassed(String noProxy, String url, String dialect) {
        Map<String, String> variables = new LinkedHashMap<>();
        for (String scheme : List.of("http", "https", new Place(url).scheme)) {
            variables.put(scheme + "_proxy", "http://proxy.example:3128");
        }
        variables.put("no_proxy", noProxy);
        return offered(byEnvironment(variables, dialect), url).equals(DIRECT);
    }

    /** Whether an address has all that a URL says: the host in its canonical form, no port that is the scheme's own. */
    private static boolean plain(String url) {
        Place place = new Place(url);
        if (!place.scheme.equals("http") && !place.scheme.equals("https")) {
            return false;
        }
        try {
            String host = place.host.startsWith("[") ? place.host.substring(1, place.host.length() - 1) : place.host;
            return Host.canonical(place.host, Compat.BYWAY).equals(host)
                    && !url.replaceAll("/+$", "").endsWith(":" + PORTS.get(place.scheme));
        } catch (BywayException error) {
            return false;
        }
    }

    /** Without the implied loopback a list is not to be had from here. */
    private static void noProxy(Case one) {
        String list = one.of("input").text("no_proxy");
        String url = one.of("input").text("url");
        same(bypassed(list, url, "byway"), one.of("expect").get("bypass_with_implicit_loopback"), "byway");
        if (!plain(url)) {
            throw new Case.Skips("what other programs read in a URL as it was written");
        }
        Case answers = one.of("answers");
        DIALECTS.forEach(
                (name, dialect) -> {
                    JsonElement want = answers.get(name);
                    if (want != null && want.isJsonPrimitive() && want.getAsJsonPrimitive().isBoolean()) {
                        same(bypassed(list, url, dialect), want, name);
                    }
                });
    }

    private static void environment(Case one) {
        Map<String, String> variables = table(one.of("input").of("env"));
        String url = one.of("input").text("url");
        check("byway", byEnvironment(variables, "byway"), url, one.of("expect"));
        DIALECTS.forEach(
                (name, dialect) -> {
                    JsonElement answer = one.of("answers").get(name);
                    if (answer != null && answer.isJsonObject()) {
                        environmentAs(name, byEnvironment(variables, dialect), url, one, new Case(answer.getAsJsonObject()));
                    }
                });
    }

    private static void environmentAs(
            String name, Function<Engine, ProxySelector> make, String url, Case one, Case answer) {
        List<Proxy> got;
        try {
            got = offered(make, url);
        } catch (BywayException error) {
            // Where a program hands a bad value on or drops it, byway has one rule: an error of the request.
            boolean expected =
                    answer.has("error")
                            || one.of("expect").has("error")
                            || readable(answer.text("proxy", null)) == null;
            need(expected, name + ": " + error);
            return;
        }
        need(!answer.has("error"), name + ": got " + got + ", want an error");
        if (answer.get("proxy") == null) {
            same(got.equals(DIRECT), true, name + ": DIRECT");
            return;
        }
        Proxy want = readable(answer.text("proxy"));
        need(want != null, name + ": " + got + ", want an error for " + answer.text("proxy"));
        same(got.get(0).host() + " " + got.get(0).port(), want.host() + " " + want.port(), name);
        if (answer.get("connect_port") != null) {
            same(got.get(0).port(), answer.get("connect_port"), name + ": port");
        }
    }

    /** A proxy as a variable's value names it, null when none can be made of it. */
    private static Proxy readable(String url) {
        if (url == null) {
            return null;
        }
        try {
            // Programs print what they were given; an empty port is none.
            Map<String, String> variables = Map.of("http_proxy", url.replaceAll(":+$", ""));
            return offered(byEnvironment(variables, "byway"), "http://h.example/").get(0);
        } catch (BywayException error) {
            return null;
        }
    }

    private static Properties properties(Map<String, String> table) {
        Properties properties = new Properties();
        properties.putAll(table);
        return properties;
    }

    private static void properties(Case one) {
        Properties table = properties(table(one.of("input").of("properties")));
        String url = one.of("input").text("url");
        check("byway", engine -> ProxySelector.properties(engine, table, true), url, one.of("expect"));
        String released = one.of("answers").text("jdk17", null);
        if (released == null) {
            return;
        }
        Proxy first;
        try {
            first = offered(engine -> ProxySelector.properties(engine, table, false), url).get(0);
        } catch (BywayException error) {
            need(released.contains("Exception"), "jdk17: " + error + ", want " + released);
            return;
        }
        String got = "DIRECT";
        if (first != null) {
            String kind =
                    first.kind() == ProxyKind.HTTP ? "HTTP" : first.kind() == ProxyKind.SOCKS4 ? "SOCKSv4" : "SOCKSv5";
            got = kind + " " + first.host() + ":" + first.port();
        }
        same(got, released, "jdk17");
    }

    // Reports.

    private static String url(String host, JsonElement port) {
        if (host.contains("://")) {
            return host;
        }
        String shown = host.contains(":") && !host.startsWith("[") ? "[" + host + "]" : host;
        return "http://" + shown + (port == null ? "" : ":" + port.getAsInt()) + "/";
    }

    private static void noProxyReported(Case one) {
        String dialect = one.text("dialect", "ours");
        if (List.of("ours", "byway", "libproxy").contains(dialect)) {
            throw new Case.Skips("a list without the implied loopback");
        }
        Case given = one.of("input");
        JsonElement port = given.get("scheme_port");
        Object got;
        List<Object> all = new ArrayList<>();
        if (given.get("checks") != null) {
            for (JsonElement pair : given.list("checks")) {
                JsonArray both = pair.getAsJsonArray();
                all.add(bypassed(both.get(0).getAsString(), url(both.get(1).getAsString(), port), dialect));
            }
            got = all;
        } else if (given.get("hosts") != null) {
            given.texts("hosts").forEach(host -> all.add(bypassed(given.text("no_proxy"), url(host, port), dialect)));
            got = all;
        } else {
            got = bypassed(given.text("no_proxy"), url(given.text("host", given.text("url")), port), dialect);
        }
        same(got, one.of("expect").get("bypass"), "bypass");
    }

    private static void nonProxyHostsReported(Case one) {
        Properties table =
                properties(
                        Map.of("http.proxyHost", "p", "http.nonProxyHosts", one.of("input").text("nonProxyHosts")));
        List<Object> got = new ArrayList<>();
        for (String host : one.of("input").texts("hosts")) {
            got.add(offered(engine -> ProxySelector.properties(engine, table, true), url(host, null)).equals(DIRECT));
        }
        same(got, one.of("expect").get("bypass"), "bypass");
    }
}
