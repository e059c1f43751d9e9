//! Questions about the library itself: version, features, layout, the meaning of a status.

use super::arguments::{self, byway_str};
use super::guard::{call_bare, call_quiet};
use super::status::byway_status;
use crate::error::Status;
use core::ffi::c_char;

/// Number of this ABI. A library with another number must not be used with this header.
pub const BYWAY_ABI_VERSION: u32 = 0;

/// Number of the ABI the loaded library speaks; compare with `BYWAY_ABI_VERSION`.
///
/// Threads: any, also before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn byway_abi_version() -> u32 {
    BYWAY_ABI_VERSION
}

/// Version of the loaded library, for example `"0.1.0"`.
///
/// Ownership: static.
#[unsafe(no_mangle)]
pub extern "C" fn byway_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Version of the loaded library as `0xMMmmpp`: comparable.
#[unsafe(no_mangle)]
pub extern "C" fn byway_version_number() -> u32 {
    const fn part(text: &str) -> u32 {
        let bytes = text.as_bytes();
        let (mut value, mut i) = (0, 0);
        while i < bytes.len() {
            value = value * 10 + (bytes[i] - b'0') as u32;
            i += 1;
        }
        value
    }
    const NUMBER: u32 = part(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | part(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | part(env!("CARGO_PKG_VERSION_PATCH"));
    NUMBER
}

/// 1 when the library was built with this feature, 0 when not or when there is no such feature. A function whose
/// feature is missing exists and answers `BYWAY_E_UNSUPPORTED`. `len` may be `BYWAY_NUL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_has_feature(name: *const c_char, len: usize) -> i32 {
    call_bare(0, || {
        let name = arguments::bytes(name, len, "name")?;
        Ok(i32::from(FEATURES.iter().any(|(feature, on)| feature.as_bytes() == name && *on)))
    })
}

const FEATURES: &[(&str, bool)] =
    &[("zookeeper", cfg!(feature = "zookeeper")), ("script", cfg!(feature = "script"))];

/// Name of a status, for example `"BYWAY_E_BUSY"`; `"BYWAY_UNKNOWN"` for every other number.
///
/// Ownership: static.
#[unsafe(no_mangle)]
pub extern "C" fn byway_status_name(status: byway_status) -> *const c_char {
    const UNKNOWN: &str = "BYWAY_UNKNOWN\0";
    find(status).map_or(UNKNOWN, |(name, _)| name).as_ptr().cast()
}

/// One sentence about a status; answers for every number.
///
/// Ownership: static.
#[unsafe(no_mangle)]
pub extern "C" fn byway_status_message(status: byway_status) -> *const c_char {
    const UNKNOWN: &str = "unknown status\0";
    find(status).map_or(UNKNOWN, |(_, message)| message).as_ptr().cast()
}

fn find(status: byway_status) -> Option<(&'static str, &'static str)> {
    Status::ALL.iter().find(|(known, ..)| known.0 == status).map(|&(_, name, message)| (name, message))
}

/// One struct of the header, as this library lays it out.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) offsets: &'static [u32],
}

/// Describes one `repr(C)` struct for `byway_layout`.
macro_rules! layout {
    ($t:ident { $($field:ident),* $(,)? }) => {
        $crate::ffi::library::Layout {
            name: concat!(stringify!($t), "\0"),
            size: size_of::<$t>(),
            offsets: &[$( core::mem::offset_of!($t, $field) as u32 ),*],
        }
    };
}
pub(crate) use layout;

/// Every struct of the header, in its order. Appended only.
const LAYOUTS: &[&[Layout]] = &[
    &[layout!(byway_str { data, len })],
    super::queue::LAYOUTS,
    super::engine::LAYOUTS,
    super::address::LAYOUTS,
    super::dns::LAYOUTS,
    super::proxy_selector::LAYOUTS,
    super::route::LAYOUTS,
    super::selector::LAYOUTS,
    super::dial_options::LAYOUTS,
    super::dial_hooks::LAYOUTS,
    super::dial::LAYOUTS,
    super::listener::LAYOUTS,
    super::feedback::LAYOUTS,
    super::invokers::LAYOUTS,
    super::router::LAYOUTS,
    super::chain::LAYOUTS,
    super::source::LAYOUTS,
    super::binding::LAYOUTS,
    super::proxy_composed::LAYOUTS,
    super::proxy_script::LAYOUTS,
    super::proxy_system::LAYOUTS,
];

/// Layout of the struct with this index: its C name, size in bytes, and the offset of each field in order. A binding
/// compares them with its own at load. `*total` gets the number of fields; `(NULL, 0)` counts.
///
/// Ownership: `*name` is static.
/// Errors: `BYWAY_DONE` past the last struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_layout(
    index: u32,
    name: *mut byway_str,
    size: *mut u32,
    offsets: *mut u32,
    cap: usize,
    total: *mut usize,
) -> byway_status {
    call_quiet(|| {
        let mut all = LAYOUTS.iter().flat_map(|layouts| layouts.iter());
        let layout = all.nth(usize::try_from(index).unwrap_or(usize::MAX));
        let name = arguments::out_optional(name, byway_str::EMPTY);
        let size = arguments::out_optional(size, 0);
        let Some(layout) = layout else {
            arguments::out_optional(total, 0);
            return Ok(Status::DONE);
        };
        if let Some(name) = name {
            *name = byway_str { data: layout.name.as_ptr().cast(), len: layout.name.len() - 1 };
        }
        if let Some(size) = size {
            *size = u32::try_from(layout.size).unwrap_or(u32::MAX);
        }
        let count = layout.offsets.len();
        arguments::fill(offsets, size_of::<u32>(), cap, total, count, |i| {
            layout.offsets.get(i).copied().unwrap_or_default()
        })?;
        Ok(Status::OK)
    })
}
