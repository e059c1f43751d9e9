//! From a Selection to a connected socket.
