//! What can be followed in a source, named as Dubbo lays it out in a tree.

use crate::error::{Error, Result, Source, Status};
use std::fmt;
use std::sync::Arc;

/// Group of the rules of routers and configurators.
pub const GROUP: &str = "dubbo";

/// Longest name of a key, service or application, in bytes.
pub const MAX_NAME: usize = 1024;

/// One thing a source can be asked for and followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// A text of the config centre: `/dubbo/config/<group>/<key>`.
    Rule {
        /// Group, [`GROUP`] for routers.
        group: Arc<str>,
        /// Key, for example `com.foo.Bar::.condition-router`.
        key: Arc<str>,
    },
    /// Provider URLs of a service: children of `/dubbo/<interface>/providers`.
    Providers(Arc<str>),
    /// Static routers of a service: children of `/dubbo/<interface>/routers`.
    Routers(Arc<str>),
    /// Overrides of a service, as URLs: children of `/dubbo/<interface>/configurators`.
    Configurators(Arc<str>),
    /// Applications that serve an interface, comma separated: `/dubbo/mapping/<interface>`.
    Mapping(Arc<str>),
    /// Instances of an application, each a JSON text: children of `/services/<application>`.
    Instances(Arc<str>),
    /// What the instances of one revision serve, JSON: `/dubbo/metadata/<application>/<revision>`.
    Metadata {
        /// The application.
        application: Arc<str>,
        /// The revision its instances name.
        revision: Arc<str>,
    },
}

/// The state of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The centre does not have it.
    Absent,
    /// A text; may be empty.
    Text(Arc<str>),
    /// A list; may be empty.
    List(Arc<[Arc<str>]>),
}

impl Value {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The list; empty when absent.
    pub fn list(&self) -> &[Arc<str>] {
        match self {
            Value::List(list) => list,
            _ => &[],
        }
    }

    /// Equality that looks at a list's texts only where they are not the same object.
    pub(crate) fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
            }
            _ => self == other,
        }
    }
}

impl Topic {
    /// A rule in the routers' group.
    pub fn rule(key: impl Into<Arc<str>>) -> Topic {
        Topic::Rule { group: GROUP.into(), key: key.into() }
    }

    /// True when its state is a list.
    pub fn is_list(&self) -> bool {
        matches!(
            self,
            Topic::Providers(_) | Topic::Routers(_) | Topic::Configurators(_) | Topic::Instances(_)
        )
    }

    /// The topic of a name as a host writes it: a rule key (`com.foo.Bar::.condition-router`), or a path as in
    /// Dubbo's tree, with or without the leading `/dubbo/` (`com.foo.Bar/providers`, `mapping/com.foo.Bar`,
    /// `/services/app`, `config/dubbo/app.tag-router`, `metadata/app/rev`).
    ///
    /// # Errors
    /// `E_ARGUMENT` with what was expected.
    pub fn parse(name: &str) -> Result<Topic> {
        let refused = |why: &str| {
            Err(Error::new(Status::E_ARGUMENT, format!("{why}; found '{}'", name.escape_debug()))
                .subject("key")
                .source(Source::Argument))
        };
        if name.is_empty() || name.len() > MAX_NAME {
            return refused("a key has 1 to 1024 bytes");
        }
        if name.chars().any(char::is_control) {
            return refused("a key has no control characters");
        }
        if let Some(application) = name.strip_prefix("/services/") {
            return match application {
                "" => refused("expected /services/<application>"),
                _ if application.contains('/') => refused("expected /services/<application>"),
                _ => Ok(Topic::Instances(application.into())),
            };
        }
        let path = name.strip_prefix("/dubbo/").unwrap_or(name);
        let words: Vec<&str> = path.split('/').collect();
        if words.iter().any(|word| word.is_empty() || *word == "." || *word == "..") {
            return refused("a path has no empty parts, '.' or '..'");
        }
        match words.as_slice() {
            [key] => Ok(Topic::rule(*key)),
            ["config", group, key] => Ok(Topic::Rule { group: (*group).into(), key: (*key).into() }),
            ["mapping", service] => Ok(Topic::Mapping((*service).into())),
            ["metadata", application, revision] => {
                Ok(Topic::Metadata { application: (*application).into(), revision: (*revision).into() })
            }
            [service, "providers"] => Ok(Topic::Providers((*service).into())),
            [service, "routers"] => Ok(Topic::Routers((*service).into())),
            [service, "configurators"] => Ok(Topic::Configurators((*service).into())),
            _ => refused(
                "expected a rule key, <interface>/providers, /routers or /configurators, mapping/<interface>, \
                 metadata/<application>/<revision>, config/<group>/<key> or /services/<application>",
            ),
        }
    }

    /// The path in Dubbo's tree below `root` (`/dubbo`); names are encoded as Dubbo encodes them.
    pub fn path(&self, root: &str, services: &str) -> String {
        let service_path = |service: &str, category: &str| {
            format!("{root}/{}/{category}", super::providers::encode(service))
        };
        match self {
            Topic::Rule { group, key } => format!("{root}/config/{group}/{key}"),
            Topic::Providers(service) => service_path(service, "providers"),
            Topic::Routers(service) => service_path(service, "routers"),
            Topic::Configurators(service) => service_path(service, "configurators"),
            Topic::Mapping(service) => format!("{root}/mapping/{service}"),
            Topic::Instances(application) => format!("{services}/{application}"),
            Topic::Metadata { application, revision } => format!("{root}/metadata/{application}/{revision}"),
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topic::Rule { group, key } if &**group == GROUP => f.write_str(key),
            _ => f.write_str(&self.path("/dubbo", "/services")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_dubbos() {
        let table = [
            ("com.foo.Bar::.condition-router", "/dubbo/config/dubbo/com.foo.Bar::.condition-router"),
            ("config/other/k", "/dubbo/config/other/k"),
            ("com.foo.Bar/providers", "/dubbo/com.foo.Bar/providers"),
            ("/dubbo/com.foo.Bar/routers", "/dubbo/com.foo.Bar/routers"),
            ("com.foo.Bar/configurators", "/dubbo/com.foo.Bar/configurators"),
            ("mapping/com.foo.Bar", "/dubbo/mapping/com.foo.Bar"),
            ("/services/shop", "/services/shop"),
            ("metadata/shop/a1", "/dubbo/metadata/shop/a1"),
        ];
        for (name, path) in table {
            let topic = Topic::parse(name).unwrap();
            assert_eq!(topic.path("/dubbo", "/services"), path);
            assert_eq!(Topic::parse(&topic.to_string()).unwrap(), topic, "{name}");
        }
        for bad in
            ["", "a//b", "com.foo.Bar/consumers", "/services/", "/services/a/b", "a/../providers", "a\nb"]
        {
            let error = Topic::parse(bad).unwrap_err();
            assert_eq!(error.status(), Status::E_ARGUMENT, "{bad}");
        }
    }
}
