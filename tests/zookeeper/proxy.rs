//! A relay in front of a server that can stop relaying without closing anything: a half-open connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub struct Proxy {
    pub port: u16,
    frozen: Arc<AtomicBool>,
    /// Bytes per 10 ms that pass; 0: all.
    pace: Arc<AtomicU64>,
}

impl Proxy {
    pub fn new(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (frozen, pace) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&frozen), Arc::clone(&pace));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(target) else { continue };
                for (from, to) in [
                    (client.try_clone().unwrap(), server.try_clone().unwrap()),
                    (server.try_clone().unwrap(), client.try_clone().unwrap()),
                ] {
                    let (frozen, pace) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                    std::thread::spawn(move || relay(from, to, &frozen, &pace));
                }
            }
        });
        Proxy { port, frozen, pace }
    }

    pub fn freeze(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::SeqCst);
    }

    pub fn pace(&self, bytes: u64) {
        self.pace.store(bytes, Ordering::SeqCst);
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream, frozen: &AtomicBool, pace: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let pace = usize::try_from(pace.load(Ordering::SeqCst)).unwrap();
        let room = if pace == 0 { buffer.len() } else { pace.min(buffer.len()) };
        let Ok(count) = from.read(&mut buffer[..room]) else { break };
        while frozen.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if pace > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
