//! A question to a host or to the system, and its answer: asked on the driving thread, answered there or later from
//! any thread, exactly once.

use crate::error::{Error, Source, Status};
use crate::net::dns::{MAX_ADDRESSES, MAX_SERVICES};
use crate::net::{Ip, Listed, Service};
use crate::runtime::notice::Notice;
use crate::sys::spin::Spin;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

/// See the module.
pub struct Request<A> {
    id: u64,
    canceled: AtomicBool,
    /// Who may still answer: the running callback, and what the host retained.
    answerers: AtomicU32,
    inner: Spin<Inner<A>>,
}

struct Inner<A> {
    answer: A,
    done: Option<Result<(), Error>>,
    /// Woken when there is something to see.
    notice: Option<Arc<Notice>>,
    /// Woken also by a part of the answer.
    eager: bool,
}

/// Question for the addresses of a name.
pub type DnsRequest = Request<DnsAnswer>;
/// Question for the proxies of an address.
pub type ProxyRequest = Request<ProxyAnswer>;

/// Addresses and service metadata.
#[derive(Default)]
pub struct DnsAnswer {
    inline: ArrayVec<Ip, 8>,
    more: Vec<Ip>,
    /// Service metadata.
    pub services: Vec<Arc<Service>>,
}

impl DnsAnswer {
    /// Addresses so far.
    #[inline]
    pub fn ips(&self) -> &[Ip] {
        if self.more.is_empty() { &self.inline } else { &self.more }
    }

    /// Adds addresses in order; an IPv4-mapped one counts as IPv4 from here on, also for the order of families.
    ///
    /// # Errors
    /// `E_LIMIT` beyond [`MAX_ADDRESSES`]; then nothing is added.
    pub fn add(&mut self, ips: &[Ip]) -> Result<(), Status> {
        self.add_each(ips.len(), ips.iter().copied())
    }

    /// As [`DnsAnswer::add`] for addresses that are [canonical](Ip::is_canonical).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn add_canonical(&mut self, ips: &[Ip]) -> Result<(), Status> {
        if self.more.is_empty() && self.inline.try_extend_from_slice(ips).is_ok() {
            return Ok(());
        }
        self.add(ips)
    }

    /// As [`DnsAnswer::add`], without a list of their own.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn add_each(&mut self, count: usize, ips: impl Iterator<Item = Ip>) -> Result<(), Status> {
        if self.more.is_empty() && self.inline.remaining_capacity() >= count {
            for ip in ips {
                let _ = self.inline.try_push(ip.unmapped());
            }
            return Ok(());
        }
        if self.ips().len() + count > MAX_ADDRESSES {
            return Err(Status::E_LIMIT);
        }
        if self.more.is_empty() {
            self.more.reserve_exact(self.inline.len() + count);
            self.more.extend_from_slice(&self.inline);
        }
        self.more.extend(ips.take(count).map(Ip::unmapped));
        Ok(())
    }

    /// # Errors
    /// `E_LIMIT` beyond [`MAX_SERVICES`].
    pub fn add_service(&mut self, service: Arc<Service>) -> Result<(), Status> {
        if self.services.len() >= MAX_SERVICES {
            return Err(Status::E_LIMIT);
        }
        self.services.push(service);
        Ok(())
    }
}

/// Proxies in order.
#[derive(Default)]
pub struct ProxyAnswer {
    /// The list.
    pub list: Vec<Listed>,
}

impl<A: Default> Request<A> {
    /// An open question that its first answerer holds.
    #[inline(always)]
    pub fn new(id: u64) -> Request<A> {
        let inner = Inner { answer: A::default(), done: None, notice: None, eager: false };
        Request {
            id,
            canceled: AtomicBool::new(false),
            answerers: AtomicU32::new(1),
            inner: Spin::new(inner),
        }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// True when nobody waits for the answer any more.
    pub fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Acquire)
    }

    /// Nobody waits any more. False when it was answered already.
    pub fn cancel(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.done.is_some() {
            return false;
        }
        inner.notice = None;
        self.canceled.store(true, Ordering::Release);
        true
    }

    /// Adds to the answer.
    ///
    /// # Errors
    /// `E_CANCELED`, `E_STATE` when it is answered, and what `add` refuses.
    #[inline]
    pub fn add<E: From<Status>>(&self, add: impl FnOnce(&mut A) -> Result<(), E>) -> Result<(), E> {
        let mut inner = self.inner.lock();
        self.check(&inner)?;
        add(&mut inner.answer)?;
        if inner.eager {
            let notice = inner.notice.clone();
            drop(inner);
            if let Some(notice) = notice {
                notice.wake();
            }
        }
        Ok(())
    }

    #[inline]
    fn check(&self, inner: &Inner<A>) -> Result<(), Status> {
        if self.is_canceled() {
            return Err(Status::E_CANCELED);
        }
        if inner.done.is_some() { Err(Status::E_STATE) } else { Ok(()) }
    }

    /// The answer is complete, or failed. The first one wins.
    ///
    /// # Errors
    /// `E_CANCELED`, `E_STATE`.
    pub fn finish(&self, result: Result<(), Error>) -> Result<(), Status> {
        let mut inner = self.inner.lock();
        self.check(&inner)?;
        inner.done = Some(result);
        let notice = inner.notice.take();
        drop(inner);
        if let Some(notice) = notice {
            notice.wake();
        }
        Ok(())
    }

    /// One more who may answer.
    pub fn add_answerer(&self) {
        self.answerers.fetch_add(1, Ordering::Relaxed);
    }

    /// One less; when it was the last and nobody has answered, the question is abandoned.
    #[inline]
    pub fn drop_answerer(&self) {
        // Alone: nobody else can add one or drop one.
        if self.answerers.load(Ordering::Acquire) == 1 {
            self.answerers.store(0, Ordering::Relaxed);
        } else if self.answerers.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let error = Error::new(Status::E_ABANDONED, "the request was released without an answer");
        let _ = self.finish(Err(error.source(Source::Callback)));
    }

    /// The callback has returned and its answer is in: as [`Request::drop_answerer`], when nothing is retained and
    /// it was finished in place.
    #[inline]
    pub fn is_answered(&self) -> bool {
        self.inner.lock().done.is_some()
    }

    /// Reads the state: the answer so far and how it ended, if it has. Nothing is cloned.
    pub fn read<R>(&self, read: impl FnOnce(&mut A, Option<&Result<(), Error>>) -> R) -> R {
        let mut inner = self.inner.lock();
        let Inner { answer, done, .. } = &mut *inner;
        read(answer, done.as_ref())
    }

    /// For the only owner: no lock.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut A, &mut Option<Result<(), Error>>) {
        let inner = self.inner.get_mut();
        (&mut inner.answer, &mut inner.done)
    }

    /// Has `notice` woken by the answer, and with `eager` by every part of it. False when it is answered already.
    pub fn watch(&self, notice: &Arc<Notice>, eager: bool) -> bool {
        let mut inner = self.inner.lock();
        if inner.done.is_some() {
            return false;
        }
        inner.notice = Some(Arc::clone(notice));
        inner.eager = eager;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_wins_and_late_ones_are_told_so() {
        let request = DnsRequest::new(1);
        request.add(|answer| answer.add(&[Ip::v4([192, 0, 2, 1])])).unwrap();
        request.finish(Ok(())).unwrap();
        assert_eq!(request.finish(Err(Error::bare(Status::E_DNS))), Err(Status::E_STATE));
        assert!(!request.cancel());
        let other = DnsRequest::new(2);
        assert!(other.cancel());
        assert_eq!(other.add(|answer| answer.add(&[])), Err(Status::E_CANCELED));
    }

    #[test]
    fn a_question_nobody_can_answer_any_more_is_abandoned() {
        let request = ProxyRequest::new(1);
        request.add_answerer();
        request.drop_answerer();
        assert!(!request.is_answered());
        request.drop_answerer();
        let status = request.read(|_, done| done.and_then(|done| done.as_ref().err().map(Error::status)));
        assert_eq!(status, Some(Status::E_ABANDONED));
    }

    #[test]
    fn an_answer_grows_beyond_the_inline_part_and_has_a_bound() {
        let mut answer = DnsAnswer::default();
        for n in 0..40 {
            answer.add(&[Ip::v4([10, 0, 0, n])]).unwrap();
        }
        assert_eq!((answer.ips().len(), answer.ips()[39]), (40, Ip::v4([10, 0, 0, 39])));
        assert_eq!(answer.add(&vec![Ip::v4([0; 4]); MAX_ADDRESSES]), Err(Status::E_LIMIT));
    }
}
