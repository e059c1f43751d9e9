//! Tag rules (`<provider application>.tag-router`): groups of providers by address or by what their URLs say,
//! which calls ask for by tag.

use super::dialect::{AddressStyle, Coercion, Dialect, TagMatch};
use super::header::{Fields, HEADER, Header};
use super::ip::{IpPattern, split_address};
use super::java_ip;
use super::print::{Printer, quoted};
use super::report::Report;
use super::string_match::StringMatch;
use super::yaml::{Node, Value};
use std::collections::HashSet;

/// The attachment and parameter that carry a tag.
pub const TAG: &str = "dubbo.tag";
/// The attachment and parameter with which a caller insists on its tag.
pub const FORCE_TAG: &str = "dubbo.force.tag";

/// A tag rule.
#[derive(Clone, Debug, PartialEq)]
pub struct TagRule {
    /// The common fields; `valid` is false without a list of tags.
    pub header: Header,
    /// In text order; of tags with one name the last counts.
    pub tags: Vec<Tag>,
    /// Whether `match` entries are read at this `configVersion`.
    pub reads_match: bool,
}

/// One tag.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// What calls ask for.
    pub name: String,
    /// Its providers by address; empty = not given.
    pub addresses: Vec<Address>,
    /// Its providers by parameters, all of which must fit; `Some` of an empty list fits everybody.
    pub matches: Option<Vec<ParamMatch>>,
}

/// One address of a tag.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// As written.
    pub text: String,
    /// What it means, where the dialect reads IP expressions.
    pattern: Option<IpPattern>,
    style: AddressStyle,
}

/// One parameter that a provider's URL must have.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamMatch {
    /// Name of the parameter.
    pub key: String,
    /// What it must say.
    pub value: StringMatch,
}

/// The providers of one tag as the rule finally defines them.
#[derive(Clone, Debug)]
pub struct Group<'r> {
    /// The tag.
    pub name: &'r str,
    /// Its members.
    pub members: Members<'r>,
    /// A group by `match` that fits nobody counts as unknown to the rule.
    pub gone_when_empty: bool,
}

/// Who is in a [`Group`].
#[derive(Clone, Copy, Debug)]
pub enum Members<'r> {
    /// Providers at one of these addresses.
    At(&'r [Address]),
    /// Providers that fit all of these.
    Like(&'r [ParamMatch]),
}

impl Address {
    /// Reads an address. The error says what is wrong with it.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Address, String> {
        let style = dialect.table().tag_addresses;
        let pattern = if style == AddressStyle::Ip { Some(IpPattern::parse(text)?) } else { None };
        Ok(Address { text: text.to_owned(), pattern, style })
    }

    /// Whether a provider at `address` (`host:port` as its URL prints it) is meant. Faults of Dubbo's matcher
    /// count as no, as they do there.
    pub fn matches(&self, address: &str) -> bool {
        let (host, port) = split_address(address);
        let any_host = || self.text.strip_prefix("0.0.0.0:").is_some_and(|wanted| wanted == port.to_string());
        match self.style {
            AddressStyle::Ip => {
                any_host() || self.pattern.as_ref().is_some_and(|pattern| pattern.matches(host, port))
            }
            AddressStyle::JavaIp => {
                // Dubbo asks DNS for names; a name here only matches itself.
                java_ip::match_expression(&self.text, host, port).unwrap_or(false) || any_host()
            }
            AddressStyle::Literal => self.text == address || any_host(),
        }
    }
}

impl TagRule {
    /// Reads the YAML of a rule. `Some` with `valid` false is a text that is no rule.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<TagRule> {
        let table = dialect.table();
        let before = report.errors();
        let fields = Fields::of(node, "a tag rule", &[&HEADER, &["tags"]], dialect, report)?;
        let mut header = fields.header(true, report);
        let version = header.version.as_deref().unwrap_or_default();
        let reads_match = match table.tag_match {
            TagMatch::Always => true,
            TagMatch::V30Only => version.starts_with("v3.0"),
            TagMatch::Never => false,
        };
        if header.scope.as_deref() == Some("service") {
            report.warning(
                fields.place("scope"),
                "tag rules belong to an application; 'scope: service' is not looked at",
            );
        }
        let items = fields.list("tags", report);
        let mut tags: Vec<Tag> = Vec::new();
        let mut names = HashSet::new();
        for item in items.unwrap_or_default() {
            let Some(tag) = Tag::read(item, dialect, report) else { continue };
            if !names.insert(tag.name.clone()) {
                report.warning(item.offset, format!("tag '{}' is there twice; this one counts", tag.name));
            }
            if tag.matches.is_some() && !reads_match {
                let message = format!("'match' of tag '{}' is only read with configVersion v3.0", tag.name);
                report.warning(item.offset, message);
            }
            if tag.addresses.is_empty() && (tag.matches.is_none() || !reads_match) {
                let message =
                    format!("tag '{}' has neither 'addresses' nor 'match' and so no providers", tag.name);
                // Dubbo 3 fails on such a tag as soon as there are providers.
                if table.tag_match == TagMatch::V30Only && reads_match {
                    report.error(item.offset, message);
                } else {
                    report.warning(item.offset, message);
                }
            }
            tags.push(tag);
        }
        header.valid &= !tags.is_empty();
        (report.errors() == before).then_some(TagRule { header, tags, reads_match })
    }

    /// Whether it does anything; otherwise static tags alone decide.
    pub fn in_force(&self) -> bool {
        self.header.enabled && self.header.valid && !self.tags.is_empty()
    }

    /// The groups of the rule: one per name, the last definition of each; tags that define nobody are not there.
    pub fn groups(&self, dialect: Dialect) -> Vec<Group<'_>> {
        let match_wins = dialect.table().tag_match_wins;
        // Groups by match come last, so that they replace groups by address of the same name.
        let (mut by_address, mut by_match) = (Vec::new(), Vec::new());
        for tag in &self.tags {
            let matches =
                tag.matches.as_deref().filter(|list| self.reads_match && !(match_wins && list.is_empty()));
            let use_match = matches.is_some() && (match_wins || tag.addresses.is_empty());
            match matches {
                Some(list) if use_match => by_match.push(Group {
                    name: &tag.name,
                    members: Members::Like(list),
                    gone_when_empty: !match_wins,
                }),
                _ if !tag.addresses.is_empty() => by_address.push(Group {
                    name: &tag.name,
                    members: Members::At(&tag.addresses),
                    gone_when_empty: false,
                }),
                _ => {}
            }
        }
        // Of one name the last definition counts.
        let mut seen = HashSet::new();
        let mut groups: Vec<Group<'_>> = by_address
            .into_iter()
            .chain(by_match)
            .rev()
            .filter(|group: &Group<'_>| seen.insert(group.name))
            .collect();
        groups.reverse();
        groups
    }

    /// The rule as a text that reads back as the same rule.
    pub fn to_yaml(&self) -> String {
        let mut out = Printer::of(&self.header);
        out.line(if self.tags.is_empty() { "tags: []" } else { "tags:" });
        for tag in &self.tags {
            out.item_field("name", &tag.name);
            if !tag.addresses.is_empty() {
                out.line("  addresses:");
                for address in &tag.addresses {
                    out.line(&format!("  - {}", quoted(&address.text)));
                }
            }
            match &tag.matches {
                None => {}
                Some(list) if list.is_empty() => out.line("  match: []"),
                Some(list) => {
                    out.line("  match:");
                    for entry in list {
                        out.line(&format!("  - key: {}", quoted(&entry.key)));
                        out.line(&format!("    value: {}", entry.value.to_flow()));
                    }
                }
            }
        }
        out.finish()
    }
}

impl Tag {
    fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<Tag> {
        let strict = dialect.table().coercion == Coercion::Strict;
        let fields = Fields::of(node, "a tag", &[&["name", "addresses", "match"]], dialect, report)?;
        let name = fields.text("name", report).unwrap_or_default();
        if strict && name.is_empty() {
            report.error(fields.place("name"), "a tag needs a 'name'");
        }
        let mut addresses = Vec::new();
        for item in fields.list("addresses", report).unwrap_or_default() {
            let Some(text) = item.as_scalar() else {
                report.error(item.offset, format!("an address must be text; found {}", item.kind()));
                continue;
            };
            match Address::parse(text, dialect) {
                Ok(address) => addresses.push(address),
                Err(message) => report.error(item.offset, message),
            }
        }
        let matches = fields
            .list("match", report)
            .map(|items| items.iter().filter_map(|item| ParamMatch::read(item, dialect, report)).collect());
        Some(Tag { name, addresses, matches })
    }
}

impl ParamMatch {
    /// Reads `{key, value}`.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<ParamMatch> {
        let fields = Fields::of(node, "a match entry", &[&["key", "value"]], dialect, report)?;
        let key = fields.text("key", report);
        if key.is_none() {
            report.error(fields.offset, "a match entry needs a 'key', the name of a parameter");
        }
        let value = match fields.get("value") {
            Some(node @ Node { value: Value::Map(_), .. }) => StringMatch::read(node, dialect, report),
            Some(node) => {
                let message =
                    format!("'value' must be a mapping such as {{exact: x}}; found {}", node.kind());
                report.error(node.offset, message);
                None
            }
            None => {
                report.error(fields.offset, "a match entry needs a 'value', a mapping such as {exact: x}");
                None
            }
        };
        Some(ParamMatch { key: key?, value: value? })
    }
}

/// The levels of a tag from the whole down: `a|b|c`, `a|b`, `a`.
pub fn levels(tag: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(tag);
    std::iter::from_fn(move || {
        let this = next?;
        next = this.rsplit_once('|').map(|(head, _)| head);
        Some(this)
    })
}

/// Whether a caller insists on its tag.
pub fn parse_force(text: &str, dialect: Dialect) -> bool {
    if dialect.table().force_tag_parse_bool {
        return matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True");
    }
    text.eq_ignore_ascii_case("true")
}
