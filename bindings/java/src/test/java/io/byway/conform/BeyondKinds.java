package io.byway.conform;

import java.util.HashMap;
import java.util.Map;

/** Kinds about what is not, or not so, on this side of the boundary, each with its reason. */
final class BeyondKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        because("how upstream hands rules to its listeners", "mesh-manager", "mesh-dispatch");
        because("byway has no such router", "polaris");
        because("tests/c/misuse.c, tests/c/conform/boundary.c and the bindings' own tests", "bugs/ffi_null", "bugs/ffi_sequence");
        because("ProcessTest loads it from elsewhere", "bugs/load");
        because("Android is no platform of byway's", "bugs/artifact");
        because("a rule has the key it is set under", "tag-static-config");
    }

    private BeyondKinds() {}

    private static void because(String reason, String... kinds) {
        for (String kind : kinds) {
            KINDS.put(
                    kind.contains("/") ? kind : "dubbo_chain/" + kind,
                    one -> {
                        throw new Case.Skips(reason);
                    });
        }
    }
}
