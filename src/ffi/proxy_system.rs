//! The proxy selector of the system's settings.

use super::arguments::{self, Versioned, byway_str};
use super::callbacks;
use super::engine::byway_engine;
use super::error::byway_error;
use super::guard::{Fail, call, call_or};
use super::handle;
use super::library::{Layout, layout};
use super::proxy_built_in::pairs;
use super::proxy_script::{self, byway_pac_callbacks, byway_pac_options};
#[cfg(not(feature = "script"))]
use super::proxy_script_off as on;
#[cfg(feature = "script")]
use super::proxy_script_on as on;
use super::proxy_selector::{self, byway_proxy_selector};
use super::status::byway_status;
use crate::engine::routes::proxies::{Choosing, ProxySource};
use crate::engine::routes::system_proxies::{Origin, SystemProxies};
use crate::error::Status;
use crate::proxies::environment::Table;
use crate::proxies::system::{Place, Places};
use std::path::Path;
use std::sync::Arc;

/// Where the system's proxy settings are found. Nothing else is read. Start from `BYWAY_SYSTEM_OPTIONS_INIT`.
///
/// The first source that says anything decides, alone: the environment when it names a proxy, then GNOME, then KDE, then
/// `/etc/sysconfig/proxy`; else DIRECT. A file that does not exist says nothing; one that cannot be read or understood is an
/// error.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_system_options {
    /// `sizeof(byway_system_options)`.
    pub struct_size: usize,
    /// Names of environment variables. NULL with `n` 0: the process's own, read at creation and at every refresh.
    pub names: *const byway_str,
    /// Their values.
    pub values: *const byway_str,
    /// Their number.
    pub n: usize,
    /// `XDG_CURRENT_DESKTOP`, for example `KDE`: whose settings count; empty: those that exist, GNOME first.
    pub desktop: byway_str,
    /// Home directory whose `.config` holds the desktops' settings; empty: none is looked at.
    pub home: byway_str,
    /// `XDG_CONFIG_HOME`, instead of `.config` below `home`.
    pub config_home: byway_str,
    /// Directory in place of `/` for `etc/sysconfig/proxy`; `/` for the system's own, empty: not looked at.
    pub root: byway_str,
    /// GNOME's settings in place of a file: the content of a dconf database. `data` NULL: the file counts.
    pub dconf: byway_str,
    /// GNOME's settings in place of a file: GLib's keyfile. `data` NULL: the file counts.
    pub keyfile: byway_str,
    /// KDE's settings in place of `kioslaverc`. `data` NULL: the file counts.
    pub kioslaverc: byway_str,
    /// The content of `/etc/sysconfig/proxy`. `data` NULL: the file counts.
    pub sysconfig: byway_str,
    /// How a script that the settings name is run; its `url` and `source` are not used. NULL: every default.
    pub pac: *const byway_pac_options,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_system_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_system_options {
        struct_size: size_of::<Self>(),
        names: core::ptr::null(),
        values: core::ptr::null(),
        n: 0,
        desktop: byway_str::NONE,
        home: byway_str::NONE,
        config_home: byway_str::NONE,
        root: byway_str::NONE,
        dconf: byway_str::NONE,
        keyfile: byway_str::NONE,
        kioslaverc: byway_str::NONE,
        sysconfig: byway_str::NONE,
        pac: core::ptr::null(),
    };
}

pub(super) const LAYOUTS: &[Layout] = &[layout!(byway_system_options {
    struct_size,
    names,
    values,
    n,
    desktop,
    home,
    config_home,
    root,
    dconf,
    keyfile,
    kioslaverc,
    sysconfig,
    pac,
})];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_system_options_init(options: *mut byway_system_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

fn origin(options: &byway_system_options) -> Result<Origin, Fail> {
    let environment: Option<Table> = match options.n == 0 && options.names.is_null() {
        true => None,
        false => Some(pairs(options.names, options.values, options.n)?.into_iter().collect()),
    };
    let home = arguments::text_of(options.home, "options.home")?;
    let config_home = arguments::text_of(options.config_home, "options.config_home")?;
    let root = arguments::text_of(options.root, "options.root")?;
    let desktop = arguments::text_of(options.desktop, "options.desktop")?;
    let config = (!config_home.is_empty()).then(|| Path::new(config_home));
    let mut places = match (home, config) {
        ("", None) => Places { desktop: desktop.to_owned(), ..Places::default() },
        (home, config) => Places::usual(Path::new(home), config, desktop),
    };
    places.sysconfig = match root {
        "" => None,
        root => Some(Place::File(Path::new(root).join("etc/sysconfig/proxy"))),
    };
    let given = [
        (&mut places.dconf, options.dconf, "options.dconf"),
        (&mut places.keyfile, options.keyfile, "options.keyfile"),
        (&mut places.kioslaverc, options.kioslaverc, "options.kioslaverc"),
        (&mut places.sysconfig, options.sysconfig, "options.sysconfig"),
    ];
    let gnome = !options.dconf.data.is_null() || !options.keyfile.data.is_null();
    for (place, content, name) in given {
        if !content.data.is_null() {
            *place = Some(Place::Content(arguments::bytes(content.data, content.len, name)?.to_vec()));
        }
    }
    if gnome && options.dconf.data.is_null() {
        // The keyfile that was handed in, not a database beside it.
        places.dconf = None;
    }
    Ok(Origin { environment, places })
}

/// Makes a proxy selector from the system's settings: a snapshot, read here from where `options` says, and again by
/// `byway_proxy_selector_refresh`; a question never reads anything. Settings that name a script have it run as in
/// `byway_proxy_selector_new_pac`: a `file:` URL is read together with the settings, everything else is fetched by
/// `callbacks`, with an empty URL when the settings say that it is to be discovered (WPAD). `callbacks` may be NULL; such
/// settings are then an error of the request, until `byway_proxy_selector_refresh` finds other ones.
///
/// Ownership: the caller owns one reference; the texts are copied. `callbacks->destroy` runs when the last user is gone, also
/// when this fails.
/// Threads: reading the process's environment must not run while another thread changes it.
/// Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_OS` and `BYWAY_E_SYNTAX` naming the file, `BYWAY_E_INVALID_PROXY` naming the key,
/// `BYWAY_E_UTF8`, `BYWAY_E_LIMIT`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`; those of a script's file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_new_system(
    engine: *mut byway_engine,
    options: *const byway_system_options,
    callbacks: *const byway_pac_callbacks,
    out: *mut *mut byway_proxy_selector,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let engine =
            handle::shared(engine, "engine").inspect_err(|_| callbacks::destroy_refused(callbacks))?;
        let fetching = proxy_script::fetching(&engine.0, callbacks)?;
        let options = arguments::versioned(options, "options")?;
        let make = on::maker(&engine.0, options.pac, fetching)?;
        let system = SystemProxies::new(origin(&options)?, make)?;
        *out =
            proxy_selector::hand_out(ProxySource::new(Choosing::System(system)), Arc::downgrade(&engine.0));
        Ok(Status::OK)
    })
}

/// Reads the system's settings from elsewhere from now on: other texts, another environment. `options->pac` is not used. On
/// an error the old settings stay in force.
///
/// Errors: as `byway_proxy_selector_new_system`; `BYWAY_E_STATE` for a proxy selector of another kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_proxy_selector_set_system(
    self_: *mut byway_proxy_selector,
    options: *const byway_system_options,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let Choosing::System(system) = proxy_selector::open(self_, "self")?.kind() else {
            return Err(Fail::Parameter(Status::E_STATE, "self"));
        };
        system.replace(origin(&arguments::versioned(options, "options")?)?)?;
        Ok(Status::OK)
    })
}
