package io.byway.dubbo;

import io.byway.BywayException;
import io.byway.Chain;
import io.byway.Dialect;
import io.byway.Engine;
import io.byway.Invokers;
import io.byway.Session;
import io.byway.Source;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.dubbo.common.URL;
import org.apache.dubbo.common.constants.CommonConstants;
import org.apache.dubbo.common.url.component.ServiceConfigURL;
import org.apache.dubbo.common.utils.Holder;
import org.apache.dubbo.rpc.Invocation;
import org.apache.dubbo.rpc.Invoker;
import org.apache.dubbo.rpc.RpcException;
import org.apache.dubbo.rpc.cluster.router.RouterSnapshotNode;
import org.apache.dubbo.rpc.cluster.router.state.AbstractStateRouter;
import org.apache.dubbo.rpc.cluster.router.state.BitList;

/**
 * One byway chain in Dubbo's router chain. Providers are those that Dubbo notifies; rules come from Dubbo's configuration
 * centre, or from a source of byway's own.
 *
 * <p>Parameters of the consumer: {@code byway.dialect} ({@code byway}, {@code dubbo-3}, {@code dubbo-2.7}, {@code
 * dubbo-go}), {@code byway.source} ({@code file:FOLDER}, or a ZooKeeper ensemble as byway's sources take it), {@code
 * byway.router} (which of byway's routers, as Dubbo's {@code router}).
 *
 * <p>byway decides over the whole list; where routers before it have left less, those of its providers remain.
 */
public final class BywayStateRouter<T> extends AbstractStateRouter<T> {
    private static final Duration FIRST_RULES = Duration.ofSeconds(10);

    private final Rules rules;
    private final Chain chain;
    private final boolean ownSource;
    private final Map<String, Integer> methods = new HashMap<>();
    private final Set<String> keys = new HashSet<>();
    private final Set<Session> sessions = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
    private final ThreadLocal<Caller> callers = ThreadLocal.withInitial(Caller::new);
    private volatile World<T> world = new World<>(List.of(), 1);

    /** What a thread calls with. */
    private final class Caller {
        final Session session = chain.session();
        final io.byway.Invocation call = new io.byway.Invocation();

        Caller() {
            sessions.add(session);
        }
    }

    /** A list of Dubbo's, and the tag of its first provider: tags of different lists are different. */
    private static final class World<T> {
        final List<Invoker<T>> providers;
        final long firstTag;

        World(List<Invoker<T>> providers, long firstTag) {
            this.providers = providers;
            this.firstTag = firstTag;
        }
    }

    BywayStateRouter(Class<T> serviceInterface, URL url) {
        super(url);
        rules = Rules.of(moduleModel);
        String address = url.getParameter("byway.source");
        Source source = address == null || address.isEmpty() ? null : rules.source(address);
        ownSource = source != null;
        Engine engine = ownSource ? source.engine() : rules.engine();
        chain = new Chain(engine, consumer(url), options(url.getParameter("byway.dialect")));
        for (Method method : serviceInterface.getMethods()) {
            methods.computeIfAbsent(method.getName(), chain::internMethod);
        }
        if (ownSource) {
            chain.bind(source, FIRST_RULES, new Chain.BindOptions().rulesOnly(true));
        } else {
            follow();
        }
    }

    private static Chain.Options options(String dialect) {
        Chain.Options options = new Chain.Options();
        if (dialect == null || dialect.isEmpty()) {
            return options;
        }
        String wanted = dialect.replace('-', '_').replace('.', '_').toUpperCase(java.util.Locale.ROOT);
        for (Dialect one : Dialect.values()) {
            if (one.name().equals(wanted)) {
                return options.dialect(one);
            }
        }
        throw new IllegalArgumentException(
                "byway.dialect=" + dialect + ": expected byway, dubbo-3, dubbo-2.7 or dubbo-go");
    }

    /** The consumer as byway's rules see it. Dubbo's {@code router} names this router here, byway's own names others. */
    private static String consumer(URL url) {
        Map<String, String> parameters = new HashMap<>(url.getParameters());
        parameters.remove("router");
        String own = parameters.remove("byway.router");
        if (own != null && !own.isEmpty()) {
            parameters.put("router", own);
        }
        return text(CommonConstants.CONSUMER, url, parameters);
    }

    /** A provider as byway's rules see it. */
    private static String provider(URL url) {
        Map<String, String> parameters = new HashMap<>(url.getParameters());
        String application = url.getRemoteApplication();
        if (application != null) {
            parameters.putIfAbsent(CommonConstants.REMOTE_APPLICATION_KEY, application);
        }
        return text(url.getProtocol(), url, parameters);
    }

    private static String text(String protocol, URL url, Map<String, String> parameters) {
        String path = url.getPath() == null ? url.getServiceInterface() : url.getPath();
        return new ServiceConfigURL(protocol, null, null, url.getHost(), url.getPort(), path, parameters)
                .toFullString();
    }

    @Override
    public synchronized void notify(BitList<Invoker<T>> invokers) {
        List<Invoker<T>> providers = invokers.getOriginList();
        World<T> before = world;
        World<T> fresh = new World<>(providers, before.firstTag + before.providers.size());
        List<String> urls = new ArrayList<>(providers.size());
        long[] tags = new long[providers.size()];
        for (Invoker<T> one : providers) {
            tags[urls.size()] = fresh.firstTag + urls.size();
            urls.add(provider(one.getUrl()));
        }
        try (Invokers list = new Invokers(chain.engine(), urls, tags)) {
            chain.setInvokers(list);
        }
        world = fresh;
        follow();
    }

    /** Wants of the centre what the chain wants: that depends on its providers. */
    private void follow() {
        if (ownSource) {
            return;
        }
        Set<String> wanted = new HashSet<>(chain.keys());
        for (String key : wanted) {
            if (keys.add(key)) {
                rules.follow(key);
            }
        }
        for (String key : new ArrayList<>(keys)) {
            if (!wanted.contains(key) && keys.remove(key)) {
                rules.leave(key);
            }
        }
    }

    @Override
    protected BitList<Invoker<T>> doRoute(
            BitList<Invoker<T>> invokers,
            URL url,
            Invocation invocation,
            boolean needToPrintMessage,
            Holder<RouterSnapshotNode<T>> nodeHolder,
            Holder<String> messageHolder)
            throws RpcException {
        if (invokers.isEmpty()) {
            return invokers;
        }
        try {
            Caller caller = callers.get();
            fill(caller.call, invocation);
            if (needToPrintMessage) {
                messageHolder.set(chain.explain(caller.call));
            }
            World<T> before = world;
            if (before.providers != invokers.getOriginList()) {
                // Dubbo shows a router every list before it asks about it.
                throw new RpcException("byway was not told of this list of " + invokers.getOriginList().size());
            }
            long[] tags = caller.session.tags(caller.call);
            int size = before.providers.size();
            if (tags.length == size) {
                return invokers;
            }
            BitList<Invoker<T>> left = new BitList<>(before.providers, true);
            for (long tag : tags) {
                long row = tag - before.firstTag;
                if (row < 0 || row >= size) {
                    throw new RpcException("the list has changed while a call was routed");
                }
                left.addIndex((int) row);
            }
            return invokers.and(left);
        } catch (BywayException failed) {
            throw new RpcException("byway cannot route " + invocation.getMethodName() + ": " + failed.getMessage(), failed);
        }
    }

    private void fill(io.byway.Invocation call, Invocation invocation) {
        String method = invocation.getMethodName();
        Integer id = methods.get(method);
        call.reset();
        if (id != null) {
            call.methodId(id);
        } else {
            call.method(method);
        }
        Object[] arguments = invocation.getArguments();
        boolean generic = id == null && method.startsWith("$invoke");
        if (arguments != null && arguments.length > 0 && (generic || rules.lookAtArguments())) {
            call.arguments(texts(arguments, generic));
        }
        invocation.foreachAttachment(
                entry -> {
                    if (entry.getValue() instanceof String) {
                        call.attach(entry.getKey(), (String) entry.getValue());
                    }
                });
    }

    /** Of a generic call, behind the method and its types, the method's own arguments. */
    private static String[] texts(Object[] arguments, boolean generic) {
        Object[] given = arguments;
        if (generic && arguments.length == 3 && arguments[2] instanceof Object[]) {
            Object[] own = (Object[]) arguments[2];
            given = new Object[2 + own.length];
            given[0] = arguments[0];
            given[1] = "";
            System.arraycopy(own, 0, given, 2, own.length);
        }
        String[] texts = new String[given.length];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = given[i] == null ? null : String.valueOf(given[i]);
        }
        return texts;
    }

    @Override
    protected String doBuildSnapshot() {
        return chain.status();
    }

    @Override
    public synchronized void stop() {
        for (String key : keys) {
            rules.leave(key);
        }
        keys.clear();
        synchronized (sessions) {
            sessions.forEach(Session::close);
        }
        chain.close();
    }
}
