package io.byway.conform;

import static io.byway.conform.Case.need;
import static io.byway.conform.Case.same;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.byway.BypassOptions;
import io.byway.BypassStyle;
import io.byway.BywayException;
import io.byway.Engine;
import io.byway.Proxy;
import io.byway.ProxyKind;
import io.byway.ProxySelector;
import io.byway.Status;
import io.byway.SystemSettings;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;

/** Built-in proxy selectors, asked for URLs: {@code NO_PROXY} and the environment in every dialect, Java's properties, lists. */
final class ProxyKinds {
    static final Map<String, Case.Run> KINDS =
            Map.ofEntries(
                    Map.entry("proxy/noproxy", ProxyKinds::noProxy),
                    Map.entry("proxy/env", ProxyKinds::environment),
                    Map.entry("proxy/nonproxyhosts", ProxyKinds::properties),
                    Map.entry("proxy/bypass", ProxyKinds::bypass),
                    Map.entry("bugs/no_proxy", ProxyKinds::noProxyReported),
                    Map.entry("bugs/no_proxy_list", ProxyKinds::noProxyReported),
                    Map.entry("bugs/libproxy_ignore", ProxyKinds::noProxyReported),
                    Map.entry("bugs/proxy_for_url", ProxyKinds::proxyForUrlReported),
                    Map.entry("bugs/proxy_for_url_list", ProxyKinds::proxyForUrlReported),
                    Map.entry("bugs/win_proxy_server", ProxyKinds::windowsServer),
                    Map.entry("bugs/win_bypass", ProxyKinds::exceptionsReported),
                    Map.entry("bugs/mac_exceptions", ProxyKinds::exceptionsReported),
                    Map.entry("bugs/jvm_non_proxy_hosts", ProxyKinds::exceptionsReported),
                    Map.entry("bugs/desktop_config", ProxyKinds::desktopReported));

    /** Implementations that are a dialect of byway, by the names the cases use. */
    private static final Map<String, String> DIALECTS =
            Map.of("curl", "curl", "go", "go", "urllib", "python", "undici", "node", "chromium", "chromium");

    private static final Map<Integer, String> ERRORS =
            Map.of(
                    Status.E_INVALID_PROXY, "invalid_proxy",
                    Status.E_INVALID_URL, "invalid_url",
                    Status.E_INVALID_PORT, "invalid_port",
                    Status.E_PROXY_SELECTOR, "refused_in_cgi");

    private ProxyKinds() {}

    /** The list a selector gives for a URL: proxies, null for DIRECT. Throws what it fails with. */
    private static List<Proxy> offered(Function<Engine, ProxySelector> make, String url) {
        try (Engine engine = new Engine()) {
            return engine.proxiesForUrl(make.apply(engine), url, null, Duration.ofSeconds(30));
        }
    }

    static String url(Proxy proxy) {
        return proxy == null ? "direct://" : proxy.toString();
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
        sameList(got, expect.cases("proxies"), what);
    }

    static void sameList(List<Proxy> got, List<Case> whole, String what) {
        List<Object> entries = new ArrayList<>();
        got.forEach(proxy -> entries.add(shown(proxy)));
        JsonArray want = new JsonArray();
        whole.forEach(entry -> want.add(wanted(entry.object)));
        same(entries, want, what);
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

    /** Whether a list of exceptions holds a URL: those it does not hold go to a proxy. */
    private static boolean held(BypassOptions exceptions, String url) {
        return offered(
                        engine ->
                                ProxySelector.bypass(
                                        engine,
                                        exceptions,
                                        ProxySelector.fixed(
                                                engine, List.of(new Proxy(ProxyKind.HTTP, "proxy.example", 3128)))),
                        url)
                .equals(DIRECT);
    }

    private static BypassOptions noProxy(String list) {
        return new BypassOptions(list, BypassStyle.NO_PROXY);
    }

    private static void noProxy(Case one) {
        String list = one.of("input").text("no_proxy");
        String url = one.of("input").text("url");
        same(held(noProxy(list).proxyLoopback(true), url), one.of("expect").get("bypass"), "bypass");
        same(held(noProxy(list), url), one.of("expect").get("bypass_with_implicit_loopback"), "with the loopback");
        Case answers = one.of("answers");
        DIALECTS.forEach(
                (name, dialect) -> {
                    JsonElement want = answers.get(name);
                    if (want != null && want.isJsonPrimitive() && want.getAsJsonPrimitive().isBoolean()) {
                        same(held(noProxy(list).dialect(dialect), url), want, name);
                    }
                });
    }

    private static void bypass(Case one) {
        boolean got;
        try {
            got =
                    held(
                            new BypassOptions(one.of("input").text("rules"), BypassStyle.BROWSER),
                            one.of("input").text("url"));
        } catch (BywayException error) {
            // A URL that is none (its host ends in a number and is no address) is an error before any list is asked.
            need(error.code() == Status.E_INVALID_URL, error.toString());
            got = false;
        }
        same(got, one.of("expect").get("bypass"), "bypass");
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
            boolean unreadable = answer.get("proxy") != null && readable(answer.text("proxy")) == null;
            boolean expected = answer.has("error") || one.of("expect").has("error") || unreadable;
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

    /** {@code byway} for "ours"; libproxy's list has no implied loopback. */
    private static void noProxyReported(Case one) {
        String named = one.text("dialect", "ours");
        String dialect = List.of("ours", "libproxy").contains(named) ? "byway" : named;
        Case given = one.of("input");
        JsonElement port = given.get("scheme_port");
        Object got;
        List<Object> all = new ArrayList<>();
        if (given.get("checks") != null) {
            for (JsonElement pair : given.list("checks")) {
                JsonArray both = pair.getAsJsonArray();
                BypassOptions list = noProxy(both.get(0).getAsString()).proxyLoopback(true).dialect(dialect);
                all.add(held(list, url(both.get(1).getAsString(), port)));
            }
            got = all;
        } else {
            BypassOptions list = noProxy(given.text("no_proxy")).proxyLoopback(true).dialect(dialect);
            if (given.get("hosts") != null) {
                given.texts("hosts").forEach(host -> all.add(held(list, url(host, port))));
                got = all;
            } else {
                got = held(list, url(given.text("host", given.text("url")), port));
            }
        }
        same(got, one.of("expect").get("bypass"), "bypass");
    }

    private static void proxyForUrlReported(Case one) {
        Case given = one.of("input");
        Case expect = one.of("expect");
        if (!given.of("explicit").members().isEmpty()) {
            throw new Case.Skips("a host's own settings in front of the environment are selectors of its own");
        }
        Map<String, String> variables = table(given.of("env"));
        if (given.get("no_proxy") != null) {
            variables.put("no_proxy", given.text("no_proxy"));
        }
        String named = one.text("dialect", "ours");
        String dialect = named.equals("ours") ? "byway" : named;
        List<String> urls = given.get("urls") != null ? given.texts("urls") : List.of(given.text("url"));
        for (int i = 0; i < urls.size(); i++) {
            String url = urls.get(i) == null ? "" : urls.get(i);
            Proxy got;
            try {
                got = offered(byEnvironment(variables, dialect), url).get(0);
            } catch (BywayException error) {
                need(expect.has("error"), url + ": " + error);
                same(category(error), at(expect.get("error"), i), url);
                continue;
            }
            need(!expect.has("error"), url + ": got " + got);
            JsonElement want = at(expect.get("proxy"), i);
            if (want == null || want.isJsonNull()) {
                same(url(got), "direct://", url);
                continue;
            }
            String text = want.getAsString();
            same(url(got), url(readable(dialect.equals("go") ? text.replace("socks5://", "socks5h://") : text)), url);
        }
    }

    private static JsonElement at(JsonElement value, int index) {
        return value != null && value.isJsonArray() ? value.getAsJsonArray().get(index) : value;
    }

    private static void windowsServer(Case one) {
        String server = one.of("input").text("ProxyServer");
        Function<Engine, ProxySelector> make = engine -> ProxySelector.windows(engine, server, "<-loopback>");
        one.of("expect")
                .members()
                .forEach(
                        (scheme, want) -> {
                            if (scheme.equals("socks")) {
                                Proxy got = offered(make, "gopher://h/").get(0);
                                same(got == null ? null : got.kind().name(), want.isJsonNull() ? null : "SOCKS4", scheme);
                                return;
                            }
                            String wanted =
                                    want.isJsonNull() ? "direct://" : want.getAsString().replace("socks://", "socks4://");
                            same(url(offered(make, scheme + "://h.example/").get(0)), wanted, scheme);
                        });
    }

    private static void exceptionsReported(Case one) {
        Case given = one.of("input");
        List<Object> got = new ArrayList<>();
        for (String host : given.texts("hosts")) {
            String url = url(host, null);
            switch (one.text("kind")) {
                case "win_bypass":
                    got.add(held(new BypassOptions(given.text("ProxyOverride"), BypassStyle.WINDOWS), url));
                    break;
                case "mac_exceptions":
                    String list = String.join("\n", given.texts("exceptions"));
                    boolean simple = given.flag("exclude_simple");
                    got.add(held(new BypassOptions(list, BypassStyle.MACOS).excludeSimple(simple), url));
                    break;
                default:
                    Properties table =
                            properties(
                                    Map.of("http.proxyHost", "p", "http.nonProxyHosts", given.text("nonProxyHosts")));
                    got.add(offered(engine -> ProxySelector.properties(engine, table, true), url).equals(DIRECT));
                    break;
            }
        }
        same(got, one.of("expect").get("bypass"), "bypass");
    }

    private static void desktopReported(Case one) {
        Case given = one.of("input");
        StringBuilder file = new StringBuilder("[org/gnome/system/proxy]\nmode='" + given.text("mode") + "'\n");
        for (String name : List.of("http", "https", "ftp", "socks")) {
            String place = given.text(name);
            int colon = place.lastIndexOf(':');
            if (colon >= 0) {
                file.append("[org/gnome/system/proxy/").append(name).append("]\nhost='");
                file.append(place, 0, colon).append("'\nport=").append(place.substring(colon + 1)).append('\n');
            }
        }
        SystemSettings settings =
                new SystemSettings()
                        .variables(Map.of())
                        .desktop("GNOME")
                        .keyfile(file.toString().getBytes(StandardCharsets.UTF_8));
        List<Object> got = new ArrayList<>();
        offered(engine -> ProxySelector.system(engine, settings, null), given.text("url"))
                .forEach(proxy -> got.add(url(proxy)));
        same(got, one.of("expect").get("proxies"), "proxies");
    }
}
