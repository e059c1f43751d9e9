package io.byway.dubbo;

import io.byway.BywayException;
import io.byway.Engine;
import io.byway.Source;
import io.byway.Status;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.dubbo.common.config.configcenter.ConfigChangeType;
import org.apache.dubbo.common.config.configcenter.ConfigChangedEvent;
import org.apache.dubbo.common.config.configcenter.ConfigurationListener;
import org.apache.dubbo.common.logger.Logger;
import org.apache.dubbo.common.logger.LoggerFactory;
import org.apache.dubbo.common.resource.Disposable;
import org.apache.dubbo.rpc.cluster.governance.GovernanceRuleRepository;
import org.apache.dubbo.rpc.model.ModuleModel;

/**
 * One engine for a Dubbo module, and the rules that its chains want, as Dubbo's configuration centre has them. Registered
 * with the module, which disposes of it.
 */
public final class Rules implements Disposable {
    private static final Logger LOG = LoggerFactory.getLogger(Rules.class);

    private final GovernanceRuleRepository repository;
    private final Engine engine = new Engine();
    private final Map<String, Followed> followed = new HashMap<>();
    private final Map<String, Source> sources = new HashMap<>();

    /** Keys whose rule looks at the arguments of a call: only then are they made texts. */
    private final Map<String, Boolean> lookAtArguments = new ConcurrentHashMap<>();

    /** Made by Dubbo. */
    public Rules(ModuleModel module) {
        repository = module.getExtensionLoader(GovernanceRuleRepository.class).getDefaultExtension();
    }

    static Rules of(ModuleModel module) {
        return module.getBeanFactory().getOrRegisterBean(Rules.class);
    }

    Engine engine() {
        return engine;
    }

    boolean lookAtArguments() {
        return !lookAtArguments.isEmpty();
    }

    /** A source of byway's own; one for each address, with an engine of its own: rules are an engine's. */
    synchronized Source source(String address) {
        // What its rules look at is not seen here.
        lookAtArguments.put(address, true);
        return sources.computeIfAbsent(address, Rules::open);
    }

    private static Source open(String address) {
        Engine own = new Engine();
        try {
            return address.startsWith("file:")
                    ? Source.file(own, address.substring("file:".length()))
                    : Source.zooKeeper(own, address);
        } catch (RuntimeException refused) {
            own.close();
            throw refused;
        }
    }

    /** Follows a key for one chain more. */
    synchronized void follow(String key) {
        Followed one = followed.computeIfAbsent(key, Followed::new);
        if (one.chains++ == 0 && repository != null) {
            repository.addListener(key, GovernanceRuleRepository.DEFAULT_GROUP, one);
            String text = repository.getRule(key, GovernanceRuleRepository.DEFAULT_GROUP);
            if (text != null && !text.isEmpty()) {
                one.first(text);
            }
        }
    }

    /** One chain less wants a key. */
    synchronized void leave(String key) {
        Followed one = followed.get(key);
        if (one != null && --one.chains == 0) {
            followed.remove(key);
            if (repository != null) {
                repository.removeListener(key, GovernanceRuleRepository.DEFAULT_GROUP, one);
            }
        }
    }

    @Override
    public synchronized void destroy() {
        engine.close();
        sources.values().forEach(source -> source.engine().close());
    }

    /** One key in the centre. */
    private final class Followed implements ConfigurationListener {
        private final String key;
        private int chains;
        private boolean told;

        Followed(String key) {
            this.key = key;
        }

        @Override
        public synchronized void process(ConfigChangedEvent event) {
            told = true;
            put(event.getChangeType() == ConfigChangeType.DELETED ? null : event.getContent());
        }

        /** What was read; an event that came meanwhile is newer. */
        synchronized void first(String text) {
            if (!told) {
                put(text);
            }
        }

        private void put(String text) {
            try {
                if (text == null || text.isBlank()) {
                    lookAtArguments.remove(key);
                    remove();
                } else {
                    if (text.contains("argument") || key.endsWith(".script-router")) {
                        lookAtArguments.put(key, true);
                    } else {
                        lookAtArguments.remove(key);
                    }
                    engine.setRule(key, text);
                }
            } catch (BywayException.Shutdown | BywayException.Handle over) {
                // The module is gone.
            } catch (BywayException refused) {
                // The last good one stays in force; `status` of the chain says so too.
                LOG.warn("byway refuses the rule " + key + ": " + refused.getMessage());
            }
        }

        private void remove() {
            try {
                engine.removeRule(key);
            } catch (BywayException.Argument none) {
                if (none.code() != Status.E_NOT_FOUND) {
                    throw none;
                }
            }
        }
    }
}
