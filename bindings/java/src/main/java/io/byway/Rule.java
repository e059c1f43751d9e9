package io.byway;

/** What can be said of rules without a chain: their keys, and what is wrong with a text. */
public final class Rule {
    static {
        Library.load();
    }

    private Rule() {}

    /** The key of a service's condition rule in byway's dialect. */
    public static String key(String serviceInterface) {
        return key(Dialect.BYWAY, RuleKind.CONDITION, serviceInterface, "", "");
    }

    /**
     * The key under which a configuration centre holds a service's rule.
     *
     * @param version may be empty
     * @param group may be empty
     */
    public static String key(Dialect dialect, RuleKind kind, String serviceInterface, String version, String group) {
        return Texts.of(
                key(
                        dialect.number(),
                        kind.number(),
                        new byte[0],
                        Texts.utf8(serviceInterface, "interface"),
                        Texts.utf8(version, "version"),
                        Texts.utf8(group, "group")));
    }

    /** The key of an application's rule. */
    public static String applicationKey(Dialect dialect, RuleKind kind, String application) {
        byte[] none = new byte[0];
        return Texts.of(
                key(dialect.number(), kind.number(), Texts.utf8(application, "application"), none, none, none));
    }

    /**
     * Everything that is wrong with a rule text, or looks wrong, a line each as compilers write them; empty when nothing is.
     */
    public static String check(Dialect dialect, RuleKind kind, String text) {
        return check(dialect, kind, text, null);
    }

    /** The same, naming also what fits none of these providers; null for none. */
    public static String check(Dialect dialect, RuleKind kind, String text, Invokers providers) {
        return checked(dialect, kind, text, providers, Abi.FORMAT_TEXT);
    }

    /**
     * The same as JSON: {@code {"refused": bool, "problems": [{"severity", "line", "column", "offset", "message"}]}}.
     */
    public static String checkJson(Dialect dialect, RuleKind kind, String text, Invokers providers) {
        return checked(dialect, kind, text, providers, Abi.FORMAT_JSON);
    }

    private static String checked(Dialect dialect, RuleKind kind, String text, Invokers providers, int format) {
        byte[] rule = Texts.utf8(text, "text");
        try (Handle.Held held = new Handle.Held()) {
            return Texts.of(check(dialect.number(), kind.number(), rule, held.of(providers), format));
        }
    }

    private static native byte[] key(
            int dialect, int kind, byte[] application, byte[] serviceInterface, byte[] version, byte[] group);

    private static native byte[] check(int dialect, int kind, byte[] text, long providers, int format);
}
