package org.example;

import org.apache.dubbo.common.URL;
import org.apache.dubbo.rpc.Invocation;
import org.apache.dubbo.rpc.Invoker;
import org.apache.dubbo.rpc.Result;

/** A provider that is only chosen, never called. */
final class Provider implements Invoker<Chains.HelloService> {
    private final URL url;

    Provider(URL url) {
        this.url = url;
    }

    @Override
    public Class<Chains.HelloService> getInterface() {
        return Chains.HelloService.class;
    }

    @Override
    public Result invoke(Invocation invocation) {
        throw new UnsupportedOperationException();
    }

    @Override
    public URL getUrl() {
        return url;
    }

    @Override
    public boolean isAvailable() {
        return true;
    }

    @Override
    public void destroy() {}
}
