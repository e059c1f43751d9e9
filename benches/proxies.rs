//! Bars of proxy selection: one line `bar NAME VALUE LIMIT ok|short` each; values are the median of many rounds.
//!
//! `cargo bench --features script --bench proxies` (or `--profile quick` for a look).
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use byway::proxies::environment::{Environment, Table};
use byway::proxies::no_proxy::Dialect;
use byway::proxies::{OwnedTarget, ProxySelector};
use std::hint::black_box;
use std::time::Instant;

/// Median nanoseconds of one call over rounds of `batch` calls.
fn median(rounds: usize, batch: u32, mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..batch {
                call();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(batch)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2]
}

fn bar(name: &str, nanoseconds: f64, limit: f64) {
    let verdict = if nanoseconds <= limit { "ok" } else { "short" };
    println!("bar {name} {:.3}us {:.3}us {verdict}", nanoseconds / 1e3, limit / 1e3);
}

fn main() {
    let mut entries: Vec<String> = (0..60).map(|i| format!("host{i}.corp{i}.example")).collect();
    entries.extend((0..20).map(|i| format!("10.{i}.0.0/16")));
    entries.extend((0..20).map(|i| format!("[2001:db8:{i}::]/48")));
    let list = entries.join(",");
    for dialect in [Dialect::Byway, Dialect::Curl, Dialect::Go, Dialect::Python] {
        let table: Table =
            [("http_proxy", "http://proxy.example:3128"), ("no_proxy", list.as_str())].into_iter().collect();
        let selector = Environment::new(&table, dialect);
        for (what, uri) in [
            ("miss", "http://www.some.where.example.com/"),
            ("hit", "http://www.host59.corp59.example/"),
            ("ip_miss", "http://192.0.2.1/"),
        ] {
            let target = OwnedTarget::parse(uri).unwrap();
            let target = target.borrow();
            let time = median(200, 1000, || {
                black_box(selector.select(black_box(&target)).unwrap());
            });
            bar(&format!("proxies.environment_100_{dialect:?}_{what}").to_lowercase(), time, 1000.0);
        }
    }
    scripts();
}

#[cfg(not(feature = "script"))]
fn scripts() {
    println!("without the feature `script` there is nothing more to measure");
}

#[cfg(feature = "script")]
fn scripts() {
    use byway::proxies::pac::{NoNames, Pac, PacOptions};
    use byway::script::{Pool, PoolLimits};
    use std::sync::Arc;

    let script = "function FindProxyForURL(url, host) {\n\
        if (isPlainHostName(host) || dnsDomainIs(host, '.corp.example')) return 'DIRECT';\n\
        if (shExpMatch(host, '*.internal.example') || isInNet(host, '10.0.0.0', '255.0.0.0')) return 'DIRECT';\n\
        if (url.substring(0, 6) == 'https:') return 'HTTPS secure.example:443; DIRECT';\n\
        return 'PROXY proxy.example:3128; PROXY backup.example:3128; DIRECT';\n}\n";
    let targets: Vec<_> =
        ["http://10.1.2.3/x?y=z", "http://192.0.2.1/", "https://192.0.2.9/q", "http://intranet/"]
            .iter()
            .map(|uri| OwnedTarget::parse(uri).unwrap())
            .collect();
    let make = |pool: &Pool| {
        Pac::new("bench", script.into(), pool.clone(), Arc::new(NoNames), PacOptions::default()).unwrap()
    };
    let pool = Pool::new(PoolLimits::default());
    let pac = make(&pool);
    let mut next = 0;
    let time = median(300, 200, || {
        next += 1;
        black_box(pac.select(&targets[next % targets.len()].borrow()).unwrap());
    });
    bar("proxies.pac_call", time, 12_000.0);

    let mut inside = 0;
    for i in 0..2000 {
        let choice = pac.select(&targets[i % targets.len()].borrow()).unwrap();
        if let byway::proxies::Why::Script(said) = choice.why {
            inside += said.took_ns;
        }
    }
    println!("proxies.pac_call: {:.3}us of it inside the engine", inside as f64 / 2000.0 / 1e3);

    routing(&pool);

    // A thread that runs already, a script it has not seen: context, helpers, compilation, first call.
    let cold = median(300, 1, || {
        black_box(make(&pool).select(&targets[0].borrow()).unwrap());
    });
    bar("proxies.pac_cold_start", cold, 1_000_000.0);
    let first = median(50, 1, || {
        let pool = Pool::new(PoolLimits::default());
        black_box(make(&pool).select(&targets[0].borrow()).unwrap());
    });
    bar("proxies.pac_cold_start_with_thread", first, 1_000_000.0);
}

/// A script rule over 100 invokers, filtering by host as published rules do.
#[cfg(feature = "script")]
fn routing(pool: &byway::script::Pool) {
    use byway::chain::chain::{Chain, ChainOptions};
    use byway::chain::invocation::Invocation;
    use byway::chain::snapshot::Invokers;
    use byway::chain::store::RuleStore;
    use byway::chain::url::Url;
    use byway::rules::dialect::Dialect;
    use byway::rules::routers;
    use byway::rules::script::{Call, Program};
    use byway::runtime::random::RandomSource;
    use byway::script::Limits;
    use std::sync::Arc;

    let script = "(function route(invokers, invocation, context) {\n\
        var result = new java.util.ArrayList(invokers.size());\n\
        for (var i = 0; i < invokers.size(); i++) {\n\
          if (invokers.get(i).getUrl().getHost() != '10.0.0.7') result.add(invokers.get(i));\n\
        }\n  return result;\n})(invokers, invocation, context)";
    let urls: Vec<_> =
        (0..100).map(|i| format!("dubbo://10.0.0.{i}:20880/com.foo.Bar?application=a")).collect();
    let invokers = Invokers::from_urls(urls.iter().map(String::as_str)).unwrap();
    let consumer = Arc::new(Url::parse("consumer://10.1.1.1/com.foo.Bar").unwrap());
    let program = Arc::new(Program::new(script.into(), Limits::default()).unwrap());
    let call = Invocation::new(b"hello");
    let time = median(200, 50, || {
        let call = Call::new(invokers.clone(), (0..100).collect(), &call, consumer.clone());
        assert_eq!(program.route(pool, call).unwrap().len(), 99);
    });
    bar("rules.script_100_invokers", time, 150_000.0);

    // The same as a rule of a chain; one that says it is pure is asked once.
    for (name, pure, limit) in [("chain", false, 150_000.0), ("pure", true, 10_000.0)] {
        let store = RuleStore::new(routers::languages(), 0);
        let consumer = Url::parse("consumer://10.1.1.1/com.foo.Bar").unwrap();
        let slots = byway::rules::script::slot(Dialect::Byway, pool.clone(), None).into_iter().collect();
        let options = ChainOptions::new(consumer, slots);
        let chain = Chain::new(options, store.clone(), Arc::new(RandomSource::seeded(1)));
        chain.set_invokers(invokers.clone());
        let rule = format!("pure: {pure}\nscript: |\n  {}\n", script.replace('\n', "\n  "));
        store.put("a.script-router", &rule).unwrap();
        let mut session = chain.session();
        let time = median(200, 50, || {
            assert_eq!(session.route(&call).unwrap().len(), 99);
        });
        bar(&format!("rules.script_{name}_100_invokers"), time, limit);
    }
}
