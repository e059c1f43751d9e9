package io.byway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Proxy selectors made of others, of settings and of scripts. */
@Timeout(300)
class ProxySelectorTest {
    private static final String SCRIPT = "function FindProxyForURL(url, host) { return 'PROXY ' + host + ':3128'; }";
    private Engine engine;
    private ProxySelector proxied;

    @BeforeEach
    void open() {
        engine = new Engine();
        proxied = ProxySelector.fixed(engine, List.of(new Proxy(ProxyKind.HTTP, "p.example", 3128)));
    }

    @AfterEach
    void close() {
        engine.close();
    }

    private String first(ProxySelector selector, String url) {
        Proxy proxy = engine.proxiesForUrl(selector, url, null, Duration.ofMinutes(2)).get(0);
        return proxy == null ? "DIRECT" : proxy.host() + ":" + proxy.port();
    }

    @Test
    void hostsOfAListAreReachedDirectly() {
        ProxySelector selector =
                ProxySelector.bypass(engine, new BypassOptions("*.corp, 10.0.0.0/8", BypassStyle.BROWSER), proxied);
        assertEquals("DIRECT", first(selector, "http://a.corp/"));
        assertEquals("p.example:3128", first(selector, "http://a.example/"));
        ProxySelector only =
                ProxySelector.bypass(
                        engine, new BypassOptions("*.corp", BypassStyle.BROWSER).reversed(true), proxied);
        assertEquals("p.example:3128", first(only, "http://a.corp/"));
        assertEquals("DIRECT", first(only, "http://a.example/"));
        assertThrows(
                BywayException.class,
                () ->
                        ProxySelector.bypass(
                                engine, new BypassOptions("", BypassStyle.NO_PROXY).dialect("klingon"), proxied));
    }

    @Test
    void schemesAndPatternsChooseAmongOthers() {
        Map<String, ProxySelector> parts = new LinkedHashMap<>();
        parts.put("https", proxied);
        parts.put("http", null);
        ProxySelector byScheme = ProxySelector.perScheme(engine, parts, null);
        assertEquals("p.example:3128", first(byScheme, "https://a.example/"));
        assertEquals("DIRECT", first(byScheme, "http://a.example/"));
        ProxySelector byPattern = ProxySelector.rules(engine, List.of(Map.entry("*.corp", proxied)), null);
        assertEquals("p.example:3128", first(byPattern, "http://a.corp/"));
        assertThrows(BywayException.class, () -> first(byPattern, "http://a.example/"));
        String reasons = engine.explainProxiesForUrl(byPattern, "http://a.corp/");
        assertTrue(reasons.contains("\"because\""), reasons);
        ProxySelector windows = ProxySelector.windows(engine, "http=h.example:1;https=s.example:2", "<local>");
        assertEquals("s.example:2", first(windows, "https://a.example/"));
        assertEquals("DIRECT", first(windows, "https://intranet/"));
    }

    @Test
    void theFirstPatternThatCoversTheTargetWins() {
        ProxySelector direct = ProxySelector.direct(engine);
        List<Map.Entry<String, ProxySelector>> patterns = new ArrayList<>();
        patterns.add(Map.entry("deep.a.corp", direct));
        patterns.add(Map.entry("*.a.corp", proxied));
        patterns.add(new AbstractMap.SimpleEntry<>("*", null));
        ProxySelector narrowFirst = ProxySelector.rules(engine, patterns, null);
        assertEquals("DIRECT", first(narrowFirst, "http://deep.a.corp/"));
        assertEquals("p.example:3128", first(narrowFirst, "http://x.a.corp/"));
        assertEquals("DIRECT", first(narrowFirst, "http://b.example/"));
        Collections.swap(patterns, 0, 1);
        assertEquals("p.example:3128", first(ProxySelector.rules(engine, patterns, null), "http://deep.a.corp/"));
    }

    @Test
    void anOptionIsNoNegativeTime() {
        Duration past = Duration.ofSeconds(-5);
        Engine.Options options = new Engine.Options();
        for (Function<Duration, Object> option :
                List.<Function<Duration, Object>>of(
                        options::defaultTimeout,
                        options::postponeFor,
                        options::postponeAtMost,
                        options::dnsCache,
                        options::badProxy,
                        new PacOptions()::refresh,
                        new PacOptions()::timeLimit,
                        new DialOptions()::userTimeout)) {
            assertThrows(BywayException.Argument.class, () -> option.apply(past));
            option.apply(Duration.ofSeconds(5));
        }
    }

    @Test
    void manyProxiesComeWhole() {
        List<Proxy> proxies = new ArrayList<>();
        for (int i = 1; i <= 100; i++) {
            proxies.add(new Proxy(ProxyKind.HTTP, "p.example", i));
        }
        ProxySelector selector = ProxySelector.fixed(engine, proxies);
        assertEquals(proxies, engine.proxiesForUrl(selector, "http://a.example/"));
        assertEquals("[]", engine.badProxies());
        engine.forgetBadProxies();
    }

    @Test
    void settingsOfTheSystemComeFromWhereTheyAreSaidToBe() {
        SystemSettings settings = new SystemSettings().variables(Map.of("http_proxy", "http://v.example:1"));
        ProxySelector selector = ProxySelector.system(engine, settings, null);
        assertEquals("v.example:1", first(selector, "http://a.example/"));
        assertNull(selector.scriptUrl());
        selector.setSystem(
                new SystemSettings()
                        .variables(Map.of())
                        .sysconfig(
                                "PROXY_ENABLED=\"yes\"\nHTTP_PROXY=\"http://s.example:2\"\n"
                                        .getBytes(StandardCharsets.UTF_8)));
        assertEquals("s.example:2", first(selector, "http://a.example/"));
        selector.refresh();
        assertTrue(selector.diagnostics().toString().contains("sysconfig"), selector.diagnostics().toString());
        // Whatever this machine says, it can be read or is an error with a reason.
        ProxySelector.system(engine, SystemSettings.here().pac(new PacOptions()), request -> {});
    }

    @Test
    void scriptsAreFetchedWhenTheyAreNeeded() {
        assumeTrue(Library.hasFeature("script"), "a library without scripts");
        List<String> fetched = new ArrayList<>();
        ProxySelector selector =
                ProxySelector.pac(
                        engine,
                        new PacOptions().url("http://wpad.example/proxy.pac").timeLimit(Duration.ofMinutes(1)),
                        request -> {
                            fetched.add(request.url());
                            request.finish(SCRIPT);
                        });
        assertEquals(List.of(), fetched);
        assertEquals("http://wpad.example/proxy.pac", selector.scriptUrl());
        assertEquals("a.example:3128", first(selector, "http://a.example/"));
        assertEquals("b.example:3128", first(selector, "http://b.example/"));
        assertEquals(List.of("http://wpad.example/proxy.pac"), fetched);
        selector.setScript("function FindProxyForURL(u, h) { return 'DIRECT'; }".getBytes(StandardCharsets.UTF_8), null);
        assertEquals("DIRECT", first(selector, "http://a.example/"));
    }

    @Test
    void aScriptMayComeLaterOrNotAtAll() {
        assumeTrue(Library.hasFeature("script"), "a library without scripts");
        ProxySelector later =
                ProxySelector.pac(
                        engine,
                        new PacOptions().url("http://wpad.example/").timeLimit(Duration.ofMinutes(1)),
                        request -> {
                            request.later();
                            CompletableFuture.runAsync(() -> request.finish(SCRIPT));
                        });
        assertEquals("a.example:3128", first(later, "http://a.example/"));
        IOException mine = new IOException("no route to the script");
        ProxySelector never =
                ProxySelector.pac(
                        engine,
                        new PacOptions().url("http://wpad.example/"),
                        request -> {
                            throw mine;
                        });
        BywayException error = assertThrows(BywayException.class, () -> first(never, "http://a.example/"));
        assertSame(mine, error.getCause());
    }

    @Test
    void aScriptMayBeAFile(@TempDir Path folder) throws IOException {
        assumeTrue(Library.hasFeature("script"), "a library without scripts");
        Path file = folder.resolve("proxy.pac");
        Files.writeString(file, SCRIPT);
        PacOptions options = new PacOptions().url(file.toString()).timeLimit(Duration.ofMinutes(1));
        ProxySelector selector = ProxySelector.pac(engine, options, null);
        assertEquals("a.example:3128", first(selector, "http://a.example/"));
        Files.writeString(file, SCRIPT.replace("3128", "8080"));
        selector.refresh();
        assertEquals("a.example:8080", first(selector, "http://a.example/"));
        assertThrows(
                BywayException.class,
                () -> ProxySelector.pac(engine, new PacOptions().url("proxy.pac").source("not a script"), null));
    }
}
