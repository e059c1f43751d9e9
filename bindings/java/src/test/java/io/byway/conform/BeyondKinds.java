package io.byway.conform;

import java.util.HashMap;
import java.util.Map;

/** Kinds about what is not, or not so, on this side of the boundary, each with its reason. */
final class BeyondKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        because("how upstream hands rules to its listeners", "mesh-manager", "mesh-dispatch");
        because("byway has no such router", "polaris");
        because("a rule has the key it is set under", "tag-static-config");
    }

    private BeyondKinds() {}

    private static void because(String reason, String... kinds) {
        for (String kind : kinds) {
            KINDS.put(
                    "dubbo_chain/" + kind,
                    one -> {
                        throw new Case.Skips(reason);
                    });
        }
    }
}
