//! OkHttp's way with one proxy of the list, under the compat profiles.

use super::*;

impl Selector {
    /// Upstream's `nextRoutes`. An error ends the step; the next one goes on with the following proxy.
    #[cold]
    pub(super) fn begin_proxy_okhttp(&mut self, cx: &Context<'_>) -> Option<Step> {
        let null = self.head.from == From::List
            && self.list().get(usize::from(self.head.current)) == Some(&Listed::Null);
        if null {
            return Some(Step::Failed(Error::new(Status::E_NULL, "a null proxy in the list")));
        }
        if let Some(rare) = &mut self.head.rare {
            rare.odd_name.clear();
        }
        if let Some(rare) = &mut self.head.rare {
            rare.targets.clear();
        }
        let address = cx.address;
        let Some(proxy) = self.proxy_at(self.head.current, address).cloned() else {
            return self.literal_or_ask_okhttp(
                cx,
                Whose::Target,
                address.host().literal(),
                address.host().text(),
            );
        };
        if proxy.kind().is_socks() {
            let hop = (Ip::NONE, address.port());
            self.add_entries(cx, [(0, hop.0, Ip::NONE)].into_iter(), hop.1, None, &[]);
            return None;
        }
        let text = proxy.resolved().map_or_else(|| proxy.host().text().to_owned(), compat::java_ip_text);
        if proxy.usable_port().is_none() {
            let message = format!("No route to {text}:{}; port is out of range", proxy.port());
            return Some(Step::Failed(Error::new(Status::E_INVALID_PORT, message).subject(text)));
        }
        // A scoped literal fails the loose test and is handed to the resolver.
        let literal = match proxy.resolved() {
            Some(ip) if ip.scope_id == 0 => Literal::Ip(ip),
            Some(_) => Literal::Name,
            None => proxy.host().literal(),
        };
        if proxy.resolved().is_some() {
            self.head.rare_mut().odd_name = format!("{text}\0");
        }
        self.literal_or_ask_okhttp(cx, Whose::Proxy, literal, &text)
    }

    pub(super) fn literal_or_ask_okhttp(
        &mut self,
        cx: &Context<'_>,
        whose: Whose,
        literal: Literal,
        text: &str,
    ) -> Option<Step> {
        match literal {
            Literal::Ip(ip) if cx.settings.compat == Compat::OkHttp5 => {
                match whose {
                    Whose::Target => self.add_direct(cx, &[ip], None),
                    Whose::Proxy => self.add_through_proxy(cx, &[ip], None),
                }
                return None;
            }
            Literal::Unparsable if cx.settings.compat == Compat::OkHttp5 => {
                let why = if text.contains(':') {
                    "invalid IPv6 address literal"
                } else {
                    "Name or service not known"
                };
                return Some(Step::Failed(
                    Error::new(Status::E_UNKNOWN_HOST, format!("{text}: {why}")).subject(text),
                ));
            }
            _ => {}
        }
        let step = self.ask(cx, whose);
        if cx.settings.compat == Compat::OkHttp5 && compat::canonical_host(text).is_none() {
            self.head.state = State::Idle;
            let error = Error::new(Status::E_ARGUMENT, format!("unexpected hostname: {text}"));
            return Some(Step::Failed(error.subject(text)));
        }
        Some(step)
    }
}
