package org.example;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * A consumer of Dubbo's: {@code Consumer <zookeeper> [ROUTERS]}. Without more it has Dubbo's own routers; with {@code
 * -default,byway} byway stands in for them. Prints as the other callers do.
 */
public final class Consumer {
    public static void main(String[] arguments) throws Exception {
        ReferenceConfig<HelloService> reference = new ReferenceConfig<>();
        reference.setInterface(HelloService.class);
        reference.setCheck(false);
        reference.setRetries(2);
        boolean own = arguments.length < 2;
        if (!own) {
            reference.setParameters(Map.of("router", arguments[1]));
        }
        ApplicationConfig application = new ApplicationConfig(own ? "hello-dubbo" : "hello-java");
        application.setQosEnable(false);
        DubboBootstrap.getInstance()
                .application(application)
                .registry(new RegistryConfig("zookeeper://" + arguments[0]))
                .reference(reference)
                .start();
        HelloService service = reference.get();
        System.out.println("ready");
        while (true) {
            call("hello", service::hello);
            call("hello2", service::hello2);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private static void call(String method, Function<String, String> stub) {
        String answer = "none";
        // Dubbo's fail-over does not try again what was under way when its provider was killed; both methods may be.
        for (int tries = 0; tries < 3; tries++) {
            try {
                answer = stub.apply("world");
                break;
            } catch (RuntimeException failure) {
                boolean nobody = String.valueOf(failure.getMessage()).contains("No provider available");
                answer = nobody ? "none" : "fail";
                if (nobody) {
                    break;
                }
            }
        }
        System.out.println(System.currentTimeMillis() + " " + method + " " + answer);
    }
}
