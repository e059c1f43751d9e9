//! The blocking form: steps an operation until it is decided.

use super::op::{Connected, Operation, Step};
use super::race::Millis;
use super::source::RouteSource;
use crate::error::Result;

impl<S: RouteSource> Operation<S> {
    /// Drives the operation on this thread until a socket is ready or nothing is left, at most `timeout_ms` from
    /// now; then it ends with `E_TIMEOUT` and what was tried as causes. `None` takes the rules' own limits.
    ///
    /// Only this operation's host code runs meanwhile. Cancelling from another thread ends the wait at once.
    ///
    /// # Errors
    /// `E_CONNECT` and the other endings of an operation, `E_CANCELED`, `E_TIMEOUT`, `E_FORKED`.
    pub fn run(&mut self, timeout_ms: Option<Millis>) -> Result<Connected<S::Route>> {
        self.wait_until_ready(timeout_ms)?;
        self.take()
    }

    /// As [`Operation::run`] without taking the socket.
    ///
    /// # Errors
    /// As [`Operation::run`].
    pub fn wait_until_ready(&mut self, timeout_ms: Option<Millis>) -> Result<()> {
        if let Some(limit) = timeout_ms {
            self.limit(limit);
        }
        let mut step = self.step_with(&[])?;
        loop {
            match step {
                Step::Ready => return Ok(()),
                Step::Ended(error) => return Err(error),
                Step::Pending => {}
            }
            let wake = self.wait_fd()?;
            // Raised before the descriptor existed, it does not make it readable: look once more.
            let limit = if self.is_woken() { Some(0) } else { self.deadline_ms() };
            let limit = limit.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
            self.poll_lanes(Some((wake, limit)));
            step = self.step_with(&[])?;
        }
    }
}
