package org.example;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.dubbo.common.URL;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.rpc.Invoker;
import org.apache.dubbo.rpc.RpcException;
import org.apache.dubbo.rpc.RpcInvocation;
import org.apache.dubbo.rpc.cluster.ClusterInvoker;
import org.apache.dubbo.rpc.cluster.Directory;
import org.apache.dubbo.rpc.cluster.router.state.BitList;
import org.apache.dubbo.rpc.model.FrameworkModel;
import org.apache.dubbo.rpc.service.GenericService;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * Asks Dubbo's own consumers whom they would call: {@code Chooser <zookeeper> <cases> <answers>}.
 *
 * <p>The cases' rules and providers are written to the registry first. Then every case gets a consumer, which finds
 * them there as in any estate; whom its directory lists for a call, after all its routers, is the answer. One JSON text
 * a line: the consumer's URL, and for each call the different lists that came of its draws.
 */
public final class Chooser {
    public static void main(String[] arguments) throws Exception {
        List<JSONObject> cases = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[1]))) {
            cases.add(JSON.parseObject(line));
        }
        write(arguments[0], cases);
        Map<String, List<JSONObject>> byApplication = new LinkedHashMap<>();
        for (JSONObject one : cases) {
            byApplication.computeIfAbsent(one.getString("application"), name -> new ArrayList<>()).add(one);
        }
        List<String> answers = new ArrayList<>();
        for (Map.Entry<String, List<JSONObject>> one : byApplication.entrySet()) {
            ask(arguments[0], one.getKey(), one.getValue(), answers);
        }
        Files.write(Path.of(arguments[2]), answers);
        // Dubbo's threads are not daemons.
        Runtime.getRuntime().halt(0);
    }

    private static void write(String server, List<JSONObject> cases) throws Exception {
        ZooKeeper tree = new ZooKeeper(server, 30_000, event -> {});
        Set<String> made = new LinkedHashSet<>();
        for (JSONObject one : cases) {
            String providers = "/dubbo/" + one.getString("interface") + "/providers";
            make(tree, made, providers, "");
            for (Object url : one.getJSONArray("providers")) {
                make(tree, made, providers + "/" + URL.encode((String) url), "");
            }
            for (Map.Entry<String, Object> rule : one.getJSONObject("rules").entrySet()) {
                make(tree, made, "/dubbo/config/dubbo/" + rule.getKey(), (String) rule.getValue());
            }
        }
        tree.close();
    }

    private static void make(ZooKeeper tree, Set<String> made, String path, String data) throws Exception {
        int slash = path.lastIndexOf('/');
        if (slash > 0 && !made.contains(path.substring(0, slash))) {
            make(tree, made, path.substring(0, slash), "");
        }
        if (made.add(path)) {
            try {
                tree.create(path, data.getBytes("UTF-8"), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException known) {
                tree.setData(path, data.getBytes("UTF-8"), -1);
            }
        }
    }

    private static void ask(String server, String application, List<JSONObject> cases, List<String> answers) {
        ApplicationConfig config = new ApplicationConfig(application);
        config.setQosEnable(false);
        DubboBootstrap bootstrap = DubboBootstrap.newInstance(FrameworkModel.defaultModel())
                .application(config)
                .registry(new RegistryConfig("zookeeper://" + server));
        Map<JSONObject, ReferenceConfig<GenericService>> references = new LinkedHashMap<>();
        for (JSONObject one : cases) {
            ReferenceConfig<GenericService> reference = new ReferenceConfig<>();
            reference.setInterface(one.getString("interface"));
            reference.setGeneric("true");
            reference.setCheck(false);
            // Choosing needs no connection.
            reference.setLazy(true);
            reference.setVersion(one.getString("version"));
            reference.setGroup(one.getString("group"));
            Map<String, String> parameters = new LinkedHashMap<>();
            one.getJSONObject("consumer").forEach((key, value) -> parameters.put(key, (String) value));
            reference.setParameters(parameters);
            bootstrap.reference(reference);
            references.put(one, reference);
        }
        bootstrap.start();
        references.forEach((one, reference) -> {
            reference.get();
            Directory<?> directory = ((ClusterInvoker<?>) reference.getInvoker()).getDirectory();
            JSONObject answer = new JSONObject();
            answer.put("name", one.getString("name"));
            answer.put("consumer", directory.getConsumerUrl().toFullString());
            JSONArray calls = new JSONArray();
            JSONArray snapshots = new JSONArray();
            for (Object call : one.getJSONArray("calls")) {
                calls.add(choose(directory, one, (JSONObject) call));
                snapshots.add(explain(directory, invocation(one, (JSONObject) call)));
            }
            answer.put("calls", calls);
            answer.put("snapshots", snapshots);
            answers.add(answer.toString());
        });
    }

    /** The different lists of a call's draws. */
    private static Set<List<String>> choose(Directory<?> directory, JSONObject one, JSONObject call) {
        Set<List<String>> outcomes = new LinkedHashSet<>();
        for (int draw = 0; draw < one.getIntValue("draws"); draw++) {
            Set<String> addresses = new TreeSet<>();
            try {
                for (Invoker<?> invoker : directory.list(invocation(one, call))) {
                    addresses.add(invoker.getUrl().getAddress());
                }
            } catch (RpcException nobody) {
                if (!nobody.isForbidden()) {
                    throw nobody;
                }
            }
            outcomes.add(new ArrayList<>(addresses));
        }
        return outcomes;
    }

    /** What Dubbo itself says of the way through its routers, for people who look into a difference. */
    private static <T> String explain(Directory<T> directory, RpcInvocation invocation) {
        BitList<Invoker<T>> all = new BitList<>(directory.getAllInvokers());
        return directory.getRouterChain()
                .getCurrentChain()
                .buildRouterSnapshot(directory.getConsumerUrl(), all, invocation)
                .toString();
    }

    private static RpcInvocation invocation(JSONObject one, JSONObject call) {
        JSONArray given = call.getJSONArray("arguments");
        Class<?>[] types = new Class<?>[given.size()];
        for (int at = 0; at < types.length; at++) {
            types[at] = given.get(at).getClass();
        }
        RpcInvocation invocation = new RpcInvocation();
        invocation.setServiceName(one.getString("interface"));
        invocation.setMethodName(call.getString("method"));
        invocation.setParameterTypes(types);
        invocation.setArguments(given.toArray());
        call.getJSONObject("attachments").forEach((key, value) -> invocation.setAttachment(key, (String) value));
        return invocation;
    }
}
