package io.byway;

/** Rule languages. */
public enum RuleKind {
    /** Conditions of a service, application or provider application: {@code .condition-router}. */
    CONDITION(Abi.RULE_CONDITION),

    /** Tags of a provider application: {@code .tag-router}. */
    TAG(Abi.RULE_TAG),

    /** Affinity of a service or provider application: {@code .affinity-router}. */
    AFFINITY(Abi.RULE_AFFINITY),

    /** VirtualService and DestinationRule of a provider application: {@code .MESHAPPRULE}. */
    MESH(Abi.RULE_MESH),

    /** A script of a provider application: {@code .script-router}. */
    SCRIPT(Abi.RULE_SCRIPT);

    private final int number;

    RuleKind(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }
}
