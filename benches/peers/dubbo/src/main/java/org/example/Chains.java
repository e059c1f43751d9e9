package org.example;

import io.byway.Chain;
import io.byway.Engine;
import io.byway.Invocation;
import io.byway.Invokers;
import io.byway.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.dubbo.common.URL;
import org.apache.dubbo.common.config.configcenter.ConfigChangeType;
import org.apache.dubbo.common.config.configcenter.ConfigChangedEvent;
import org.apache.dubbo.rpc.Invoker;
import org.apache.dubbo.rpc.RpcInvocation;
import org.apache.dubbo.rpc.cluster.RouterChain;
import org.apache.dubbo.rpc.cluster.SingleRouterChain;
import org.apache.dubbo.rpc.cluster.router.condition.config.ServiceStateRouter;
import org.apache.dubbo.rpc.cluster.router.state.BitList;
import org.apache.dubbo.rpc.cluster.router.state.StateRouter;
import org.apache.dubbo.rpc.model.ApplicationModel;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * Whom to call: the built-in routers over lists of providers with 20 parameters. {@code dubbo} goes the way of Dubbo's
 * own directory, from its locks to the list of providers; {@code byway} the same through JNI, with a session.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Chains {
    /** What the providers serve. */
    public interface HelloService {
        String hello(String name);
    }

    static final String SERVICE = HelloService.class.getName();
    static final String CONSUMER = "consumer://10.9.8.7/" + SERVICE + "?application=shop&interface=" + SERVICE
            + "&region=hangzhou&side=consumer";
    static final String RULE = "configVersion: v3.0\nscope: service\nforce: true\nruntime: true\nkey: '" + SERVICE
            + "::'\nconditions:\n- method=hello => address=*:20880\n";

    @Param({"10", "100", "1000", "10000"})
    private int providers;

    private RouterChain<HelloService> plain;
    private RouterChain<HelloService> ruled;
    private BitList<Invoker<HelloService>> list;
    private BitList<Invoker<HelloService>> tagged;
    private RouterChain<HelloService> tags;
    private URL consumer;
    private RpcInvocation call;
    private RpcInvocation grayCall;

    private Session plainSession;
    private Session ruledSession;
    private Session tagsSession;
    private Invocation invocation;
    private Invocation grayInvocation;

    static List<String> urls(int count, boolean tagged) {
        String[] regions = {"hangzhou", "shanghai", "beijing"};
        List<String> urls = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            String url = "dubbo://10." + at % 4 + "." + at / 4 / 250 + "." + (1 + at / 4 % 250) + ":"
                    + (at % 2 == 0 ? 20880 : 20881) + "/" + SERVICE + "?application=stock&remote.application=stock"
                    + "&side=provider&interface=" + SERVICE + "&methods=hello,hello2&dubbo=2.0.2&release=3.3.6"
                    + "&deprecated=false&dynamic=true&generic=false&service-name-mapping=true&pid=4711&weight=100"
                    + "&timestamp=1730000000000&serialization=hessian2&timeout=1000&retries=2&region=" + regions[at % 3]
                    + "&zone=z" + at % 8;
            urls.add(tagged && at % 10 == 0 ? url + "&dubbo.tag=gray" : url + "&env=prod");
        }
        return urls;
    }

    /** One chain without rules, one with a condition that fires, one over a list of which a tenth is tagged. */
    @Setup
    public void prepare() {
        consumer = URL.valueOf(CONSUMER).setScopeModel(ApplicationModel.defaultModel().getDefaultModule());
        list = invokers(urls(providers, false));
        tagged = invokers(urls(providers, true));
        plain = chain(list, "");
        ruled = chain(list, RULE);
        tags = chain(tagged, "");
        call = new RpcInvocation("hello", SERVICE, SERVICE, new Class<?>[] {String.class}, new Object[] {"world"});
        grayCall = new RpcInvocation("hello", SERVICE, SERVICE, new Class<?>[] {String.class}, new Object[] {"world"});
        grayCall.setAttachment("dubbo.tag", "gray");
        expect(dubbo(), providers);
        expect(dubboCondition(), providers / 2);
        expect(dubboTag(), providers / 10);

        plainSession = session(urls(providers, false), "");
        ruledSession = session(urls(providers, false), RULE);
        tagsSession = session(urls(providers, true), "");
        int hello = plainSession.chain().internMethod("hello");
        invocation = new Invocation().methodId(hello).arguments("world");
        grayInvocation = new Invocation().methodId(hello).arguments("world").attach("dubbo.tag", "gray");
        expect(byway(), providers);
        expect(bywayCondition(), providers / 2);
        expect(bywayTag(), providers / 10);
    }

    private static void expect(List<?> chosen, int size) {
        expect(chosen.size(), size);
    }

    private static void expect(Session.View chosen, int size) {
        expect(chosen.size(), size);
    }

    private static void expect(int chosen, int size) {
        if (chosen != size) {
            throw new IllegalStateException(chosen + " providers instead of " + size);
        }
    }

    private static Session session(List<String> urls, String rule) {
        Engine engine = new Engine();
        if (!rule.isEmpty()) {
            engine.setRule(SERVICE + "::.condition-router", rule);
        }
        Chain chain = new Chain(engine, CONSUMER);
        chain.setInvokers(new Invokers(engine, urls));
        return chain.session();
    }

    private BitList<Invoker<HelloService>> invokers(List<String> urls) {
        List<Invoker<HelloService>> invokers = new ArrayList<>();
        for (String url : urls) {
            invokers.add(new Provider(URL.valueOf(url)));
        }
        return new BitList<>(invokers);
    }

    private RouterChain<HelloService> chain(BitList<Invoker<HelloService>> list, String rule) {
        // Routers are kept by service key: each chain needs a group of its own.
        URL url = consumer.addParameter("group", "g" + (rule.isEmpty() ? list.size() : "rule") + (list == tagged));
        RouterChain<HelloService> chain = RouterChain.buildChain(HelloService.class, url);
        chain.setInvokers(list, () -> {});
        if (!rule.isEmpty()) {
            for (StateRouter<HelloService> router : chain.getStateRouters()) {
                if (router instanceof ServiceStateRouter) {
                    ((ServiceStateRouter<HelloService>) router)
                            .process(new ConfigChangedEvent(SERVICE, "dubbo", rule, ConfigChangeType.MODIFIED));
                }
            }
        }
        return chain;
    }

    /** What {@code AbstractDirectory.list} does. */
    private List<Invoker<HelloService>> route(
            RouterChain<HelloService> chain, BitList<Invoker<HelloService>> list, RpcInvocation call) {
        SingleRouterChain<HelloService> single;
        BitList<Invoker<HelloService>> available;
        chain.getLock().readLock().lock();
        try {
            available = list.clone();
            single = chain.getSingleChain(consumer, available, call);
            single.getLock().readLock().lock();
        } finally {
            chain.getLock().readLock().unlock();
        }
        try {
            return single.route(consumer, available, call);
        } finally {
            single.getLock().readLock().unlock();
        }
    }

    @Benchmark
    public List<Invoker<HelloService>> dubbo() {
        return route(plain, list, call);
    }

    @Benchmark
    public List<Invoker<HelloService>> dubboCondition() {
        return route(ruled, list, call);
    }

    @Benchmark
    public List<Invoker<HelloService>> dubboTag() {
        return route(tags, tagged, grayCall);
    }

    @Benchmark
    public Session.View byway() {
        return plainSession.route(invocation);
    }

    @Benchmark
    public Session.View bywayCondition() {
        return ruledSession.route(invocation);
    }

    @Benchmark
    public Session.View bywayTag() {
        return tagsSession.route(grayInvocation);
    }
}
