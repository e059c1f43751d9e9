package io.byway;

import java.util.Map;

/**
 * Where the system's proxy settings are found, for {@link ProxySelector#system}; nothing else is read. {@link #here} is this
 * process's.
 */
public final class SystemSettings {
    Texts names;
    Texts values;
    PacOptions pac;

    /** In the order of {@code byway_system_options}. */
    final byte[][] parts = new byte[8][];

    /** Those of this process and its user. */
    public static SystemSettings here() {
        Map<String, String> environment = System.getenv();
        return new SystemSettings()
                .desktop(environment.getOrDefault("XDG_CURRENT_DESKTOP", ""))
                .home(System.getProperty("user.home", ""))
                .configHome(environment.getOrDefault("XDG_CONFIG_HOME", ""))
                .root("/");
    }

    /** Environment variables; by default the process's own, read at creation and at every refresh. */
    public SystemSettings variables(Map<String, String> variables) {
        names = Texts.pack(variables.keySet(), "variables");
        values = Texts.pack(variables.values(), "variables");
        return this;
    }

    /** {@code XDG_CURRENT_DESKTOP}: whose settings count; empty: those that exist, GNOME first. */
    public SystemSettings desktop(String desktop) {
        parts[0] = Texts.utf8(desktop, "desktop");
        return this;
    }

    /** Home directory whose {@code .config} holds the desktops' settings; empty: none is looked at. */
    public SystemSettings home(String home) {
        parts[1] = Texts.utf8(home, "home");
        return this;
    }

    /** {@code XDG_CONFIG_HOME}, instead of {@code .config} below home. */
    public SystemSettings configHome(String home) {
        parts[2] = Texts.utf8(home, "configHome");
        return this;
    }

    /** Directory in place of {@code /} for {@code etc/sysconfig/proxy}; empty: not looked at. */
    public SystemSettings root(String root) {
        parts[3] = Texts.utf8(root, "root");
        return this;
    }

    /** GNOME's settings in place of a file: the content of a dconf database. */
    public SystemSettings dconf(byte[] content) {
        parts[4] = content.clone();
        return this;
    }

    /** GNOME's settings in place of a file: GLib's keyfile. */
    public SystemSettings keyfile(byte[] content) {
        parts[5] = content.clone();
        return this;
    }

    /** KDE's settings in place of {@code kioslaverc}. */
    public SystemSettings kioslaverc(byte[] content) {
        parts[6] = content.clone();
        return this;
    }

    /** The content of {@code /etc/sysconfig/proxy}. */
    public SystemSettings sysconfig(byte[] content) {
        parts[7] = content.clone();
        return this;
    }

    /** How a script that the settings name is run; its URL and source are not used. */
    public SystemSettings pac(PacOptions pac) {
        this.pac = pac;
        return this;
    }
}
