(function (native, plain) {
  'use strict';
  const put = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  const isText = value => typeof value === 'string';
  const needText = value => { if (!isText(value)) throw new TypeError('expected a string'); return value; };
  const Regexp = RegExp, Clock = Date;

  put('isPlainHostName', function isPlainHostName(host) { return native.isPlain(needText(host)); });
  put('dnsDomainIs', function dnsDomainIs(host, domain) {
    return host.length >= domain.length && host.substring(host.length - domain.length) == domain;
  });
  put('dnsDomainLevels', function dnsDomainLevels(host) { return host.split('.').length - 1; });
  put('localHostOrDomainIs', function localHostOrDomainIs(host, name) {
    return host == name || name.lastIndexOf(host + '.', 0) == 0;
  });
  put('shExpMatch', function shExpMatch(text, pattern) {
    const quick = isText(text) && isText(pattern) ? native.glob(text, pattern) : undefined;
    if (quick !== undefined) return quick;
    // Everything but the dot and the two wildcards reaches the regular expression, as browsers do.
    const source = String(pattern).replace(/\./g, '\\.').replace(/\*/g, '.*').replace(/\?/g, '.');
    return new Regexp('^' + source + '$').test(text);
  });
  put('convert_addr', function convert_addr(address) {
    const part = String(address).split('.');
    return ((part[0] & 0xff) << 24) | ((part[1] & 0xff) << 16) | ((part[2] & 0xff) << 8) | (part[3] & 0xff);
  });

  put('dnsResolve', function dnsResolve(host) { return isText(host) ? native.resolve4(host) : null; });
  put('isResolvable', function isResolvable(host) { return isText(host) && native.resolve4(host) !== null; });
  put('myIpAddress', function myIpAddress() { return native.my4(); });
  put('isInNet', function isInNet(host, pattern, mask) {
    return isText(host) && isText(pattern) && isText(mask) && native.inNet(host, pattern, mask);
  });
  put('dnsResolveEx', function dnsResolveEx(host) { return isText(host) ? native.resolveEx(host) : null; });
  put('isResolvableEx', function isResolvableEx(host) { return isText(host) && native.resolveEx(host) !== ''; });
  put('myIpAddressEx', function myIpAddressEx() { return native.myEx(); });
  put('isInNetEx', function isInNetEx(address, prefix) {
    return isText(address) && isText(prefix) ? native.inNetEx(address, prefix) : null;
  });
  put('sortIpAddressList', function sortIpAddressList(list) { return isText(list) ? native.sort(list) : null; });
  put('getClientVersion', function getClientVersion() { return '1.0'; });
  put('alert', function alert(message) { native.alert(String(message)); });

  // ---- calendar

  const days = { SUN: 0, MON: 1, TUE: 2, WED: 3, THU: 4, FRI: 5, SAT: 6 };
  const months = { JAN: 0, FEB: 1, MAR: 2, APR: 3, MAY: 4, JUN: 5, JUL: 6, AUG: 7, SEP: 8, OCT: 9, NOV: 10, DEC: 11 };
  const own = Object.prototype.hasOwnProperty;
  const number = (table, name) => own.call(table, name) ? table[name] : -1;
  // The arguments without a trailing 'GMT', and the present in that zone.
  const present = given => {
    const gmt = given.length > 0 && given[given.length - 1] == 'GMT';
    if (gmt) given.length--;
    const date = new Clock();
    return gmt
      ? { y: date.getUTCFullYear(), m: date.getUTCMonth(), d: date.getUTCDate(), w: date.getUTCDay(),
          h: date.getUTCHours(), s: date.getUTCHours() * 3600 + date.getUTCMinutes() * 60 + date.getUTCSeconds() }
      : { y: date.getFullYear(), m: date.getMonth(), d: date.getDate(), w: date.getDay(),
          h: date.getHours(), s: date.getHours() * 3600 + date.getMinutes() * 60 + date.getSeconds() };
  };
  const inside = (from, now, to) => from <= to ? from <= now && now <= to : to >= now || now >= from;

  put('weekdayRange', function weekdayRange(...given) {
    const now = present(given);
    if (given.length < 1) return false;
    const from = number(days, given[0]);
    const to = given.length == 2 ? number(days, given[1]) : from;
    return from != -1 && to != -1 && inside(from, now.w, to);
  });

  // Halves of different kinds, as (1, 'FEB'): nobody can name a meaning, so it is what browsers make of it, step by step.
  const odd = (now, parts, half) => {
    const from = new Clock(Clock.UTC(now.y, 0, 1)), to = new Clock(Clock.UTC(now.y, 11, 31, 23, 59, 59));
    let thisMonth = false;
    parts.forEach((part, i) => {
      const date = i < half ? from : to;
      if ('m' in part) date.setUTCMonth(part.m); else if ('y' in part) date.setUTCFullYear(part.y); else date.setUTCDate(part.d);
      if ('d' in part && i < half && parts.length == 2) thisMonth = true;
    });
    if (thisMonth) { from.setUTCMonth(now.m); to.setUTCMonth(now.m); }
    return inside(+from, Clock.UTC(now.y, now.m, now.d) + now.s * 1000, +to);
  };

  put('dateRange', function dateRange(...given) {
    const now = present(given);
    const count = given.length;
    if (count < 1) return false;
    const kind = value => {
      const parsed = parseInt(value);
      if (isNaN(parsed)) return { m: number(months, value) };
      return parsed < 32 ? { d: parsed } : { y: parsed };
    };
    if (count == 1) {
      const one = kind(given[0]);
      return 'm' in one ? one.m == now.m : 'd' in one ? one.d == now.d : one.y == now.y;
    }
    // Day and month, perhaps a year: one date.
    if (plain && count <= 3) {
      const parts = Object.assign({}, ...given.map(kind));
      if ('d' in parts && 'm' in parts && Object.keys(parts).length == count) {
        return parts.d == now.d && parts.m == now.m && (parts.y === undefined || parts.y == now.y);
      }
    }
    const half = count >> 1;
    if (!plain) {
      const named = part => 'm' in part ? 'm' : 'd' in part ? 'd' : 'y';
      const kinds = (begin, end) => given.slice(begin, end).map(value => named(kind(value))).join();
      if (kinds(0, half) !== kinds(half, count)) return odd(now, given.map(kind), half);
    }
    const from = { y: now.y, m: 0, d: 1 }, to = { y: now.y, m: 11, d: 31 };
    let thisMonth = false;
    for (let i = 0; i < count; i++) {
      const part = kind(given[i]);
      if ('d' in part && count <= 2) thisMonth = true;
      Object.assign(i < half ? from : to, part);
    }
    if (thisMonth) from.m = to.m = now.m;
    const value = date => {
      // A day its month does not have: the last one of the month; browsers roll over into the next month.
      const last = new Clock(Clock.UTC(date.y, date.m + 1, 0)).getUTCDate();
      const day = Math.min(date.d, last);
      return Clock.UTC(date.y, date.m, day);
    };
    return inside(value(from), value(now), value(to));
  });

  put('timeRange', function timeRange(...given) {
    const now = present(given);
    switch (given.length) {
      case 0: return false;
      case 1: return now.h == given[0];
      case 2: return plain ? inside(+given[0], now.h, +given[1]) : given[0] <= now.h && now.h <= given[1];
      case 4: return inside(given[0] * 3600 + given[1] * 60 + now.s % 60, now.s, given[2] * 3600 + given[3] * 60 + 59);
      case 6: return inside(given[0] * 3600 + given[1] * 60 + +given[2], now.s,
                            given[3] * 3600 + given[4] * 60 + +given[5]);
      default: throw new TypeError('timeRange: bad number of arguments');
    }
  });
})
