package org.example;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

/** One provider: {@code Provider <zookeeper> <port>}. Triple, so that plain HTTP and JSON can call it. */
public final class Provider {
    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[1]);
        ServiceConfig<HelloService> service = new ServiceConfig<>();
        service.setInterface(HelloService.class);
        // Who has just started gets few calls for ten minutes; here it is to be seen at once.
        service.setWarmup(0);
        service.setRef(new HelloService() {
            @Override
            public String hello(String name) {
                return String.valueOf(port);
            }

            @Override
            public String hello2(String name) {
                return String.valueOf(port);
            }
        });
        ApplicationConfig application = new ApplicationConfig("hello-provider");
        application.setQosEnable(false);
        DubboBootstrap bootstrap = DubboBootstrap.getInstance()
                .application(application)
                .registry(new RegistryConfig("zookeeper://" + arguments[0]))
                .protocol(new ProtocolConfig("tri", port))
                .service(service)
                .start();
        System.out.println("serving on " + port);
        bootstrap.await();
    }
}
