//! Application-level discovery: instances of applications instead of URLs of interfaces.
//!
//! A registry says which applications serve an interface (`/dubbo/mapping/<interface>`), and holds one JSON text per
//! instance (`/services/<application>/<id>`): address, ports by protocol and the revision of what it serves. What a
//! revision serves is JSON under `/dubbo/metadata/<application>/<revision>`, when the providers publish it there
//! (`metadata-type=remote`). When they keep it to themselves, which is Dubbo's default and needs a call to each, an
//! instance counts as serving the interface that its application is mapped to, with the instance's own parameters.

use super::topic::MAX_NAME;
use crate::error::{Error, Position, Result, Source, Status};
use serde_json::Value as Json;

/// Applications one interface may be mapped to.
pub const MAX_APPLICATIONS: usize = 64;

/// The applications of a mapping text.
pub fn applications(text: &str) -> Vec<&str> {
    let mut list: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty() && name.len() <= MAX_NAME && !name.contains(['/', '\0']))
        .collect();
    list.sort_unstable();
    list.dedup();
    list.truncate(MAX_APPLICATIONS);
    list
}

/// One instance of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Host name or address.
    pub host: String,
    /// Protocol and port of each endpoint; a protocol may be empty when only a port is known.
    pub endpoints: Vec<(String, u16)>,
    /// Revision of what it serves; empty when it says none (`0`: nothing).
    pub revision: String,
    /// Its own parameters: weight, tag, labels.
    pub parameters: Vec<(String, String)>,
}

impl Instance {
    /// Reads the text a registry holds for an instance; `None`: it is disabled.
    ///
    /// # Errors
    /// `E_SYNTAX`: not JSON, or without an address.
    pub fn read(text: &str) -> Result<Option<Instance>> {
        let json = parse(text)?;
        let host = json["address"].as_str().or_else(|| json["host"].as_str()).unwrap_or_default();
        if host.is_empty() || host.contains(['/', '?', '@']) {
            return Err(wrong("an instance needs an 'address'"));
        }
        if json["enabled"].as_bool() == Some(false) || json["healthy"].as_bool() == Some(false) {
            return Ok(None);
        }
        let port = json["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
        // Curator keeps metadata in the payload; other registries beside the address.
        let metadata = match &json["payload"]["metadata"] {
            Json::Object(map) => map,
            _ => match &json["metadata"] {
                Json::Object(map) => map,
                _ => &serde_json::Map::new(),
            },
        };
        let mut instance = Instance {
            host: host.to_owned(),
            endpoints: Vec::new(),
            revision: String::new(),
            parameters: Vec::new(),
        };
        for (key, value) in metadata {
            let Some(text) = value.as_str() else { continue };
            match key.as_str() {
                "dubbo.metadata.revision" => instance.revision = text.to_owned(),
                "dubbo.endpoints" => instance.endpoints = endpoints(text)?,
                "dubbo.metadata-service.url-params" => {
                    // Its own URL says the rest only when nothing better does.
                    if let Ok(own) = serde_json::from_str::<Json>(text)
                        && let Some(protocol) = own["protocol"].as_str()
                        && instance.endpoints.is_empty()
                    {
                        instance.endpoints = vec![(protocol.to_owned(), port)];
                    }
                }
                key if key.starts_with("dubbo.metadata") => {}
                key if plain(key) && plain(text) => {
                    instance.parameters.push((key.to_owned(), text.to_owned()))
                }
                _ => {}
            }
        }
        if instance.endpoints.is_empty() && port > 0 {
            instance.endpoints = vec![(String::new(), port)];
        }
        if instance.endpoints.is_empty() {
            return Err(wrong("an instance needs a port"));
        }
        Ok(Some(instance))
    }
}

/// May stand in a URL as it is.
fn plain(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(['&', ';', '=', '?', '#', '{', '"'])
        && !text.contains(char::is_control)
}

fn endpoints(text: &str) -> Result<Vec<(String, u16)>> {
    let json = parse(text)?;
    let list = json.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(list
        .iter()
        .filter_map(|one| {
            let port = u16::try_from(one["port"].as_u64()?).ok().filter(|port| *port > 0)?;
            let protocol = one["protocol"].as_str().unwrap_or_default();
            plain(protocol).then(|| (protocol.to_owned(), port))
        })
        .collect())
}

/// One service of a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Interface.
    pub interface: String,
    /// Group; may be empty.
    pub group: String,
    /// Version; may be empty.
    pub version: String,
    /// Protocol.
    pub protocol: String,
    /// Port; 0: the instance's endpoint of this protocol.
    pub port: u16,
    /// Path; the interface when it names none.
    pub path: String,
    /// Its parameters.
    pub parameters: Vec<(String, String)>,
}

/// What a revision serves: the text of `/dubbo/metadata/<application>/<revision>`.
///
/// # Errors
/// `E_SYNTAX`: not JSON.
pub fn services(text: &str) -> Result<Vec<Service>> {
    let json = parse(text)?;
    let Some(map) = json["services"].as_object() else { return Ok(Vec::new()) };
    let text = |json: &Json, name: &str| {
        json[name].as_str().filter(|text| plain(text)).unwrap_or_default().to_owned()
    };
    Ok(map
        .values()
        .map(|one| {
            let interface = text(one, "name");
            let path = text(one, "path");
            Service {
                group: text(one, "group"),
                version: text(one, "version"),
                protocol: text(one, "protocol"),
                port: one["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
                path: if path.is_empty() { interface.clone() } else { path },
                parameters: one["params"].as_object().map(parameters).unwrap_or_default(),
                interface,
            }
        })
        .filter(|service| !service.interface.is_empty())
        .collect())
}

fn parameters(map: &serde_json::Map<String, Json>) -> Vec<(String, String)> {
    map.iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .filter(|(key, value)| plain(key) && (value.is_empty() || !value.contains(['&', ';'])))
        .collect()
}

/// Provider URLs of an interface on one instance. `known`: what its revision serves, if that can be read.
pub fn urls(
    application: &str,
    instance: &Instance,
    interface: &str,
    known: Option<&[Service]>,
) -> Vec<String> {
    let mut list = Vec::new();
    match known {
        Some(services) => {
            for service in services.iter().filter(|service| service.interface == interface) {
                let endpoint = |protocol: &str| {
                    instance.endpoints.iter().find(|(own, _)| own == protocol).map(|(_, port)| *port)
                };
                let port =
                    Some(service.port).filter(|port| *port > 0).or_else(|| endpoint(&service.protocol));
                let Some(port) = port.or_else(|| instance.endpoints.first().map(|(_, port)| *port)) else {
                    continue;
                };
                let mut url = head(&service.protocol, &instance.host, port, &service.path);
                let mut extra = vec![("interface", interface)];
                if !service.group.is_empty() {
                    extra.push(("group", &service.group));
                }
                if !service.version.is_empty() {
                    extra.push(("version", &service.version));
                }
                finish(&mut url, application, instance, &service.parameters, &extra);
                list.push(url);
            }
        }
        None => {
            for (protocol, port) in &instance.endpoints {
                let mut url = head(protocol, &instance.host, *port, interface);
                finish(&mut url, application, instance, &[], &[("interface", interface)]);
                list.push(url);
            }
        }
    }
    list
}

fn head(protocol: &str, host: &str, port: u16, path: &str) -> String {
    let protocol = if protocol.is_empty() { "dubbo" } else { protocol };
    if host.contains(':') && !host.starts_with('[') {
        format!("{protocol}://[{host}]:{port}/{path}")
    } else {
        format!("{protocol}://{host}:{port}/{path}")
    }
}

/// Parameters behind the address; the instance's own win over the service's.
fn finish(
    url: &mut String,
    application: &str,
    instance: &Instance,
    service: &[(String, String)],
    extra: &[(&str, &str)],
) {
    let own = instance.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let of_service = service.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let application = [("application", application)];
    // Of a repeated key the last counts.
    let all = of_service.chain(own).chain(application).chain(extra.iter().copied());
    let mut sign = '?';
    for (key, value) in all {
        url.push(sign);
        sign = '&';
        url.push_str(key);
        url.push('=');
        url.push_str(value);
    }
}

fn parse(text: &str) -> Result<Json> {
    serde_json::from_str(text).map_err(|error| {
        // serde counts columns in bytes; lines of these texts are ASCII almost always, and few.
        let line_start =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let offset = line_start + error.column().saturating_sub(1);
        Error::new(Status::E_SYNTAX, "not JSON").at(Position::in_text(text, offset)).source(Source::Parser)
    })
}

fn wrong(message: &str) -> Error {
    Error::new(Status::E_SYNTAX, message).source(Source::Parser)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURATOR: &str = r#"{"name":"stock","id":"10.0.0.1:20880","address":"10.0.0.1","port":20880,"sslPort":null,
        "payload":{"@class":"org.apache.dubbo.registry.zookeeper.ZookeeperInstance","id":"10.0.0.1:20880","name":"stock",
        "metadata":{"dubbo.endpoints":"[{\"port\":20880,\"protocol\":\"dubbo\"},{\"port\":50051,\"protocol\":\"tri\"}]",
        "dubbo.metadata.revision":"a1b2","dubbo.metadata.storage-type":"local","env":"gray",
        "dubbo.metadata-service.url-params":"{\"protocol\":\"dubbo\"}"}},
        "registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null}"#;

    #[test]
    fn an_instance_serves_what_its_revision_says() {
        let instance = Instance::read(CURATOR).unwrap().unwrap();
        assert_eq!(instance.endpoints, [("dubbo".to_owned(), 20880), ("tri".to_owned(), 50051)]);
        assert_eq!((instance.host.as_str(), instance.revision.as_str()), ("10.0.0.1", "a1b2"));
        let metadata = r#"{"app":"stock","revision":"a1b2","services":{
            "com.foo.Bar:tri":{"name":"com.foo.Bar","protocol":"tri","path":"com.foo.Bar","params":{"weight":"30"}},
            "g/com.foo.Bar:1.0:dubbo":{"name":"com.foo.Bar","group":"g","version":"1.0","protocol":"dubbo","port":20880},
            "com.foo.Other:tri":{"name":"com.foo.Other","protocol":"tri"}}}"#;
        let services = services(metadata).unwrap();
        assert_eq!(
            urls("stock", &instance, "com.foo.Bar", Some(&services)),
            [
                "tri://10.0.0.1:50051/com.foo.Bar?weight=30&env=gray&application=stock&interface=com.foo.Bar",
                "dubbo://10.0.0.1:20880/com.foo.Bar?env=gray&application=stock&interface=com.foo.Bar&group=g&version=1.0",
            ]
        );
        assert!(urls("stock", &instance, "com.foo.None", Some(&services)).is_empty());
    }

    #[test]
    fn without_metadata_every_endpoint_serves_what_the_application_is_mapped_to() {
        let instance = Instance::read(CURATOR).unwrap().unwrap();
        assert_eq!(
            urls("stock", &instance, "com.foo.Bar", None),
            [
                "dubbo://10.0.0.1:20880/com.foo.Bar?env=gray&application=stock&interface=com.foo.Bar",
                "tri://10.0.0.1:50051/com.foo.Bar?env=gray&application=stock&interface=com.foo.Bar",
            ]
        );
    }

    #[test]
    fn unusable_instances_are_errors_and_disabled_ones_are_none() {
        for text in ["", "5", "{", "{}", r#"{"address":"h"}"#, r#"{"address":"h/x","port":1}"#, "[1]"] {
            assert_eq!(Instance::read(text).unwrap_err().status(), Status::E_SYNTAX, "{text}");
        }
        assert_eq!(Instance::read(r#"{"address":"h","port":1,"enabled":false}"#).unwrap(), None);
        assert_eq!(applications(" b , a,,a,x/y"), ["a", "b"]);
    }
}
