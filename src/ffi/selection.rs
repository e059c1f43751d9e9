//! `byway_selection`: some routes of a selector, and a cursor over them.

use super::arguments;
use super::error::byway_error;
use super::guard::{call, call_or, call_quiet};
use super::handle::{self, handle};
use super::route::{self, byway_route, byway_route_record};
use super::status::byway_status;
use crate::engine::routes::Target;
use crate::engine::routes::dialing::DialRoute;
use crate::error::Status;
use crate::net::selector::Extract;
use crate::sys::slab::Shared;
use std::sync::Arc;

/// Routes to try, in order; the next Selection's only when all of these have failed. Immutable but for its cursor.
/// Exclusive; outlives its selector.
pub struct byway_selection {
    _private: [u8; 0],
}

handle!(byway_selection, SelectionObject, 13, false);

/// The routes, and the handles made of them so far.
pub(crate) struct SelectionObject {
    pub(super) target: Shared<Target>,
    pub(super) routes: Extract,
    pub(super) cursor: usize,
    /// Lent handles by position; empty until the first is asked for. Each holds one reference.
    pub(super) lent: Vec<*mut byway_route>,
}

// SAFETY: the lent handles are shared ones and may be released on any thread.
unsafe impl Send for SelectionObject {}

impl Drop for SelectionObject {
    fn drop(&mut self) {
        for &route in &self.lent {
            handle::release(route);
        }
    }
}

impl SelectionObject {
    /// The routes from the cursor on; it moves to the end.
    pub(super) fn take_rest(&mut self) -> Vec<DialRoute> {
        let count = self.routes.len();
        let rest = self.cursor..count;
        self.cursor = count;
        let routes = rest.filter_map(|i| self.routes.route(&self.target.address, i));
        let source = self.target.proxies.as_ref();
        let chosen = |flags: u8| flags & crate::net::route::flag::FROM_SELECTOR != 0;
        routes
            .map(|route| DialRoute {
                source: source.filter(|_| chosen(route.flags())).map(Arc::downgrade),
                route: route.to_route(),
            })
            .collect()
    }

    fn lend(&mut self, i: usize) -> Option<*const byway_route> {
        let count = self.routes.len();
        if i >= count {
            return None;
        }
        if self.lent.is_empty() {
            self.lent.resize(count, core::ptr::null_mut());
        }
        let place = self.lent.get_mut(i)?;
        if place.is_null() {
            let route = self.routes.route(&self.target.address, i)?.to_route();
            let chosen = route.flags() & crate::net::route::flag::FROM_SELECTOR != 0;
            let source = self.target.proxies.as_ref().filter(|_| chosen).map(Arc::downgrade);
            *place = route::hand_out(route, source);
        }
        Some(place.cast_const())
    }
}

/// Number of routes, at least 1; 0 for what is not a live selection, or one on which a call is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selection_len(self_: *const byway_selection) -> usize {
    call_or(0, || Ok(handle::exclusive(self_, "self")?.routes.len()))
}

/// One route; NULL past the end.
///
/// Ownership: borrowed, valid until the selection is freed; `byway_route_retain` keeps it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selection_at(self_: *mut byway_selection, index: usize) -> *const byway_route {
    call_or(core::ptr::null(), || {
        Ok(handle::exclusive(self_, "self")?.lend(index).unwrap_or(core::ptr::null()))
    })
}

/// The route under the cursor, which moves on.
///
/// Ownership: `*out` is borrowed, valid until the selection is freed; `byway_route_retain` keeps it.
/// Errors: `BYWAY_DONE` when all were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selection_next(
    self_: *mut byway_selection,
    out: *mut *const byway_route,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out(out, core::ptr::null(), "out")?;
        let mut selection = handle::exclusive(self_, "self")?;
        let cursor = selection.cursor;
        let Some(route) = selection.lend(cursor) else { return Ok(Status::DONE) };
        selection.cursor += 1;
        *out = route;
        Ok(Status::OK)
    })
}

/// 1 when `byway_selection_next` has a route, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selection_more(self_: *const byway_selection) -> i32 {
    call_or(0, || {
        let selection = handle::exclusive(self_, "self")?;
        Ok(i32::from(selection.cursor < selection.routes.len()))
    })
}

/// All routes at once: writes up to `cap` records of `stride` bytes, `*total` gets their number. The cursor stays.
///
/// Ownership: texts in the records are borrowed, valid until the selection is freed.
/// Errors: `BYWAY_E_ARGUMENT` for a stride of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selection_records(
    self_: *const byway_selection,
    out: *mut byway_route_record,
    stride: usize,
    cap: usize,
    total: *mut usize,
) -> byway_status {
    call_quiet(|| {
        let selection = handle::exclusive(self_, "self")?;
        let address = &selection.target.address;
        // Checks the array and sets the total; the records are written below, without a copy in between.
        arguments::fill(out, stride, cap, core::ptr::null_mut(), 0, |_| route::RECORD)?;
        let count = selection.routes.len();
        if let Some(total) = arguments::out_optional(total, 0) {
            *total = count;
        }
        let common = route::common(address);
        let records = route::Records { array: out, stride, cap, common, with_proxy_host: true };
        for (i, route) in selection.routes.routes(address).take(cap).enumerate() {
            records.write(i, &route);
        }
        Ok(Status::OK)
    })
}

/// Ends a selection. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_selection_free(self_: *mut byway_selection) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
