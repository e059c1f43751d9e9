//! Which files hold a topic.

use super::FileOptions;
use super::read::Shelf;
use crate::error::{Error, Result, Source, Status};
use crate::rules::dialect::Dialect;
use crate::rules::{self, RuleKind};
use crate::source::providers;
use crate::source::topic::Topic;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Extensions a file may have behind its key.
const EXTENSIONS: [&str; 3] = ["", ".yaml", ".yml"];
/// Files of a directory that are looked into for the key they name.
const MOST_FILES: usize = 4096;

/// A directory in Dubbo's layout, or one file.
///
/// In a directory `D` the rule `K` is `D/dubbo/config/dubbo/K`, `D/config/dubbo/K` or `D/K`, each also with `.yaml` or
/// `.yml`; a file directly in `D` whose name ends in `condition-router` and the like also counts for the key its text
/// names, because ConfigMaps allow no colons in file names (`key: com.foo.Bar` with `scope: service` is `com.foo.Bar::`). The providers of `S` are the lines of
/// `D/dubbo/S/providers`, `D/S/providers` or `D/S.providers`, or the files of a directory of that name; routers,
/// configurators, `mapping/S`, `metadata/A/R` and `services/A` likewise.
#[derive(Debug)]
pub struct Layout {
    root: PathBuf,
    /// For one file.
    single: Option<Single>,
    /// Rules are anywhere: their keys are absolute paths.
    anywhere: bool,
}

#[derive(Debug)]
struct Single {
    topic: Option<Topic>,
}

impl Layout {
    pub(super) fn new(options: &FileOptions) -> Result<Layout> {
        let path = &options.path;
        if path.as_os_str().is_empty() {
            return Err(Error::new(Status::E_ARGUMENT, "the path is empty")
                .subject("path")
                .source(Source::Argument));
        }
        // Relative paths are of now: the host may change its directory later.
        let root = std::path::absolute(path).map_err(|error| {
            Error::new(Status::E_ARGUMENT, format!("not a usable path: {error}")).subject("path")
        })?;
        let topic = options.key.as_deref().map(Topic::parse).transpose()?;
        let single = match topic {
            Some(topic) => Some(Single { topic: Some(topic) }),
            None if root.is_file() => Some(Single { topic: None }),
            None => None,
        };
        Ok(Layout { root, single, anywhere: false })
    }

    /// Rules under keys that are absolute paths.
    pub(super) fn anywhere() -> Layout {
        Layout { root: PathBuf::from("/"), single: None, anywhere: true }
    }

    /// Why nothing can be followed: the directory itself is not there.
    pub(super) fn absence(&self) -> Option<Error> {
        if self.anywhere {
            return None;
        }
        let place = match &self.single {
            Some(_) => self.root.parent()?,
            None => &self.root,
        };
        match std::fs::metadata(place) {
            Ok(found) if found.is_dir() => None,
            Ok(_) => Some(
                Error::new(Status::E_SOURCE, "not a directory; for a file name its key")
                    .subject(place.display().to_string()),
            ),
            Err(error) => Some(
                Error::new(Status::E_SOURCE, format!("the directory cannot be read: {}", error.kind()))
                    .subject(place.display().to_string())
                    .os(error.raw_os_error().unwrap_or(0)),
            ),
        }
    }

    /// The paths a topic may be found under, the best first, without extensions.
    fn candidates(&self, topic: &Topic) -> Vec<PathBuf> {
        let root = &self.root;
        let parts: Vec<&str> = match topic {
            Topic::Rule { group, key } => vec![group, key],
            Topic::Providers(name)
            | Topic::Routers(name)
            | Topic::Configurators(name)
            | Topic::Mapping(name)
            | Topic::Instances(name) => vec![name],
            Topic::Metadata { application, revision } => vec![application, revision],
        };
        // Names come from a consumer URL: none of them may lead out of the directory.
        if parts.iter().any(|part| !is_file_name(part)) {
            return Vec::new();
        }
        let service = |name: &str, category: &str| {
            let encoded = providers::encode(name);
            vec![
                root.join("dubbo").join(&encoded).join(category),
                root.join(&encoded).join(category),
                root.join(format!("{encoded}.{category}")),
            ]
        };
        match topic {
            Topic::Rule { group, key } => vec![
                root.join("dubbo").join("config").join(&**group).join(&**key),
                root.join("config").join(&**group).join(&**key),
                root.join(&**key),
            ],
            Topic::Providers(name) => service(name, "providers"),
            Topic::Routers(name) => service(name, "routers"),
            Topic::Configurators(name) => service(name, "configurators"),
            Topic::Mapping(name) => vec![
                root.join("dubbo").join("mapping").join(&**name),
                root.join("mapping").join(&**name),
                root.join(format!("{name}.mapping")),
            ],
            Topic::Instances(name) => {
                vec![root.join("services").join(&**name), root.join(format!("{name}.instances"))]
            }
            Topic::Metadata { application, revision } => vec![
                root.join("dubbo").join("metadata").join(&**application).join(&**revision),
                root.join("metadata").join(&**application).join(&**revision),
            ],
        }
    }

    /// Directories in which something can happen that matters to these topics. Those that are not there are named too.
    pub(super) fn places(&self, topics: &BTreeSet<Topic>) -> BTreeSet<PathBuf> {
        let mut places = BTreeSet::new();
        let mut add = |path: &Path| {
            if let Some(parent) = path.parent() {
                places.insert(parent.to_owned());
                // Where a link leads, its target may be written in place.
                if let Ok(real) = std::fs::canonicalize(path)
                    && let Some(real_parent) = real.parent()
                    && real_parent != parent
                {
                    places.insert(real_parent.to_owned());
                }
            }
        };
        if self.anywhere {
            topics.iter().filter_map(named_path).for_each(add);
            return places;
        }
        // The root may be a link that is swapped, or be deleted and come back.
        add(&self.root);
        if self.single.is_some() {
            return places;
        }
        places.insert(self.root.clone());
        for topic in topics {
            for path in self.candidates(topic) {
                let mut up = path.as_path();
                while let Some(parent) = up.parent() {
                    if parent == self.root || !parent.starts_with(&self.root) {
                        break;
                    }
                    places.insert(parent.to_owned());
                    up = parent;
                }
                if path.is_dir() {
                    places.insert(path.clone());
                }
                for extension in EXTENSIONS {
                    let path = with_extension(&path, extension);
                    if path.is_symlink()
                        && let Ok(real) = std::fs::canonicalize(&path)
                        && let Some(parent) = real.parent()
                    {
                        places.insert(parent.to_owned());
                    }
                }
            }
        }
        places
    }

    /// The files that hold a topic now, in order; none when it is absent.
    pub(super) fn find(&self, topic: &Topic, shelf: &mut Shelf) -> Vec<PathBuf> {
        if self.anywhere {
            let path = named_path(topic).filter(|path| path.exists());
            return path.map(Path::to_owned).into_iter().collect();
        }
        if let Some(single) = &self.single {
            let holds = match &single.topic {
                Some(own) => own == topic,
                None => declared(&self.root, shelf).is_some_and(|own| own == *topic),
            };
            return if holds && self.root.exists() { vec![self.root.clone()] } else { Vec::new() };
        }
        for path in self.candidates(topic) {
            for extension in EXTENSIONS {
                let path = with_extension(&path, extension);
                let Ok(found) = std::fs::metadata(&path) else { continue };
                if !found.is_dir() {
                    return vec![path];
                }
                if topic.is_list() {
                    let mut files = files_of(&path);
                    if files.is_empty() {
                        // A directory without files is a list without entries, not an absent one.
                        files.push(path);
                    }
                    return files;
                }
            }
        }
        if matches!(topic, Topic::Rule { .. }) {
            for path in files_of(&self.root) {
                if declared(&path, shelf).is_some_and(|own| own == *topic) {
                    return vec![path];
                }
            }
        }
        Vec::new()
    }
}

/// The path that a rule's key is.
fn named_path(topic: &Topic) -> Option<&Path> {
    match topic {
        Topic::Rule { key, .. } => Some(Path::new(&**key)).filter(|path| path.is_absolute()),
        _ => None,
    }
}

fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    name.into()
}

fn is_file_name(part: &str) -> bool {
    !part.is_empty() && part.len() <= 240 && !matches!(part, "." | "..") && !part.contains(['/', '\0'])
}

/// The files of a directory by name; hidden ones, such as ConfigMaps' `..data` and editors' leftovers, are not files.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let name = name.to_str()?;
            let hidden = name.starts_with('.')
                || name.ends_with('~')
                || name.ends_with(".swp")
                || name.ends_with(".tmp");
            (!hidden && entry.path().is_file()).then(|| entry.path())
        })
        .take(MOST_FILES)
        .collect();
    files.sort();
    files
}

/// The topic a rule file names in its own text.
fn declared(path: &Path, shelf: &mut Shelf) -> Option<Topic> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")).unwrap_or(name);
    let kind = RuleKind::ALL.into_iter().find(|kind| {
        // `hello.condition-router`, `hello-condition-router`, `condition-router`.
        let suffix = kind.suffix();
        stem.ends_with(suffix) || suffix.strip_prefix('.').is_some_and(|word| stem.ends_with(word))
    })?;
    shelf.declared(path, |text| {
        let rule = rules::parse(kind, Dialect::Byway, text).ok().flatten()?;
        let key = rule.declared_key().ok()?;
        let of_service = rule.header().scope.as_deref() == Some("service");
        let bare = key.strip_suffix(kind.suffix()).unwrap_or(&key);
        // Dubbo's own tools write the interface alone; its service key has both colons.
        let key = match (of_service, bare.matches(':').count()) {
            (true, 0) => format!("{bare}::{}", kind.suffix()),
            (true, 1) => format!("{bare}:{}", kind.suffix()),
            _ => key,
        };
        Some(Topic::rule(key))
    })
}
