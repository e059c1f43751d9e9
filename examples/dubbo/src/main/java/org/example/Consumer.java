package org.example;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** Dubbo's own consumer with Dubbo's own routers, beside byway's: {@code Consumer <zookeeper>}. Prints as they do. */
public final class Consumer {
    public static void main(String[] arguments) throws Exception {
        ReferenceConfig<HelloService> reference = new ReferenceConfig<>();
        reference.setInterface(HelloService.class);
        reference.setCheck(false);
        reference.setRetries(2);
        ApplicationConfig application = new ApplicationConfig("hello-dubbo");
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
        String answer;
        try {
            answer = stub.apply("world");
        } catch (RuntimeException failure) {
            String text = String.valueOf(failure.getMessage());
            answer = text.contains("No provider available") ? "none" : "fail";
        }
        System.out.println(System.currentTimeMillis() + " " + method + " " + answer);
    }
}
