//! The JVM's side of the boundary: natives of `io.byway`, one file per handle in the order of the header.
//!
//! A native turns Java's arguments into C's, makes one call of an exported function, and turns the outcome back:
//! a number, an address, an array, or an exception. It is written out literally with the name the JVM looks for; its
//! body is one call of [`env::Env::guard`], so neither a panic nor an error object gets lost. Handles are addresses
//! that the Java object holds for the length of the call; texts are UTF-8 in byte arrays.
//!
//! | file | what |
//! |---|---|
//! | `env` | what natives may ask of the JVM, as safe methods |
//! | `errors` | from a status and an error object to the pending exception |
//! | `callback` | Java objects behind `user_data`, threads of the engine in the JVM |
//! | `load` | `JNI_OnLoad`: the names that are looked up once |

mod callback;
mod env;
mod errors;
mod load;

mod address;
mod connected;
mod dial;
mod dial_hooks;
mod dial_options;
mod dns;
mod engine;
mod feedback;
mod filter;
mod handshake;
mod host;
mod library;
mod listener;
mod proxy;
mod proxy_composed;
mod proxy_question;
mod proxy_script;
mod proxy_selector;
mod queue;
mod route;
mod selection;
mod selector;

mod binding;
mod chain;
mod chain_report;
mod choice;
mod invocation;
mod invokers;
mod router;
mod rule;
mod session;
mod source;

include!(concat!(env!("OUT_DIR"), "/hidden.rs"));
