package io.byway;

/** Where providers are looked for. */
public enum Discovery {
    /** Under the interface, and while nobody is there, by application. */
    AUTO(Abi.DISCOVERY_AUTO),

    /** Under the interface only. */
    INTERFACE(Abi.DISCOVERY_INTERFACE),

    /** By application only. */
    APPLICATION(Abi.DISCOVERY_APPLICATION);

    private final int number;

    Discovery(int number) {
        this.number = number;
    }

    /** The number of the C header. */
    public int number() {
        return number;
    }
}
