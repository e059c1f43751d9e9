package io.byway.conform;

import java.util.Map;

final class ProxyKinds {
    static final Map<String, Case.Run> KINDS = Map.of();

    private ProxyKinds() {}
}
