use super::*;
use crate::source::board::Watcher;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

/// A directory of its own that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("byway-files-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Bell(mpsc::Sender<()>);

impl Watcher for Bell {
    fn changed(&self) {
        let _ = self.0.send(());
    }
}

/// Follows topics and waits for what they come to.
struct Follower {
    source: Arc<FileSource>,
    bell: mpsc::Receiver<()>,
    _keep: Arc<Bell>,
}

const PATIENCE: Duration = Duration::from_secs(120);

impl Follower {
    fn new(source: &Arc<FileSource>, topics: &[&Topic]) -> Follower {
        let (sender, bell) = mpsc::channel();
        let keep = Arc::new(Bell(sender));
        let weak: Weak<dyn Watcher> = Arc::downgrade(&(Arc::clone(&keep) as Arc<dyn Watcher>));
        let mut id = None;
        for topic in topics {
            id = Some(source.watch(topic, id, weak.clone()));
        }
        Follower { source: Arc::clone(source), bell, _keep: keep }
    }

    fn look(&self, topic: &Topic) -> Option<Value> {
        self.source.board().look(topic).and_then(std::result::Result::ok)
    }

    fn wait(&self, topic: &Topic, what: impl Fn(Option<&Value>) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let value = self.look(topic);
            if what(value.as_ref()) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(self.bell.recv_timeout(left).is_ok(), "{topic} stays {value:?}");
        }
    }

    fn wait_text(&self, topic: &Topic, text: &str) {
        self.wait(topic, |value| value == Some(&Value::Text(text.into())));
    }

    fn wait_absent(&self, topic: &Topic) {
        self.wait(topic, |value| value == Some(&Value::Absent));
    }
}

fn open(path: &Path) -> Arc<FileSource> {
    FileSource::new(FileOptions::new(path)).unwrap()
}

/// One that waits for writers and for what has vanished as long as a slow machine may take to come back to them.
fn patient(path: &Path) -> Arc<FileSource> {
    let options = FileOptions { settle: PATIENCE, grace: PATIENCE, ..FileOptions::new(path) };
    FileSource::new(options).unwrap()
}

/// A second rule: when a change of it is seen, every change before it has been looked at.
fn marker(scratch: &Scratch, follower: &Follower, text: &str) {
    let path = scratch.join("marker.tmp");
    fs::write(&path, text).unwrap();
    fs::rename(path, scratch.join("marker.tag-router")).unwrap();
    follower.wait_text(&Topic::rule("marker.tag-router"), text);
}

#[test]
fn every_way_to_write_a_file_is_seen_whole_and_a_touch_is_not_a_change() {
    let scratch = Scratch::new();
    let path = scratch.join("a.tag-router");
    let (rule, other) = (Topic::rule("a.tag-router"), Topic::rule("marker.tag-router"));
    fs::write(&path, "one").unwrap();
    let source = patient(&scratch.0);
    let follower = Follower::new(&source, &[&rule, &other]);
    follower.wait_text(&rule, "one");
    follower.wait_absent(&other);

    // In place, in two writes; the half is never taken.
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    file.write_all(b"tw").unwrap();
    marker(&scratch, &follower, "1");
    assert_eq!(follower.look(&rule), Some(Value::Text("one".into())), "half a text");
    file.write_all(b"o").unwrap();
    drop(file);
    follower.wait_text(&rule, "two");

    // Atomic rename.
    fs::write(scratch.join("a.tmp"), "three").unwrap();
    fs::rename(scratch.join("a.tmp"), &path).unwrap();
    follower.wait_text(&rule, "three");

    // Touched only: looked at, no change.
    let before = source.status().generation;
    fs::File::options().append(true).open(&path).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    marker(&scratch, &follower, "2");
    assert_eq!(source.status().generation, before + 1, "only the marker changed");

    // Deleted and created at once, as editors do: never absent in between.
    let absent = |follower: &Follower| follower.look(&rule) == Some(Value::Absent);
    fs::remove_file(&path).unwrap();
    marker(&scratch, &follower, "3");
    assert!(!absent(&follower));
    fs::write(&path, "four").unwrap();
    follower.wait_text(&rule, "four");
    assert!(source.stop(PATIENCE));
}

#[test]
fn a_file_that_is_gone_for_longer_than_the_grace_is_deleted_and_may_come_back() {
    let scratch = Scratch::new();
    let path = scratch.join("a.tag-router");
    let rule = Topic::rule("a.tag-router");
    fs::write(&path, "one").unwrap();
    let source = open(&scratch.0);
    let follower = Follower::new(&source, &[&rule]);
    follower.wait_text(&rule, "one");
    fs::remove_file(&path).unwrap();
    follower.wait_absent(&rule);
    fs::write(&path, "two").unwrap();
    follower.wait_text(&rule, "two");
}

/// The look that the new link's name causes is under way when the link takes its place.
#[test]
fn a_swap_in_the_middle_of_a_look_is_one_change() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..300).map(|number| format!("k{number}.tag-router")).collect();
    for version in ["even", "odd"] {
        fs::create_dir(scratch.join(version)).unwrap();
        names.iter().for_each(|name| fs::write(scratch.join(version).join(name), version).unwrap());
    }
    let root = scratch.join("current");
    symlink("even", &root).unwrap();
    let topics: Vec<Topic> = names.iter().map(|name| Topic::rule(name.as_str())).collect();
    let source = open(&root);
    let follower = Follower::new(&source, &topics.iter().collect::<Vec<_>>());
    topics.iter().for_each(|topic| follower.wait_text(topic, "even"));
    let before = source.status().generation;
    const SWAPS: u32 = 20;
    for swap in 1..=SWAPS {
        let version = if swap % 2 == 0 { "even" } else { "odd" };
        symlink(version, scratch.join("next")).unwrap();
        // Any moment will do; those around the beginning of the look are the ones to meet.
        std::thread::sleep(GATHER + Duration::from_micros(200) * swap);
        fs::rename(scratch.join("next"), &root).unwrap();
        topics.iter().for_each(|topic| follower.wait_text(topic, version));
    }
    assert_eq!(source.status().generation, before + u64::from(SWAPS));
}

#[test]
fn a_config_map_swap_is_one_change() {
    let scratch = Scratch::new();
    let version = |number: u32, a: &str, b: &str| {
        let folder = scratch.join(&format!("..{number}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.tag-router.yaml"), a).unwrap();
        fs::write(folder.join("b.tag-router.yaml"), b).unwrap();
        symlink(format!("..{number}"), scratch.join("..data_tmp")).unwrap();
        fs::rename(scratch.join("..data_tmp"), scratch.join("..data")).unwrap();
    };
    version(1, "a1", "b1");
    symlink("..data/a.tag-router.yaml", scratch.join("a.tag-router.yaml")).unwrap();
    symlink("..data/b.tag-router.yaml", scratch.join("b.tag-router.yaml")).unwrap();
    let (a, b) = (Topic::rule("a.tag-router"), Topic::rule("b.tag-router"));
    let source = open(&scratch.0);
    let follower = Follower::new(&source, &[&a, &b]);
    follower.wait_text(&a, "a1");
    follower.wait_text(&b, "b1");
    let before = source.status().generation;
    version(2, "a2", "b2");
    fs::remove_dir_all(scratch.join("..1")).unwrap();
    follower.wait_text(&a, "a2");
    follower.wait_text(&b, "b2");
    assert_eq!(source.status().generation, before + 1, "both in one moment");
}

#[test]
fn a_directory_that_is_swapped_or_goes_and_returns_keeps_what_it_had() {
    let scratch = Scratch::new();
    for (version, text) in [("v1", "one"), ("v2", "two")] {
        fs::create_dir(scratch.join(version)).unwrap();
        fs::write(scratch.join(version).join("a.tag-router"), text).unwrap();
    }
    let link = |target: &str| {
        symlink(target, scratch.join("new")).unwrap();
        fs::rename(scratch.join("new"), scratch.join("current")).unwrap();
    };
    link("v1");
    let rule = Topic::rule("a.tag-router");
    let source = open(&scratch.join("current"));
    let follower = Follower::new(&source, &[&rule]);
    follower.wait_text(&rule, "one");
    link("v2");
    follower.wait_text(&rule, "two");
    fs::remove_file(scratch.join("current")).unwrap();
    let end = Instant::now() + PATIENCE;
    while source.status().connected {
        assert!(follower.bell.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok());
    }
    assert_eq!(follower.look(&rule), Some(Value::Text("two".into())));
    assert!(source.status().last_error.is_some());
    link("v1");
    follower.wait_text(&rule, "one");
    while !source.status().connected {
        assert!(follower.bell.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok());
    }
}

#[test]
fn dubbos_tree_and_flat_files_hold_every_topic() {
    let scratch = Scratch::new();
    let write = |name: &str, text: &str| {
        let path = scratch.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("dubbo/config/dubbo/com.foo.Bar::.condition-router", "tree");
    write("app.tag-router.yml", "flat");
    // As a ConfigMap must name it.
    write(
        "hello.condition-router.yaml",
        "scope: service\nkey: com.foo.Hello\nconditions: ['=> host=1.2.3.4']\n",
    );
    write("dubbo/com.foo.Bar/providers", "dubbo://h:1/com.foo.Bar\n# a comment\ndubbo://h:2/com.foo.Bar\n");
    write("com.foo.Baz.providers", "dubbo://h:3/com.foo.Baz");
    write("services/stock/one.json", "{\"address\":\"h\",\"port\":1}");
    write("services/stock/two.json", "{\"address\":\"h\",\"port\":2}");
    write("mapping/com.foo.Bar", "stock");
    fs::create_dir_all(scratch.join("dubbo/com.foo.Empty/providers")).unwrap();
    let table: [(&str, usize, &str); 9] = [
        ("com.foo.Bar::.condition-router", 0, "tree"),
        ("app.tag-router", 0, "flat"),
        (
            "com.foo.Hello::.condition-router",
            0,
            "scope: service\nkey: com.foo.Hello\nconditions: ['=> host=1.2.3.4']\n",
        ),
        ("com.foo.Bar/providers", 2, ""),
        ("com.foo.Baz/providers", 1, ""),
        ("com.foo.Empty/providers", 0, ""),
        ("/services/stock", 2, ""),
        ("mapping/com.foo.Bar", 0, "stock"),
        ("no.tag-router", 0, "absent"),
    ];
    let source = open(&scratch.0);
    for (name, entries, text) in table {
        let value = source.get(&Topic::parse(name).unwrap(), PATIENCE).unwrap();
        match &value {
            Value::Text(found) => assert_eq!(&**found, text, "{name}"),
            Value::List(list) => assert_eq!(list.len(), entries, "{name}"),
            Value::Absent => assert_eq!(text, "absent", "{name}"),
        }
    }
    // A name that would lead out of the directory is not there.
    let outside = Topic::Rule { group: "..".into(), key: "..".into() };
    assert_eq!(source.get(&outside, PATIENCE).unwrap(), Value::Absent);
}

#[test]
fn a_file_alone_is_a_rule_or_a_list() {
    let scratch = Scratch::new();
    let path = scratch.join("anything.txt");
    fs::write(&path, "dubbo://h:1/S\n").unwrap();
    let options = FileOptions { key: Some("S/providers".into()), ..FileOptions::new(&path) };
    let source = FileSource::new(options).unwrap();
    let topic = Topic::parse("S/providers").unwrap();
    let follower = Follower::new(&source, &[&topic]);
    follower.wait(&topic, |value| value.is_some_and(|value| value.list().len() == 1));
    fs::write(&path, "dubbo://h:1/S\ndubbo://h:2/S\n").unwrap();
    follower.wait(&topic, |value| value.is_some_and(|value| value.list().len() == 2));

    let path = scratch.join("shop.tag-router.yaml");
    fs::write(&path, "key: shop\ntags: []\n").unwrap();
    let source = open(&path);
    let rule = Topic::rule("shop.tag-router");
    let follower = Follower::new(&source, &[&rule]);
    follower.wait_text(&rule, "key: shop\ntags: []\n");
}

#[test]
fn unreadable_content_is_told_and_what_was_known_stays() {
    let scratch = Scratch::new();
    let path = scratch.join("a.tag-router");
    let rule = Topic::rule("a.tag-router");
    fs::write(&path, "good").unwrap();
    let source = open(&scratch.0);
    let follower = Follower::new(&source, &[&rule]);
    follower.wait_text(&rule, "good");
    let complaint = || source.board().complaint(&rule);
    fs::write(&path, b"\xff\xfe\x00").unwrap();
    let end = Instant::now() + PATIENCE;
    while complaint().is_none() {
        assert!(follower.bell.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok());
    }
    assert_eq!(complaint().unwrap().status(), Status::E_UTF8);
    assert_eq!(follower.look(&rule), Some(Value::Text("good".into())));
    fs::write(&path, "better").unwrap();
    follower.wait_text(&rule, "better");
    assert_eq!(complaint(), None);
}

#[test]
fn a_thousand_changes_are_few_publications_and_the_last_one_is_reached() {
    let scratch = Scratch::new();
    let path = scratch.join("a.tag-router");
    let rule = Topic::rule("a.tag-router");
    let source = open(&scratch.0);
    let follower = Follower::new(&source, &[&rule]);
    follower.wait_absent(&rule);
    let begin = Instant::now();
    for number in 0..1000 {
        let fresh = scratch.join("fresh");
        fs::write(&fresh, number.to_string()).unwrap();
        fs::rename(fresh, &path).unwrap();
    }
    follower.wait_text(&rule, "999");
    // Whatever comes within a moment is one; on a busy machine the writer takes many moments.
    let (published, moments) = (source.status().generation, begin.elapsed().as_nanos() / GATHER.as_nanos());
    assert!(u128::from(published) <= moments + 2, "{published} publications in {moments} moments");
}

#[test]
fn a_directory_that_is_not_there_is_one_complaint_until_it_has_been_there() {
    let scratch = Scratch::new();
    let place = scratch.join("place");
    let source = open(&place);
    let topics: Vec<Topic> = ["a.tag-router", "b.tag-router", "c.tag-router"].map(Topic::rule).into();
    let status = || Source::status(&*source);
    let mut followers = Vec::new();
    for topic in &topics {
        // Each new topic has it look again at once.
        let follower = Follower::new(&source, &[topic]);
        while source.board().complaint(topic).is_none() {
            assert!(follower.bell.recv_timeout(PATIENCE).is_ok());
        }
        assert_eq!((status().errors, status().away), (1, true), "{topic}");
        followers.push(follower);
    }
    fs::create_dir(&place).unwrap();
    fs::write(place.join("a.tag-router"), "one").unwrap();
    followers[0].wait_text(&topics[0], "one");
    while !status().connected {
        assert!(followers[0].bell.recv_timeout(PATIENCE).is_ok());
    }
    assert_eq!((status().errors, status().away), (1, false));
    fs::remove_dir_all(&place).unwrap();
    while !status().away {
        assert!(followers[0].bell.recv_timeout(PATIENCE).is_ok());
    }
    assert_eq!(status().errors, 2);
    assert_eq!(followers[0].look(&topics[0]), Some(Value::Text("one".into())), "what was known stays");
}
