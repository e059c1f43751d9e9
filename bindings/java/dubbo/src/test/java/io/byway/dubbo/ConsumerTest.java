package io.byway.dubbo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.dubbo.common.URL;
import org.apache.dubbo.common.url.component.ServiceConfigURL;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.rpc.Invoker;
import org.apache.dubbo.rpc.Protocol;
import org.apache.dubbo.rpc.ProxyFactory;
import org.apache.dubbo.rpc.RpcException;
import org.apache.dubbo.rpc.RpcInvocation;
import org.apache.dubbo.rpc.cluster.Cluster;
import org.apache.dubbo.rpc.cluster.directory.StaticDirectory;
import org.apache.dubbo.rpc.model.ApplicationModel;
import org.apache.dubbo.rpc.model.ConsumerModel;
import org.apache.dubbo.rpc.model.FrameworkModel;
import org.apache.dubbo.rpc.model.ModuleModel;
import org.apache.dubbo.rpc.model.ServiceDescriptor;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Real Dubbo: three providers that listen on loopback, and consumers whose directory has a router chain. */
@Timeout(180)
class ConsumerTest {
    private static final String SERVICE = HelloService.class.getName();
    private static final String KEY = SERVICE + "::.condition-router";
    private static final List<Integer> PORTS = new ArrayList<>();
    private static final List<FrameworkModel> MODELS = new ArrayList<>();
    private static final MemoryCenter CENTER = new MemoryCenter();

    private static ModuleModel module;

    @BeforeAll
    static void open() throws IOException {
        for (int i = 0; i < 3; i++) {
            PORTS.add(provider());
        }
        FrameworkModel framework = new FrameworkModel();
        MODELS.add(framework);
        ApplicationModel application = framework.newApplication();
        application.getApplicationConfigManager().setApplication(applicationConfig("shop"));
        application.modelEnvironment().setDynamicConfiguration(CENTER);
        module = application.newModule();
    }

    @AfterAll
    static void close() {
        MODELS.forEach(FrameworkModel::destroy);
    }

    private static ApplicationConfig applicationConfig(String name) {
        ApplicationConfig config = new ApplicationConfig(name);
        config.setQosEnable(false);
        return config;
    }

    private static int provider() throws IOException {
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        FrameworkModel framework = new FrameworkModel();
        MODELS.add(framework);
        ServiceConfig<HelloService> service = new ServiceConfig<>();
        service.setInterface(HelloService.class);
        service.setRef(
                new HelloService() {
                    @Override
                    public String hello(String name) {
                        return String.valueOf(port);
                    }

                    @Override
                    public String hello2(String name) {
                        return String.valueOf(port);
                    }
                });
        DubboBootstrap.getInstance(framework.newApplication())
                .application(applicationConfig("depot"))
                .registry(new RegistryConfig(RegistryConfig.NO_AVAILABLE))
                .protocol(new ProtocolConfig("tri", port))
                .service(service)
                .start();
        return port;
    }

    /** A consumer: its directory, which can be given other providers, and a stub. */
    private static final class Consumer {
        final URL url;
        final StaticDirectory<HelloService> directory;
        final HelloService stub;

        Consumer(Map<String, String> more) {
            Map<String, String> parameters = new HashMap<>(more);
            parameters.put("interface", SERVICE);
            parameters.put("application", "shop");
            parameters.put("side", "consumer");
            parameters.put("timeout", "30000");
            ServiceDescriptor descriptor = module.getServiceRepository().registerService(HelloService.class);
            ConsumerModel model =
                    new ConsumerModel(
                            SERVICE, null, descriptor, module, null, null, HelloService.class.getClassLoader());
            module.getServiceRepository().registerConsumer(model);
            url =
                    new ServiceConfigURL("consumer", "127.0.0.1", 0, SERVICE, parameters)
                            .setScopeModel(module)
                            .setServiceModel(model);
            List<Invoker<HelloService>> invokers = new ArrayList<>();
            Protocol protocol = module.getExtensionLoader(Protocol.class).getAdaptiveExtension();
            for (int i = 0; i < PORTS.size(); i++) {
                Map<String, String> own = new HashMap<>(parameters);
                own.remove("router");
                own.put("remote.application", "depot");
                own.put("zone", "z" + i);
                if (i == 1 && more.containsKey("gray")) {
                    own.put("dubbo.tag", "gray");
                }
                invokers.add(
                        protocol.refer(
                                HelloService.class,
                                new ServiceConfigURL("tri", "127.0.0.1", PORTS.get(i), SERVICE, own)
                                        .setScopeModel(module)
                                        .setServiceModel(model)));
            }
            directory = new StaticDirectory<>(url, invokers);
            directory.buildRouterChain();
            Invoker<HelloService> all = Cluster.getCluster(module, "failover").join(directory, true);
            stub = module.getExtensionLoader(ProxyFactory.class).getAdaptiveExtension().getProxy(all);
        }

        /** Ports of the providers that may serve a call. */
        List<Integer> list(String method, Map<String, String> attachments) {
            Class<?>[] types = {String.class};
            RpcInvocation call =
                    new RpcInvocation(url.getServiceModel(), method, SERVICE, "", types, new Object[] {"world"});
            attachments.forEach(call::setAttachment);
            List<Integer> ports = new ArrayList<>();
            for (Invoker<HelloService> one : directory.list(call)) {
                ports.add(one.getUrl().getPort());
            }
            return ports;
        }
    }

    private static String rule(String... conditions) {
        return "configVersion: v3.0\nscope: service\nkey: " + SERVICE + "\nenabled: true\nforce: true\nruntime: true\n"
                + "conditions: ['" + String.join("', '", conditions) + "']\n";
    }

    private static Map<String, String> byway() {
        return Map.of("router", "-default,byway");
    }

    @Test
    void callsGoWhereTheRuleOfTheCentreSends() {
        Consumer consumer = new Consumer(byway());
        Set<String> everybody = new TreeSet<>();
        PORTS.forEach(port -> everybody.add(String.valueOf(port)));
        Set<String> seen = new TreeSet<>();
        while (!seen.equals(everybody)) {
            seen.add(consumer.stub.hello("world"));
        }
        try {
            CENTER.set(
                    KEY,
                    rule("method=hello => address=*:" + PORTS.get(0), "method=hello2 => address=*:" + PORTS.get(2)));
            for (int i = 0; i < 10; i++) {
                assertEquals(String.valueOf(PORTS.get(0)), consumer.stub.hello("world"));
                assertEquals(String.valueOf(PORTS.get(2)), consumer.stub.hello2("world"));
            }
            CENTER.set(KEY, "conditions: [[[");
            assertEquals(String.valueOf(PORTS.get(0)), consumer.stub.hello("world"), "the last good rule");
            CENTER.set(KEY, rule("arguments[0]=world => address=*:" + PORTS.get(1)));
            assertEquals(String.valueOf(PORTS.get(1)), consumer.stub.hello("world"), "arguments are looked at");
            CENTER.set(KEY, rule("=> address=*:1"));
            assertThrows(RpcException.class, () -> consumer.stub.hello("world"));
        } finally {
            CENTER.set(KEY, null);
        }
        assertEquals(PORTS, consumer.list("hello", Map.of()));
    }

    @Test
    void itChoosesAsDubbosOwnRoutersDo() {
        Consumer own = new Consumer(Map.of("gray", "1"));
        Consumer byway =
                new Consumer(Map.of("gray", "1", "router", "-default,byway", "byway.dialect", "dubbo-3"));
        Map<String, String> rules = new LinkedHashMap<>();
        rules.put(KEY, rule("method=hello => zone=z1,z2", "method=hello2 => zone!=z0", "method=no* => host=1.2.3.4"));
        rules.put(
                "shop.condition-router",
                "configVersion: v3.0\nscope: application\nkey: shop\nforce: false\nruntime: true\n"
                        + "conditions: ['attachments[tenant]=a => address=127.0.0.1:" + PORTS.get(2) + "']\n");
        int narrowed = 0;
        try {
            for (Map.Entry<String, String> one : rules.entrySet()) {
                CENTER.set(one.getKey(), one.getValue());
                for (String method : List.of("hello", "hello2", "notify")) {
                    for (Map<String, String> attachments :
                            List.of(
                                    Map.<String, String>of(),
                                    Map.of("dubbo.tag", "gray"),
                                    Map.of("dubbo.tag", "blue"),
                                    Map.of("tenant", "a"))) {
                        List<Integer> want = own.list(method, attachments);
                        narrowed += want.size() < 3 ? 1 : 0;
                        assertEquals(
                                want,
                                byway.list(method, attachments),
                                method + " " + attachments + " under " + one.getKey());
                    }
                }
            }
        } finally {
            rules.keySet().forEach(key -> CENTER.set(key, null));
        }
        assertTrue(narrowed > 10, "the rules decide something: " + narrowed);
    }

    @Test
    void aListThatChangesIsFollowed() {
        Consumer consumer = new Consumer(byway());
        assertEquals(PORTS, consumer.list("hello", Map.of()));
        List<Invoker<HelloService>> fewer = new ArrayList<>(consumer.directory.getAllInvokers().subList(1, 3));
        consumer.directory.notify(fewer);
        assertEquals(PORTS.subList(1, 3), consumer.list("hello", Map.of()));
    }

    @Test
    void rulesMayComeFromASourceOfByways(@TempDir Path folder) throws IOException {
        Files.writeString(folder.resolve(KEY), rule("method=hello => address=*:" + PORTS.get(1)));
        Map<String, String> parameters = new HashMap<>(byway());
        parameters.put("byway.source", "file:" + folder);
        Consumer consumer = new Consumer(parameters);
        assertEquals(List.of(PORTS.get(1)), consumer.list("hello", Map.of()));
        assertEquals(String.valueOf(PORTS.get(1)), consumer.stub.hello("world"));
        assertEquals(PORTS, consumer.list("hello2", Map.of()));
    }

    @Test
    void aRouterThatStopsLeavesTheCentre() {
        Rules rules = Rules.of(module);
        String key = "only.here::.condition-router";
        rules.follow(key);
        rules.follow(key);
        assertEquals(1, CENTER.followers(key).size(), "one listener a key");
        rules.leave(key);
        assertFalse(CENTER.followers(key).isEmpty());
        rules.leave(key);
        assertTrue(CENTER.followers(key).isEmpty());
    }
}
