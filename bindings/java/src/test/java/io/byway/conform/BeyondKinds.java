package io.byway.conform;

import java.util.HashMap;
import java.util.Map;

/** Kinds about what is not, or not so, on this side of the boundary, each with its reason. */
final class BeyondKinds {
    static final Map<String, Case.Run> KINDS = new HashMap<>();

    static {
        because("lists of rows are inside a chain", "bitlist");
        because("upstream's matcher; overrides read addresses as conditions do", "address_match");
        because("how upstream hands rules to its listeners", "mesh-manager", "mesh-dispatch");
        because("what a text is read as, where it does not show in routing", "mesh-parse");
        because(
                "which objects upstream shares and keeps",
                "chain-cache",
                "chain-sharing",
                "chain-snapshot",
                "snapshot-switch");
        because("lists of what cannot be reached; a host gives availability to a pick", "directory");
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
