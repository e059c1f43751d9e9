//! What the selector is told: proxies, names, failures.

use super::*;

impl Selector {
    pub(super) fn proxies_known(&self, cx: &Context<'_>, error: Option<&Error>) {
        if !cx.listening.wants(EventKind::ProxySelectEnd) || cx.settings.compat == Compat::OkHttp3 {
            return;
        }
        let explicit;
        let proxies = match (self.head.from, cx.address.explicit_proxy()) {
            (From::List, _) => self.list(),
            (From::Explicit, Some(ExplicitProxy::Proxy(proxy))) => {
                explicit = [Listed::Proxy(Arc::clone(proxy))];
                &explicit
            }
            _ if error.is_some() => &[],
            _ => &[Listed::Direct][..],
        };
        cx.listening.emit(EventKind::ProxySelectEnd, || Event {
            subject: cx.address.uri(),
            proxies,
            error,
            ..Event::new(EventKind::ProxySelectEnd, self.head.id, cx.address)
        });
    }

    /// The proxy selector's answer, in its order.
    ///
    /// # Errors
    /// `E_STATE` when nothing was asked. Under OkHttp also what [`Selector::fail_proxies`] returns.
    pub fn answer_proxies(
        &mut self,
        cx: &Context<'_>,
        proxies: impl IntoIterator<Item = Listed>,
    ) -> Result<()> {
        if self.head.state != State::Proxies {
            return Err(Error::new(Status::E_STATE, "no proxies were asked for"));
        }
        let okhttp = cx.settings.compat != Compat::Byway;
        for (i, listed) in proxies.into_iter().enumerate() {
            if listed == Listed::Null && !okhttp {
                return self
                    .fail_proxies(cx, Error::new(Status::E_NULL, format!("proxy {i} of the list is NULL")));
            }
            if i >= MAX_PROXIES {
                let error =
                    Error::new(Status::E_LIMIT, format!("more than {MAX_PROXIES} proxies in one list"));
                return self.fail_proxies(cx, error);
            }
            if let Err(full) = self.head.listed.try_push(listed) {
                if self.head.rare().long_list.is_empty() {
                    let few = self.head.listed.clone();
                    self.head.rare_mut().long_list.extend(few);
                }
                self.head.rare_mut().long_list.push(full.element());
            }
        }
        if self.list().is_empty() {
            if !okhttp && !cx.settings.empty_is_direct {
                let error =
                    Error::new(Status::E_EMPTY_ANSWER, "the proxy selector answered without any proxy");
                return self.fail_proxies(cx, error.source(Source::Callback));
            }
            self.head.from = From::Direct;
            self.head.proxy_count = 1;
        } else {
            self.head.from = From::List;
            self.head.proxy_count = self.list().len() as u32;
        }
        self.head.state = State::Idle;
        self.proxies_known(cx, None);
        Ok(())
    }

    /// The proxy selector failed.
    ///
    /// # Errors
    /// Under OkHttp the error itself, which there leaves the constructor; but 5 takes an argument error as DIRECT.
    /// byway's own rule never fails here: the next step does, or goes DIRECT by the engine's policy.
    pub fn fail_proxies(&mut self, cx: &Context<'_>, error: Error) -> Result<()> {
        if self.head.state != State::Proxies {
            return Err(Error::new(Status::E_STATE, "no proxies were asked for"));
        }
        self.head.listed.clear();
        if let Some(rare) = &mut self.head.rare {
            rare.long_list.clear();
        }
        self.head.state = State::Idle;
        let direct = match cx.settings.compat {
            Compat::Byway => cx.settings.direct_on_selector_error,
            Compat::OkHttp5 => error.status() == Status::E_ARGUMENT,
            Compat::OkHttp3 => false,
        };
        if direct {
            self.head.from = From::Direct;
            self.head.proxy_count = 1;
            self.proxies_known(cx, (cx.settings.compat == Compat::Byway).then_some(&error));
            return Ok(());
        }
        self.head.from = From::List;
        self.head.proxy_count = 0;
        if cx.settings.compat != Compat::Byway {
            return Err(error);
        }
        let status = match error.status() {
            known @ (Status::E_CANCELED
            | Status::E_TIMEOUT
            | Status::E_EMPTY_ANSWER
            | Status::E_ABANDONED) => known,
            _ => Status::E_PROXY_SELECTOR,
        };
        let wrapped = Error::new(status, format!("the proxy selector failed: {}", error.message()))
            .subject(cx.address.uri())
            .source(error.found_by())
            .host(error.host_code())
            .cause(error);
        self.proxies_known(cx, Some(&wrapped));
        self.head.rare_mut().faults.push(Fault { proxy: u16::MAX, error: wrapped });
        Ok(())
    }

    /// Part or all of a resolver's answer to the running lookup, in its order.
    ///
    /// # Errors
    /// `E_STATE` for a lookup that is not running (a late or second answer), `E_LIMIT` for more addresses than
    /// [`dns::MAX_ADDRESSES`].
    #[inline]
    pub fn answer_dns(
        &mut self,
        cx: &Context<'_>,
        request: u32,
        ips: &[Ip],
        services: &[Arc<Service>],
        last: bool,
    ) -> Result<(), Status> {
        let State::Dns(whose) = self.head.state else { return Err(Status::E_STATE) };
        if request != self.head.request {
            return Err(Status::E_STATE);
        }
        if last && self.head.rare().partial.ips.is_empty() && self.head.rare().partial.services.is_empty() {
            if ips.len() > dns::MAX_ADDRESSES {
                return Err(Status::E_LIMIT);
            }
            self.resolved(cx, whose, ips, services);
            return Ok(());
        }
        self.answer_partly(cx, whose, ips, services, last)
    }

    pub(super) fn answer_partly(
        &mut self,
        cx: &Context<'_>,
        whose: Whose,
        ips: &[Ip],
        services: &[Arc<Service>],
        last: bool,
    ) -> Result<(), Status> {
        if self.head.rare().partial.ips.len() + ips.len() > dns::MAX_ADDRESSES
            || self.head.rare().partial.services.len() + services.len() > dns::MAX_SERVICES
        {
            return Err(Status::E_LIMIT);
        }
        self.head.rare_mut().partial.ips.extend_from_slice(ips);
        self.head.rare_mut().partial.services.extend_from_slice(services);
        // The target of a SOCKS proxy is only half of a route.
        let makes_routes = whose == Whose::Proxy || self.proxy_at(self.head.current, cx.address).is_none();
        let early = cx.early_selection && makes_routes;
        if !last && !early {
            return Ok(());
        }
        let answer = std::mem::take(&mut self.head.rare_mut().partial);
        if last {
            self.resolved(cx, whose, &answer.ips, &answer.services);
        } else {
            let fresh = answer.ips.get(self.head.early_taken as usize..).unwrap_or_default();
            self.head.early_taken = answer.ips.len() as u32;
            self.add_answer(cx, whose, fresh, &answer.services);
            self.head.rare_mut().partial = answer;
        }
        Ok(())
    }

    /// The lookup failed. What already arrived counts as the answer: one family that fails does not fail the call.
    ///
    /// # Errors
    /// `E_STATE` for a lookup that is not running.
    pub fn fail_dns(&mut self, cx: &Context<'_>, request: u32, error: Error) -> Result<(), Status> {
        let State::Dns(whose) = self.head.state else { return Err(Status::E_STATE) };
        if request != self.head.request {
            return Err(Status::E_STATE);
        }
        if !self.head.rare().partial.ips.is_empty() {
            let answer = std::mem::take(&mut self.head.rare_mut().partial);
            self.resolved(cx, whose, &answer.ips, &answer.services);
            return Ok(());
        }
        if let Some(rare) = &mut self.head.rare {
            rare.partial.clear();
        }
        let error =
            if error.about().is_empty() { error.subject(self.lookup_name(cx.address)) } else { error };
        self.lookup_failed(cx, error);
        Ok(())
    }

    pub(super) fn lookup_failed(&mut self, cx: &Context<'_>, error: Error) {
        if cx.settings.compat == Compat::Byway {
            cx.listening.emit(EventKind::DnsEnd, || Event {
                subject: self.lookup_name(cx.address),
                error: Some(&error),
                ..Event::new(EventKind::DnsEnd, self.head.id, cx.address)
            });
        }
        self.head.state = State::Idle;
        self.fault(cx, error);
    }

    /// The whole answer is here.
    #[inline]
    pub(super) fn resolved(&mut self, cx: &Context<'_>, whose: Whose, ips: &[Ip], services: &[Arc<Service>]) {
        if ips.is_empty() {
            let name = self.lookup_name(cx.address).to_owned();
            let message = format!("DNS returned no addresses for {name}");
            self.lookup_failed(
                cx,
                Error::new(Status::E_UNKNOWN_HOST, message).subject(name).source(Source::Callback),
            );
            return;
        }
        cx.listening.emit(EventKind::DnsEnd, || Event {
            subject: self.lookup_name(cx.address),
            ips,
            ..Event::new(EventKind::DnsEnd, self.head.id, cx.address)
        });
        let fresh = ips.get(self.head.early_taken as usize..).unwrap_or_default();
        self.head.early_taken = 0;
        if !fresh.is_empty() {
            self.add_answer(cx, whose, fresh, services);
        }
        self.head.state = State::Idle;
        if whose == Whose::Target && !self.head.rare().targets.is_empty() {
            let hop = self.proxy_at(self.head.current, cx.address).and_then(|proxy| proxy.ip());
            // Either adds the routes, or begins a lookup that the next step names.
            self.head.unnamed = self.reach_proxy(cx, hop).is_some();
        }
    }

    #[inline]
    pub(super) fn add_answer(
        &mut self,
        cx: &Context<'_>,
        whose: Whose,
        ips: &[Ip],
        services: &[Arc<Service>],
    ) {
        let socks_target = whose == Whose::Target && self.proxy_at(self.head.current, cx.address).is_some();
        if socks_target {
            self.keep_targets(cx, ips, services);
            return;
        }
        let service = if services.is_empty() {
            None
        } else {
            let last_wins = cx.settings.compat != Compat::Byway;
            dns::service_for(services, self.lookup_name(cx.address), last_wins)
        };
        let service = if cx.settings.compat == Compat::OkHttp3 { None } else { service };
        match whose {
            Whose::Target => self.add_direct(cx, ips, service),
            Whose::Proxy => self.add_through_proxy(cx, ips, service),
        }
    }

    /// Targets for a SOCKS4 or SOCKS5 proxy: filtered, in order. SOCKS4 carries IPv4 only.
    pub(super) fn keep_targets(&mut self, cx: &Context<'_>, ips: &[Ip], services: &[Arc<Service>]) {
        let name = cx.address.host().text();
        let v4_only = self
            .proxy_at(self.head.current, cx.address)
            .is_some_and(|proxy| proxy.kind() == ProxyKind::Socks4);
        let filter = cx.settings.target_filter.as_deref();
        let mut denied = Vec::new();
        let targets = &mut self.head.rare_mut().targets;
        cx.settings.order.visit(ips, |i, ip| {
            let ip = Ip { scope_id: 0, ..ip.unmapped() };
            if filter.is_some_and(|filter| filter.check(ip) == Verdict::Deny) {
                denied.push((i, Ip::NONE, ip));
            } else if !v4_only || ip.family == crate::net::ip::V4 {
                targets.push(ip);
            }
        });
        self.head.rare_mut().target_services.extend_from_slice(services);
        let from = self.entries().len();
        self.add_entries(cx, std::iter::empty(), 0, None, &denied);
        if !self.head.rare().targets.is_empty() {
            self.emit_added(cx, from);
        } else {
            self.emit_added(cx, from);
            let error = match denied.is_empty() {
                false => filtered(name),
                true => Error::new(Status::E_UNKNOWN_HOST, "no IPv4 address, and SOCKS4 carries no other")
                    .subject(name),
            };
            self.fault(cx, error);
        }
    }
}
