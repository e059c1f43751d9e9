package io.byway.dubbo;

import org.apache.dubbo.common.URL;
import org.apache.dubbo.rpc.cluster.router.state.StateRouter;
import org.apache.dubbo.rpc.cluster.router.state.StateRouterFactory;

/**
 * Dubbo's way to byway: with the consumer's parameter {@code router=-default,byway} byway stands in for all of Dubbo's own
 * routers, with {@code router=byway} it comes beside them.
 */
public final class BywayStateRouterFactory implements StateRouterFactory {
    @Override
    public <T> StateRouter<T> getRouter(Class<T> serviceInterface, URL url) {
        return new BywayStateRouter<>(serviceInterface, url);
    }
}
