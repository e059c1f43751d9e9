//! ZooKeeper's wire format: frames of jute records. Pure; every length is checked.
//!
//! Only what following a tree needs, and the few writes that tests and tools use. Protocol: `zookeeper.jute`,
//! stable since 3.3.

use crate::error::{Error, Result, Source, Status};

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Operation {
    /// Makes a node.
    Create = 1,
    /// Removes a node.
    Delete = 2,
    /// Whether a node is there.
    Exists = 3,
    /// A node's data.
    GetData = 4,
    /// Writes a node's data.
    SetData = 5,
    /// Names of a node's children.
    GetChildren = 8,
    /// Says that this side lives.
    Ping = 11,
    /// Credentials.
    Auth = 100,
    /// Ends the session.
    Close = -11,
}

/// `xid` of notifications.
pub const XID_EVENT: i32 = -1;
/// `xid` of pings.
pub const XID_PING: i32 = -2;
/// `xid` of credentials.
pub const XID_AUTH: i32 = -4;

/// The call worked.
pub const OK: i32 = 0;
/// No such node.
pub const NO_NODE: i32 = -101;
/// Not permitted.
pub const NO_AUTH: i32 = -102;
/// The node is there already.
pub const NODE_EXISTS: i32 = -110;
/// The session is over.
pub const SESSION_EXPIRED: i32 = -112;
/// The credentials were refused.
pub const AUTH_FAILED: i32 = -115;

/// A request under construction; its frame is complete when [`Request::finish`] returns it.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Begins with a header.
    pub fn new(xid: i32, operation: Operation) -> Request {
        let mut request = Request { bytes: vec![0; 4] };
        request.int(xid).int(operation as i32);
        request
    }

    /// The first request of a connection, which has no header.
    pub fn connect(last_zxid: i64, timeout_ms: i32, session: i64, password: &[u8]) -> Vec<u8> {
        let mut request = Request { bytes: vec![0; 4] };
        request.int(0).long(last_zxid).int(timeout_ms).long(session).buffer(Some(password)).bool(false);
        request.finish()
    }

    /// Credentials of the digest scheme: `user:password`.
    pub fn auth(scheme: &str, credentials: &[u8]) -> Vec<u8> {
        let mut request = Request::new(XID_AUTH, Operation::Auth);
        request.int(0).text(scheme).buffer(Some(credentials));
        request.finish()
    }

    /// One that names a node and says whether to watch it: [`Operation::Exists`], `GetData`, `GetChildren`.
    pub fn watch(xid: i32, operation: Operation, path: &str) -> Vec<u8> {
        let mut request = Request::new(xid, operation);
        request.text(path).bool(true);
        request.finish()
    }

    /// Makes a node that everybody may read and write; an ephemeral one goes with its session.
    pub fn create(xid: i32, path: &str, data: &[u8], ephemeral: bool) -> Vec<u8> {
        Request::create_for(xid, path, data, ephemeral, ("world", "anyone"))
    }

    /// Makes a node that an identity (`scheme`, `id`) alone may read and write.
    pub fn create_for(
        xid: i32,
        path: &str,
        data: &[u8],
        ephemeral: bool,
        (scheme, id): (&str, &str),
    ) -> Vec<u8> {
        let mut request = Request::new(xid, Operation::Create);
        request.text(path).buffer(Some(data)).int(1).int(31).text(scheme).text(id);
        request.int(i32::from(ephemeral));
        request.finish()
    }

    /// Writes a node's data, whatever its version.
    pub fn set_data(xid: i32, path: &str, data: &[u8]) -> Vec<u8> {
        let mut request = Request::new(xid, Operation::SetData);
        request.text(path).buffer(Some(data)).int(-1);
        request.finish()
    }

    /// Removes a node without children, whatever its version.
    pub fn delete(xid: i32, path: &str) -> Vec<u8> {
        let mut request = Request::new(xid, Operation::Delete);
        request.text(path).int(-1);
        request.finish()
    }

    fn int(&mut self, value: i32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    fn long(&mut self, value: i64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    fn bool(&mut self, value: bool) -> &mut Self {
        self.bytes.push(u8::from(value));
        self
    }

    fn buffer(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        match bytes {
            None => self.int(-1),
            Some(bytes) => {
                self.int(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                self.bytes.extend_from_slice(bytes);
                self
            }
        }
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(Some(text.as_bytes()))
    }

    /// The frame: length and content.
    pub fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len() - 4).unwrap_or(u32::MAX).to_be_bytes();
        if let Some(head) = self.bytes.get_mut(..4) {
            head.copy_from_slice(&length);
        }
        self.bytes
    }
}

/// Reads records from a frame's content.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// At the beginning of a frame's content.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(length) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(broken("a record ends in the middle")),
        }
    }

    /// A 32-bit number.
    pub fn int(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        Ok(i32::from_be_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// A 64-bit number.
    pub fn long(&mut self) -> Result<i64> {
        let bytes = self.take(8)?;
        Ok(i64::from_be_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// Bytes; a missing buffer is an empty one.
    pub fn buffer(&mut self) -> Result<&'a [u8]> {
        match self.int()? {
            -1 => Ok(&[]),
            length => match usize::try_from(length) {
                Ok(length) => self.take(length),
                Err(_) => Err(broken("a negative length")),
            },
        }
    }

    /// Text.
    pub fn text(&mut self) -> Result<&'a str> {
        core::str::from_utf8(self.buffer()?).map_err(|_| broken("a text that is not UTF-8"))
    }

    /// The length of a list. Each entry needs four bytes, so a length that cannot be is refused here.
    pub fn list(&mut self) -> Result<usize> {
        match self.int()? {
            -1 => Ok(0),
            length => match usize::try_from(length) {
                Ok(length) if length <= self.rest.len() / 4 => Ok(length),
                _ => Err(broken("a list longer than its record")),
            },
        }
    }
}

fn broken(what: &str) -> Error {
    Error::new(Status::E_SOURCE, format!("the server breaks the protocol: {what}")).source(Source::Socket)
}

/// Answer to the first request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Negotiated session timeout in milliseconds; 0 when the session has expired.
    pub timeout_ms: i32,
    /// The session.
    pub session: i64,
    /// What takes it up again.
    pub password: Vec<u8>,
}

impl Connected {
    /// Reads it.
    ///
    /// # Errors
    /// `E_SOURCE`: it breaks the protocol.
    pub fn read(bytes: &[u8]) -> Result<Connected> {
        let mut reader = Reader::new(bytes);
        reader.int()?;
        let timeout_ms = reader.int()?;
        let session = reader.long()?;
        let password = reader.buffer()?;
        if password.len() > 64 {
            return Err(broken("a session password of more than 64 bytes"));
        }
        Ok(Connected { timeout_ms, session, password: password.to_vec() })
    }
}

/// Head of every other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's number.
    pub xid: i32,
    /// The last change the server has seen.
    pub zxid: i64,
    /// [`OK`] or what went wrong.
    pub error: i32,
}

impl Reply {
    /// Reads it, and gives the reader of what follows.
    ///
    /// # Errors
    /// `E_SOURCE`: it breaks the protocol.
    pub fn read(bytes: &[u8]) -> Result<(Reply, Reader<'_>)> {
        let mut reader = Reader::new(bytes);
        let reply = Reply { xid: reader.int()?, zxid: reader.long()?, error: reader.int()? };
        Ok((reply, reader))
    }
}

/// The path a notification is about; its kind does not matter to who looks again anyway.
///
/// # Errors
/// `E_SOURCE`: it breaks the protocol.
pub fn event_path<'a>(reader: &mut Reader<'a>) -> Result<&'a str> {
    reader.int()?;
    reader.int()?;
    reader.text()
}

/// An error number in words.
pub fn error_name(error: i32) -> String {
    let name = match error {
        NO_NODE => "no such node",
        NO_AUTH => "not permitted; check the credentials and the node's ACL",
        NODE_EXISTS => "the node exists",
        SESSION_EXPIRED => "the session has expired",
        AUTH_FAILED => "the credentials were refused",
        -1 => "system error",
        -4 => "connection lost",
        -6 => "not implemented by this server",
        -8 => "bad arguments",
        -124 => "this client must authenticate with SASL",
        _ => return format!("ZooKeeper error {error}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_bytes_of_the_protocol() {
        assert_eq!(
            Request::watch(7, Operation::GetData, "/a"),
            [0, 0, 0, 15, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 2, b'/', b'a', 1]
        );
        let connect = Request::connect(5, 9000, 0, &[0; 16]);
        assert_eq!((connect.len(), connect.get(..4)), (49, Some(&[0, 0, 0, 45][..])));
    }

    #[test]
    fn no_frame_is_read_beyond_its_end() {
        let mut good = Vec::new();
        good.extend(7i32.to_be_bytes());
        good.extend(99i64.to_be_bytes());
        good.extend(0i32.to_be_bytes());
        good.extend(2i32.to_be_bytes());
        for name in ["a", "bc"] {
            good.extend((name.len() as i32).to_be_bytes());
            good.extend(name.as_bytes());
        }
        let names = |bytes: &[u8]| -> Result<Vec<String>> {
            let (_, mut reader) = Reply::read(bytes)?;
            (0..reader.list()?).map(|_| Ok(reader.text()?.to_owned())).collect()
        };
        assert_eq!(names(&good).unwrap(), ["a", "bc"]);
        for end in 0..good.len() {
            assert_eq!(names(&good[..end]).unwrap_err().status(), Status::E_SOURCE, "{end}");
        }
        let mut huge = good.clone();
        huge[16..20].copy_from_slice(&i32::MAX.to_be_bytes());
        assert!(names(&huge).is_err());
        huge[16..20].copy_from_slice(&(-5i32).to_be_bytes());
        assert!(names(&huge).is_err());
        assert!(Connected::read(&[0; 19]).is_err());
    }
}
