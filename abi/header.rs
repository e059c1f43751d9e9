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
    format!("{}\n", with_contents(root, &text.replace("self_", "self")).trim_end())
}

/// Where the list of contents goes.
const CONTENTS: &str = " * {contents}\n";

/// The text with a list of its parts: each boundary file that has functions, by its first one and its own first sentence.
/// Names and not lines: two changes elsewhere in the header must not make a third.
fn with_contents(root: &str, text: &str) -> String {
    let mut contents = String::new();
    for file in FILES {
        let source = std::fs::read_to_string(format!("{root}/src/ffi/{file}.rs")).expect("a boundary file");
        let title = source.lines().next().unwrap_or_default().trim_start_matches("//! ");
        if let Some((_, rest)) = source.split_once("extern \"C\" fn ") {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(text.contains(&format!("{name}(")), "{name} is not in the header");
            contents += &format!(" * {name:34}  {title}\n");
        }
    }
    let (head, body) = text.split_once(CONTENTS).expect("a place for the contents in cbindgen.toml");
    format!("{head}{contents}{body}")
}
