//! Proxy scripts behind their exports, in a library without the feature `script`.

use super::guard::Fail;
use super::proxy_script::{Fetching, byway_pac_options, unavailable};
use crate::engine::Engine;
use crate::engine::routes::proxies::ProxySource;
use crate::engine::routes::system_proxies::MakeScript;
use crate::error::{Error, Status};
use std::sync::Arc;

fn missing<T>() -> Result<T, Fail> {
    let why = "this library was built without the feature script";
    Err(Error::new(Status::E_UNSUPPORTED, why).into())
}

pub(super) fn make(_: &Arc<Engine>, _: &byway_pac_options, _: Fetching) -> Result<Arc<ProxySource>, Fail> {
    missing()
}

pub(super) fn maker(_: &Arc<Engine>, _: *const byway_pac_options, _: Fetching) -> Result<MakeScript, Fail> {
    Ok(Box::new(|url| Ok(unavailable(url))))
}

pub(super) fn set(_: &Arc<ProxySource>, _: &[u8], _: Option<&str>) -> Result<(), Fail> {
    missing()
}

pub(super) fn failed(_: &Arc<ProxySource>, _: Error) -> Result<(), Fail> {
    missing()
}

pub(super) fn url(_: &Arc<ProxySource>) -> Option<String> {
    None
}
