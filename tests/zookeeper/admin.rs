//! A blocking client that writes the tree, as an administrator or a provider does.

use byway::source::zookeeper::wire::{self, Connected, Reply, Request};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub struct Admin {
    stream: TcpStream,
    xid: i32,
}

impl Admin {
    pub fn connect(address: SocketAddr) -> Admin {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            match Admin::attempt(address) {
                Ok(admin) => return admin,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// With a session that outlasts every pause of a test: nobody sends pings for it.
    fn attempt(address: SocketAddr) -> std::io::Result<Admin> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_nodelay(true)?;
        // As every client of ZooKeeper: a server that leaves a connect without an answer is asked again.
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(&Request::connect(0, 600_000, 0, &[0; 16]))?;
        let mut admin = Admin { stream, xid: 0 };
        let connected = Connected::read(&admin.frame()?).map_err(std::io::Error::other)?;
        admin.stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        assert!(connected.timeout_ms > 0);
        Ok(admin)
    }

    fn frame(&mut self) -> std::io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let mut frame = vec![0; u32::from_be_bytes(head) as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(frame)
    }

    /// Sends without waiting for the answer.
    fn send(&mut self, make: impl FnOnce(i32) -> Vec<u8>) {
        self.xid += 1;
        let frame = make(self.xid);
        self.stream.write_all(&frame).unwrap();
    }

    fn answer(&mut self) -> (Reply, Vec<u8>) {
        loop {
            let frame = self.frame().unwrap();
            let (reply, _) = Reply::read(&frame).unwrap();
            if reply.xid >= 0 {
                return (reply, frame);
            }
        }
    }

    fn call(&mut self, make: impl FnOnce(i32) -> Vec<u8>) -> i32 {
        self.send(make);
        self.answer().0.error
    }

    pub fn auth(&mut self, credentials: &str) {
        self.stream.write_all(&Request::auth("digest", credentials.as_bytes())).unwrap();
        let frame = self.frame().unwrap();
        assert_eq!(Reply::read(&frame).unwrap().0.error, wire::OK);
    }

    /// Makes a node and what is above it.
    pub fn make(&mut self, path: &str, data: &[u8]) {
        let mut at = 1;
        while let Some(slash) = path[at..].find('/') {
            self.call(|xid| Request::create(xid, &path[..at + slash], b"", false));
            at += slash + 1;
        }
        let error = self.call(|xid| Request::create(xid, path, data, false));
        assert!(error == wire::OK || error == wire::NODE_EXISTS, "{path}: {error}");
        if error == wire::NODE_EXISTS {
            self.set(path, data);
        }
    }

    /// Makes an empty node under one that is there.
    pub fn create(&mut self, path: &str) {
        assert_eq!(self.call(|xid| Request::create(xid, path, b"", false)), wire::OK, "{path}");
    }

    /// Makes a node only this identity may touch.
    pub fn make_for(&mut self, path: &str, data: &[u8], identity: (&str, &str)) {
        assert_eq!(self.call(|xid| Request::create_for(xid, path, data, false, identity)), wire::OK);
    }

    /// Many nodes without waiting for each.
    pub fn make_many<'a>(&mut self, paths: impl IntoIterator<Item = &'a str>) {
        let mut waiting = 0;
        for path in paths {
            self.send(|xid| Request::create(xid, path, b"", false));
            waiting += 1;
            if waiting == 200 {
                while waiting > 0 {
                    assert_eq!(self.answer().0.error, wire::OK);
                    waiting -= 1;
                }
            }
        }
        for _ in 0..waiting {
            assert_eq!(self.answer().0.error, wire::OK);
        }
    }

    pub fn set(&mut self, path: &str, data: &[u8]) {
        assert_eq!(self.call(|xid| Request::set_data(xid, path, data)), wire::OK, "{path}");
    }

    pub fn delete(&mut self, path: &str) {
        assert_eq!(self.call(|xid| Request::delete(xid, path)), wire::OK, "{path}");
    }
}
