package io.byway.dubbo;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.dubbo.common.config.configcenter.ConfigChangeType;
import org.apache.dubbo.common.config.configcenter.ConfigChangedEvent;
import org.apache.dubbo.common.config.configcenter.ConfigurationListener;
import org.apache.dubbo.common.config.configcenter.DynamicConfiguration;

/** A configuration centre of Dubbo's in memory: telling of a change is done when {@link #set} returns. */
final class MemoryCenter implements DynamicConfiguration {
    private final Map<String, String> texts = new ConcurrentHashMap<>();
    private final Map<String, List<ConfigurationListener>> listeners = new ConcurrentHashMap<>();

    void set(String key, String text) {
        ConfigChangeType type = ConfigChangeType.MODIFIED;
        if (text == null) {
            texts.remove(key);
            type = ConfigChangeType.DELETED;
        } else {
            texts.put(key, text);
        }
        for (ConfigurationListener one : followers(key)) {
            one.process(new ConfigChangedEvent(key, DEFAULT_GROUP, text == null ? "" : text, type));
        }
    }

    List<ConfigurationListener> followers(String key) {
        return listeners.getOrDefault(key, List.of());
    }

    @Override
    public void close() {}

    @Override
    public void addListener(String key, String group, ConfigurationListener listener) {
        listeners.computeIfAbsent(key, any -> new CopyOnWriteArrayList<>()).add(listener);
    }

    @Override
    public void removeListener(String key, String group, ConfigurationListener listener) {
        listeners.getOrDefault(key, List.of()).remove(listener);
    }

    @Override
    public String getConfig(String key, String group, long timeout) {
        return texts.get(key);
    }

    @Override
    public Object getInternalProperty(String key) {
        return texts.get(key);
    }
}
