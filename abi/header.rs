// Makes include/byway.h from src/ffi. Shared by build.rs (feature `header`) and the test that finds a stale header.

/// Files of the boundary in the order of the header.
const FILES: &[&str] = &[
    "arguments", "status", "library", "error", "text", "callbacks", "call", "queue", "engine", "host", "filter", "proxy", "dns", "proxy_selector", "proxy_built_in",
    "proxy_composed",
    "proxy_script",
    "proxy_system",
    "proxy_question", "address", "route", "selection", "selector", "dial_options", "dial_hooks", "dial", "handshake", "listener", "feedback", "invokers", "invocation", "rule", "router", "choice", "chain", "chain_report", "session", "source", "binding",
];

/// How the trailer begins.
const TRAILER: &str = "/* Every field of each options struct";

/// The header's text.
fn generate(root: &str) -> String {
    let config = cbindgen::Config::from_file(format!("{root}/cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in FILES {
        builder = builder.with_src(format!("{root}/src/ffi/{file}.rs"));
    }
    let mut text = Vec::new();
    builder.generate().expect("the boundary parses").write(&mut text);
    let text = String::from_utf8(text).expect("the boundary is UTF-8");
    // cbindgen puts its trailer behind the include guard; it belongs inside.
    let (body, macros) = text.split_once(TRAILER).expect("the trailer of cbindgen.toml");
    let end = body.rfind("#ifdef __cplusplus").expect("cpp_compat is on");
    let (items, closing) = body.split_at(end);
    let text = format!("{items}{TRAILER}{macros}\n{closing}");
    // `self` is a keyword in Rust and the natural name of the first parameter in C.
    format!("{}\n", text.replace("self_", "self").trim_end())
}
