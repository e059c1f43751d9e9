//! A ZooKeeper server of a test's own, from Debian's package, on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const JARS: [&str; 14] = [
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "slf4j-nop",
    "netty-all",
    "netty-handler",
    "netty-transport",
    "netty-transport-native-epoll",
    "netty-transport-native-unix-common",
    "netty-common",
    "netty-buffer",
    "netty-codec",
    "metrics-core",
    "snappy-java",
];

/// Why there can be no server here; `None`: there can.
pub fn missing() -> Option<String> {
    if !Path::new("/usr/share/java/zookeeper.jar").exists() {
        return Some("no /usr/share/java/zookeeper.jar (package zookeeper)".to_owned());
    }
    let java = Command::new("java").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match java {
        Ok(status) if status.success() => None,
        _ => Some("no java".to_owned()),
    }
}

/// A port nobody listens on.
///
/// Below the ports that connects take for themselves, so that a server finds it free again when it is restarted.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 64;
        let port = u16::try_from(20_000 + step % 12_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub struct Server {
    child: Option<Child>,
    pub port: u16,
    folder: PathBuf,
}

impl Server {
    /// Starts one with an empty tree and waits until it answers.
    pub fn start() -> Server {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("byway-zookeeper-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut server = Server { child: None, port: free_port(), folder };
        server.restart();
        server
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Starts it again on the same port with what its disk holds.
    pub fn restart(&mut self) {
        self.launch();
        self.wait();
    }

    /// Starts it without waiting for an answer.
    pub fn launch(&mut self) {
        assert!(self.child.is_none());
        let config = self.folder.join("zoo.cfg");
        let text = format!(
            "tickTime=200\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             4lw.commands.whitelist=*\nmaxClientCnxns=0\nmaxSessionTimeout=600000\n",
            self.folder.join("data").display(),
            self.port
        );
        std::fs::write(&config, text).unwrap();
        let jars: Vec<String> = JARS.iter().map(|jar| format!("/usr/share/java/{jar}.jar")).collect();
        let child = Command::new("java")
            .args(["-Xmx384m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
            .args(["-Djute.maxbuffer=16777216", "-cp", &jars.join(":")])
            .arg("org.apache.zookeeper.server.ZooKeeperServerMain")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Waits until it serves: it says that it is there (`ruok`) before that, and then may lose a request.
    pub fn wait(&self) {
        let end = Instant::now() + Duration::from_secs(120);
        while !self.ask("srvr").starts_with("Zookeeper version") {
            assert!(Instant::now() < end, "ZooKeeper does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// One of the four letter words.
    pub fn ask(&self, word: &str) -> String {
        let Ok(mut stream) = TcpStream::connect_timeout(&self.address(), Duration::from_secs(1)) else {
            return String::new();
        };
        let mut text = String::new();
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let _ = stream.write_all(word.as_bytes());
        let _ = stream.read_to_string(&mut text);
        text
    }

    /// Kills it at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Throws away what its disk holds.
    pub fn wipe(&mut self) {
        assert!(self.child.is_none());
        std::fs::remove_dir_all(self.folder.join("data")).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
