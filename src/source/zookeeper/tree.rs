//! What is followed in the tree, as a state machine without I/O: requests out, replies and notifications in,
//! publications out.
//!
//! A notification only makes a node stale; what holds is what the next read finds, and a node is read with a watch
//! every time, so the last state is always reached however many changes there were. After every connection everything
//! is read again. On a server that has gone back in time, or has no tree any more, nodes that are missing are not
//! taken for deleted: it is another server, and what the one before held stays until this one says something else.

use super::names::Names;
use super::wire::{self, NO_AUTH, NO_NODE, OK, Operation, Reader, Reply, Request};
use crate::error::{Error, Result, Source, Status};
use crate::source::board::Publication;
use crate::source::topic::{Topic, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads under way at most.
const WINDOW: usize = 512;
/// A node that may not be read is tried again after this: permissions change without a notification.
const RETRY: Duration = Duration::from_secs(5);

/// What is known of a node.
enum Found {
    Unknown,
    Missing,
    Text(Value),
    Names(Names),
    Failed(Error),
}

struct Node {
    topic: Option<Topic>,
    operation: Operation,
    found: Found,
    /// Must be read (again).
    stale: bool,
    /// Is in the queue of those to be read.
    queued: bool,
    flying: bool,
    /// Missing on a server that may be another one: decided when everything has been read.
    doubtful: bool,
    /// Kept although this server does not have it.
    held: bool,
    retry: Option<Instant>,
}

struct Flight {
    xid: i32,
    path: Arc<str>,
    operation: Operation,
}

/// See the module.
pub(super) struct Tree {
    root: Arc<str>,
    services: String,
    chroot: String,
    nodes: HashMap<Arc<str>, Node>,
    topics: BTreeMap<Topic, Arc<str>>,
    queue: VecDeque<Arc<str>>,
    flights: VecDeque<Flight>,
    next_xid: i32,
    dirty: BTreeSet<Topic>,
    /// Complaints about topics whose last state stays known.
    complaints: Vec<(Topic, Error)>,
    /// Everything is being read again, because the connection is new.
    rereading: bool,
    /// The session is new, so what is missing may be so because the server is another one.
    doubting: bool,
    /// Last change any server has told us of.
    pub(super) zxid: i64,
    went_back: bool,
}

impl Tree {
    pub(super) fn new(chroot: &str, root: &str, services: &str) -> Tree {
        let root: Arc<str> = format!("{chroot}{root}").into();
        let mut tree = Tree {
            root: Arc::clone(&root),
            services: format!("{chroot}{services}"),
            chroot: chroot.to_owned(),
            nodes: HashMap::new(),
            topics: BTreeMap::new(),
            queue: VecDeque::new(),
            flights: VecDeque::new(),
            next_xid: 1,
            dirty: BTreeSet::new(),
            complaints: Vec::new(),
            rereading: false,
            doubting: false,
            zxid: 0,
            went_back: false,
        };
        tree.add(root, None, Operation::Exists);
        tree
    }

    fn add(&mut self, path: Arc<str>, topic: Option<Topic>, operation: Operation) {
        let node = Node {
            topic,
            operation,
            found: Found::Unknown,
            stale: true,
            queued: true,
            flying: false,
            doubtful: false,
            held: false,
            retry: None,
        };
        self.nodes.insert(Arc::clone(&path), node);
        self.queue.push_back(path);
    }

    /// Follows exactly these topics.
    pub(super) fn follow(&mut self, wanted: &BTreeSet<Topic>) {
        let gone: Vec<Topic> = self.topics.keys().filter(|topic| !wanted.contains(*topic)).cloned().collect();
        for topic in gone {
            self.dirty.remove(&topic);
            if let Some(path) = self.topics.remove(&topic) {
                self.drop_children(&path);
                self.nodes.remove(&path);
            }
        }
        for topic in wanted {
            if self.topics.contains_key(topic) {
                continue;
            }
            let path: Arc<str> = topic.path(&self.root, &self.services).into();
            if !is_path(&path) {
                // It cannot be in any tree.
                self.topics.insert(topic.clone(), "".into());
                self.dirty.insert(topic.clone());
                continue;
            }
            self.topics.insert(topic.clone(), Arc::clone(&path));
            let operation = if topic.is_list() { Operation::GetChildren } else { Operation::GetData };
            self.add(path, Some(topic.clone()), operation);
        }
    }

    fn drop_children(&mut self, path: &str) {
        if let Some(Node { found: Found::Names(names), topic: Some(Topic::Instances(_)), .. }) =
            self.nodes.get(path)
        {
            let children: Vec<String> = names.raw().map(|name| format!("{path}/{name}")).collect();
            for child in children {
                self.nodes.remove(child.as_str());
            }
        }
    }

    /// The connection is new: nothing is under way, everything is to be read. `new_session`: the server may be
    /// another one.
    pub(super) fn restart(&mut self, new_session: bool) {
        self.flights.clear();
        self.queue.clear();
        self.rereading = true;
        self.doubting = new_session;
        self.went_back = false;
        let root = Arc::clone(&self.root);
        for (path, node) in &mut self.nodes {
            node.stale = true;
            node.queued = true;
            node.flying = false;
            node.doubtful = false;
            node.retry = None;
            // The root first: whether there is a tree at all.
            if *path == root {
                self.queue.push_front(Arc::clone(path));
            } else {
                self.queue.push_back(Arc::clone(path));
            }
        }
    }

    /// The next read to send.
    pub(super) fn next_request(&mut self) -> Option<Vec<u8>> {
        while self.flights.len() < WINDOW {
            let path = self.queue.pop_front()?;
            let Some(node) = self.nodes.get_mut(&path) else { continue };
            node.queued = false;
            if node.flying || !node.stale {
                continue;
            }
            node.flying = true;
            node.stale = false;
            let operation = node.operation;
            return Some(self.fly(path, operation));
        }
        None
    }

    fn fly(&mut self, path: Arc<str>, operation: Operation) -> Vec<u8> {
        let xid = self.next_xid;
        self.next_xid = self.next_xid.checked_add(1).unwrap_or(1);
        let request = Request::watch(xid, operation, &path);
        self.flights.push_back(Flight { xid, path, operation });
        request
    }

    /// Something happened to a node.
    pub(super) fn event(&mut self, path: &str) {
        let Some((path, node)) =
            self.nodes.get_key_value(path).map(|(path, _)| Arc::clone(path)).and_then(|path| {
                let node = self.nodes.get_mut(&path)?;
                Some((path, node))
            })
        else {
            return;
        };
        node.stale = true;
        if !node.queued && !node.flying {
            node.queued = true;
            self.queue.push_back(path);
        }
    }

    /// Nodes whose time to be tried again has come; the time until the next one.
    pub(super) fn retry(&mut self, now: Instant) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        for (path, node) in &mut self.nodes {
            let Some(at) = node.retry else { continue };
            let left = at.saturating_duration_since(now);
            if left.is_zero() {
                node.retry = None;
                node.stale = true;
                if !node.queued && !node.flying {
                    node.queued = true;
                    self.queue.push_back(Arc::clone(path));
                }
            } else {
                next = Some(next.map_or(left, |old| old.min(left)));
            }
        }
        next
    }

    /// An answer. Gives a request that must be sent at once, if the answer asks for one.
    ///
    /// # Errors
    /// `E_SOURCE`: the server breaks the protocol; the connection is of no use.
    pub(super) fn reply(&mut self, reply: Reply, reader: Reader<'_>) -> Result<Option<Vec<u8>>> {
        let Some(flight) = self.flights.pop_front() else {
            return Err(broken("an answer to nothing"));
        };
        if flight.xid != reply.xid {
            return Err(broken("answers out of order"));
        }
        if reply.zxid > 0 {
            // On the first answers of a session: less than has been seen is another server, or an older one.
            self.went_back |= self.doubting && self.rereading && reply.zxid < self.zxid;
            if self.went_back || reply.zxid > self.zxid {
                self.zxid = reply.zxid;
            }
        }
        let Flight { path, operation, .. } = flight;
        let Some(node) = self.nodes.get_mut(&path) else { return Ok(None) };
        match (reply.error, operation) {
            (OK, Operation::Exists) if node.operation != Operation::Exists => {
                // It has come into being between the two reads.
                let operation = node.operation;
                return Ok(Some(self.fly(path, operation)));
            }
            (NO_NODE, Operation::Exists) => self.missing(&path),
            // It is not there: ask for a notification when it comes.
            (NO_NODE, _) => return Ok(Some(self.fly(path, Operation::Exists))),
            (OK, Operation::Exists) => {
                node.found = Found::Text(Value::Absent);
                self.settle(&path);
            }
            (OK, Operation::GetData) => self.data(&path, reader)?,
            (OK, _) => self.children(&path, reader)?,
            (error, _) => {
                let name = path.strip_prefix(&self.chroot).unwrap_or(&path).to_owned();
                let error = Error::new(Status::E_SOURCE, wire::error_name(error))
                    .subject(name)
                    .host(i64::from(error))
                    .source(Source::Socket);
                let denied = reply.error == NO_AUTH;
                node.retry = Some(Instant::now() + if denied { RETRY } else { RETRY / 5 });
                node.found = match std::mem::replace(&mut node.found, Found::Unknown) {
                    // The children of a list stay known while the list itself cannot be read.
                    Found::Names(names) if node.topic.is_some() => {
                        self.dirty_error(&path, error);
                        return Ok(self.restore(&path, Found::Names(names)));
                    }
                    _ => Found::Failed(error),
                };
                self.settle(&path);
            }
        }
        Ok(None)
    }

    fn restore(&mut self, path: &Arc<str>, found: Found) -> Option<Vec<u8>> {
        if let Some(node) = self.nodes.get_mut(path) {
            node.found = found;
        }
        self.settle(path);
        None
    }

    fn dirty_error(&mut self, path: &Arc<str>, error: Error) {
        if let Some(topic) = self.nodes.get(path).and_then(|node| node.topic.clone()) {
            self.complaints.push((topic, error));
        }
    }

    fn missing(&mut self, path: &Arc<str>) {
        let doubting = self.doubting && self.rereading && **path != *self.root;
        let Some(node) = self.nodes.get_mut(path) else { return };
        let had = matches!(node.found, Found::Text(_) | Found::Names(_));
        if had && (doubting || node.held) {
            node.doubtful = true;
            self.landed(path);
            return;
        }
        self.drop_children(path);
        if let Some(node) = self.nodes.get_mut(path) {
            node.found = Found::Missing;
        }
        self.settle(path);
    }

    fn data(&mut self, path: &Arc<str>, mut reader: Reader<'_>) -> Result<()> {
        let bytes = reader.buffer()?;
        let found = match core::str::from_utf8(bytes) {
            Ok(text) => Found::Text(Value::Text(text.into())),
            Err(error) => {
                let message = format!("not UTF-8 from byte {} on", error.valid_up_to());
                let name = path.strip_prefix(&self.chroot).unwrap_or(path).to_owned();
                Found::Failed(Error::new(Status::E_UTF8, message).subject(name).source(Source::Parser))
            }
        };
        if let Some(node) = self.nodes.get_mut(path) {
            node.found = found;
            node.held = false;
        }
        self.settle(path);
        Ok(())
    }

    fn children(&mut self, path: &Arc<str>, mut reader: Reader<'_>) -> Result<()> {
        let count = reader.list()?;
        let Some(node) = self.nodes.get_mut(path) else { return Ok(()) };
        let mut names = match std::mem::replace(&mut node.found, Found::Unknown) {
            Found::Names(names) => names,
            _ => Names::default(),
        };
        node.held = false;
        let deep = matches!(node.topic, Some(Topic::Instances(_)));
        let mut raw = Vec::with_capacity(count);
        for _ in 0..count {
            raw.push(reader.text()?);
        }
        let (added, removed) = names.update(&raw);
        node.found = Found::Names(names);
        if deep {
            for name in removed {
                self.nodes.remove(format!("{path}/{name}").as_str());
            }
            for name in added {
                self.add(format!("{path}/{name}").into(), None, Operation::GetData);
            }
        }
        self.settle(path);
        Ok(())
    }

    /// A read has ended: it is read again if something happened meanwhile.
    fn landed(&mut self, path: &Arc<str>) -> bool {
        let Some(node) = self.nodes.get_mut(path) else { return false };
        node.flying = false;
        if node.stale && !node.queued {
            node.queued = true;
            self.queue.push_back(Arc::clone(path));
        }
        true
    }

    fn settle(&mut self, path: &Arc<str>) {
        if !self.landed(path) {
            return;
        }
        let own = self.nodes.get(path).and_then(|node| node.topic.clone());
        let topic = own.or_else(|| {
            // The child of a list of instances.
            let (parent, _) = path.rsplit_once('/')?;
            self.nodes.get(parent)?.topic.clone()
        });
        if let Some(topic) = topic {
            self.dirty.insert(topic);
        }
    }

    /// Everything that was asked for has been answered.
    pub(super) fn is_settled(&self) -> bool {
        self.flights.is_empty() && self.queue.is_empty()
    }

    /// Something is ready to be published.
    pub(super) fn has_news(&self) -> bool {
        !self.dirty.is_empty() || !self.complaints.is_empty()
    }

    /// Ends the reading after a connection, once [`is_settled`](Self::is_settled): decides about what was missing. The
    /// complaint is what to tell when this server is not the one that had the tree.
    pub(super) fn finish_rereading(&mut self) -> Option<Error> {
        if !self.rereading {
            return None;
        }
        self.rereading = false;
        let no_root = matches!(self.nodes.get(&self.root).map(|node| &node.found), Some(Found::Missing));
        let replaced = self.went_back || no_root;
        let mut kept = 0;
        let doubtful: Vec<Arc<str>> =
            self.nodes.iter().filter(|(_, node)| node.doubtful).map(|(path, _)| Arc::clone(path)).collect();
        for path in doubtful {
            let Some(node) = self.nodes.get_mut(&path) else { continue };
            node.doubtful = false;
            if replaced || node.held {
                node.held = true;
                kept += 1;
                continue;
            }
            self.drop_children(&path);
            if let Some(node) = self.nodes.get_mut(&path) {
                node.found = Found::Missing;
            }
            self.settle(&path);
        }
        (kept > 0).then(|| {
            let what = if no_root { "has no tree" } else { "knows less than the one before" };
            let message = format!("the server {what}; the last state of {kept} nodes is kept");
            Error::new(Status::E_SOURCE, message).subject(&*self.root).source(Source::Socket)
        })
    }

    /// Nothing of the tree is on this server, and something is kept from another one.
    pub(super) fn is_bereft(&self) -> bool {
        matches!(self.nodes.get(&self.root).map(|node| &node.found), Some(Found::Missing))
            && self.nodes.values().any(|node| node.held)
    }

    /// The states of topics that changed and are known completely.
    pub(super) fn publications(&mut self) -> Vec<Publication> {
        let mut list = Vec::new();
        for (topic, error) in std::mem::take(&mut self.complaints) {
            list.push(Publication { topic, state: Err(error) });
        }
        let dirty = std::mem::take(&mut self.dirty);
        for topic in dirty {
            match self.state(&topic) {
                Some(state) => list.push(Publication { topic, state }),
                None => {
                    self.dirty.insert(topic);
                }
            }
        }
        list
    }

    fn state(&self, topic: &Topic) -> Option<Result<Value, Error>> {
        let path = self.topics.get(topic)?;
        let Some(node) = self.nodes.get(path) else { return Some(Ok(Value::Absent)) };
        match &node.found {
            Found::Unknown => None,
            Found::Missing => Some(Ok(Value::Absent)),
            Found::Failed(error) => Some(Err(error.clone().subject(topic.to_string()))),
            Found::Text(value) => Some(Ok(value.clone())),
            Found::Names(names) if !matches!(topic, Topic::Instances(_)) => {
                Some(Ok(Value::List(names.texts())))
            }
            Found::Names(names) => {
                let mut list: Vec<Arc<str>> = Vec::new();
                for name in names.raw() {
                    match self.nodes.get(format!("{path}/{name}").as_str()).map(|node| &node.found) {
                        Some(Found::Text(Value::Text(text))) => list.push(Arc::clone(text)),
                        Some(Found::Unknown) => return None,
                        // Gone again, or unreadable: the others count.
                        _ => {}
                    }
                }
                list.sort();
                Some(Ok(Value::List(list.into())))
            }
        }
    }
}

/// What ZooKeeper takes as a path.
fn is_path(path: &str) -> bool {
    path.len() <= 4096
        && path.starts_with('/')
        && path.split('/').skip(1).all(|word| {
            !word.is_empty() && !matches!(word, "." | "..") && !word.chars().any(char::is_control)
        })
}

fn broken(what: &str) -> Error {
    Error::new(Status::E_SOURCE, format!("the server breaks the protocol: {what}")).source(Source::Socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server: nodes by path, and what it has seen.
    struct Server {
        nodes: BTreeMap<String, &'static str>,
        zxid: i64,
    }

    impl Server {
        fn new(zxid: i64, nodes: &[(&str, &'static str)]) -> Server {
            let nodes = nodes.iter().map(|(path, text)| ((*path).to_owned(), *text)).collect();
            Server { nodes, zxid }
        }

        /// The answer to a request, without its length.
        fn answer(&self, request: &[u8]) -> Vec<u8> {
            let mut reader = Reader::new(&request[4..]);
            let (xid, operation) = (reader.int().unwrap(), reader.int().unwrap());
            let path = reader.text().unwrap();
            let mut bytes = Vec::new();
            bytes.extend(xid.to_be_bytes());
            bytes.extend(self.zxid.to_be_bytes());
            let known = self.nodes.get(path);
            let error = if known.is_some() { OK } else { NO_NODE };
            bytes.extend(error.to_be_bytes());
            let text = |bytes: &mut Vec<u8>, text: &str| {
                bytes.extend((text.len() as i32).to_be_bytes());
                bytes.extend(text.as_bytes());
            };
            match known {
                Some(known) if operation == Operation::GetData as i32 => text(&mut bytes, known),
                Some(known) if operation == Operation::GetChildren as i32 => {
                    let names: Vec<&str> = known.split_whitespace().collect();
                    bytes.extend((names.len() as i32).to_be_bytes());
                    names.iter().for_each(|name| text(&mut bytes, name));
                }
                _ => {}
            }
            bytes
        }

        /// Answers everything the tree asks until it asks no more; the number of requests.
        fn serve(&self, tree: &mut Tree) -> usize {
            let mut count = 0;
            let mut waiting: VecDeque<Vec<u8>> = VecDeque::new();
            loop {
                waiting.extend(std::iter::from_fn(|| tree.next_request()));
                let Some(request) = waiting.pop_front() else { return count };
                count += 1;
                let answer = self.answer(&request);
                let (reply, reader) = Reply::read(&answer).unwrap();
                waiting.extend(tree.reply(reply, reader).unwrap());
            }
        }
    }

    fn tree(topics: &[Topic]) -> Tree {
        let mut tree = Tree::new("", "/dubbo", "/services");
        tree.follow(&topics.iter().cloned().collect());
        tree
    }

    fn published(tree: &mut Tree) -> Vec<(String, Option<String>)> {
        let text = |value: Value| match value {
            Value::Absent => None,
            Value::Text(text) => Some(text.to_string()),
            Value::List(list) => Some(list.join(" ")),
        };
        let one =
            |publication: Publication| (publication.topic.to_string(), text(publication.state.unwrap()));
        tree.publications().into_iter().map(one).collect()
    }

    const RULE: &str = "/dubbo/config/dubbo/k";

    #[test]
    fn what_happens_during_a_read_is_read_again_and_what_is_missing_is_waited_for() {
        let topic = Topic::rule("k");
        let mut tree = tree(std::slice::from_ref(&topic));
        let mut server = Server::new(1, &[("/dubbo", "")]);
        server.serve(&mut tree);
        assert_eq!(published(&mut tree), [("k".to_owned(), None)]);
        tree.event(RULE);
        let request = tree.next_request().unwrap();
        server.nodes.insert(RULE.to_owned(), "one");
        let answer = server.answer(&request);
        // Changed again before the answer is here.
        server.nodes.insert(RULE.to_owned(), "two");
        tree.event(RULE);
        let (reply, reader) = Reply::read(&answer).unwrap();
        tree.reply(reply, reader).unwrap();
        assert!(!tree.is_settled());
        server.serve(&mut tree);
        assert_eq!(published(&mut tree), [("k".to_owned(), Some("two".to_owned()))]);
        assert_eq!(server.serve(&mut tree), 0);
    }

    #[test]
    fn what_another_server_does_not_have_is_not_deleted() {
        let topics = [Topic::rule("k"), Topic::Providers("S".into())];
        let before = Server::new(
            100,
            &[("/dubbo", ""), (RULE, "rule"), ("/dubbo/S/providers", "dubbo%3A%2F%2Fh%3A1%2FS")],
        );
        // The same tree later, without the rule; one that has gone back in time; an empty one.
        let table = [
            (Server::new(101, &[("/dubbo", ""), ("/dubbo/S/providers", "x")]), true, false),
            (Server::new(5, &[("/dubbo", ""), ("/dubbo/S/providers", "x")]), false, false),
            (Server::new(1, &[]), false, true),
        ];
        for (after, deleted, bereft) in table {
            let mut tree = tree(&topics);
            before.serve(&mut tree);
            assert_eq!(published(&mut tree).len(), 2);
            tree.restart(true);
            after.serve(&mut tree);
            let complaint = tree.finish_rereading();
            let gone = published(&mut tree).contains(&("k".to_owned(), None));
            assert_eq!((gone, complaint.is_none(), tree.is_bereft()), (deleted, deleted, bereft));
            // It comes, and then it is really deleted.
            let mut last = Server::new(200, &[("/dubbo", ""), (RULE, "again")]);
            tree.event(RULE);
            last.serve(&mut tree);
            assert!(published(&mut tree).contains(&("k".to_owned(), Some("again".to_owned()))));
            last.nodes.remove(RULE);
            tree.event(RULE);
            last.serve(&mut tree);
            assert!(published(&mut tree).contains(&("k".to_owned(), None)));
        }
    }

    #[test]
    fn a_list_of_instances_is_known_when_each_of_them_is() {
        let topic = Topic::Instances("app".into());
        let mut tree = tree(std::slice::from_ref(&topic));
        let server = Server::new(
            1,
            &[("/dubbo", ""), ("/services/app", "b a"), ("/services/app/a", "A"), ("/services/app/b", "B")],
        );
        server.serve(&mut tree);
        assert_eq!(published(&mut tree), [("/services/app".to_owned(), Some("A B".to_owned()))]);
        tree.follow(&BTreeSet::new());
        assert_eq!(tree.nodes.len(), 1, "only the root is looked at");
    }

    #[test]
    fn a_server_that_answers_out_of_order_is_left() {
        let mut tree = tree(&[Topic::rule("k")]);
        let (first, second) = (tree.next_request().unwrap(), tree.next_request().unwrap());
        let server = Server::new(1, &[]);
        let answer = server.answer(&second);
        let (reply, reader) = Reply::read(&answer).unwrap();
        assert!(tree.reply(reply, reader).is_err());
        assert_ne!(first, second);
        let (reply, reader) = Reply::read(&answer).unwrap();
        let mut idle = Tree::new("", "/dubbo", "/services");
        assert!(idle.reply(reply, reader).is_err());
    }
}
