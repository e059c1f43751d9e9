(function (now, offset) {
  'use strict';
  // Captured first: a script may replace every global and every prototype method, never these.
  const call = Function.prototype.call;
  const apply = call.bind(Function.prototype.apply);
  const uncurry = f => call.bind(f);
  const define = Object.defineProperty;
  const ownProperty = Object.getOwnPropertyDescriptor;
  const ownNames = Object.getOwnPropertyNames;
  const prototypeOf = Object.getPrototypeOf;
  const isArray = Array.isArray;
  const has = uncurry(Object.prototype.hasOwnProperty);
  const objectToString = uncurry(Object.prototype.toString);
  const BareObject = Object, BareString = String, BareRange = RangeError, BareType = TypeError;
  const stringLength = s => s.length;

  // Longer arrays than this are no data of a proxy or routing script.
  const MOST = 1 << 20;
  // Native text searches cost the product of both lengths.
  const MOST_SEARCH = 1 << 27;

  const put = (object, name, value) =>
    define(object, name, { value, writable: true, enumerable: false, configurable: true });
  const tooLong = () => { throw new BareRange('array or text is too long for a sandboxed script'); };

  // ---- no way from text to code

  const noCode = function Function() { throw new BareType('code from text is not available'); };
  define(noCode, 'prototype', { value: Function.prototype, writable: false });
  const kinds = [function () {}, function* () {}, async function () {}, async function* () {}];
  for (let i = 0; i < kinds.length; i++) {
    define(prototypeOf(kinds[i]), 'constructor',
      { value: noCode, writable: false, enumerable: false, configurable: false });
  }

  // ---- arrays: every native that walks a length checks it first

  const length = value => {
    if (value === null || value === undefined) return 0;
    if (typeof value === 'string') return stringLength(value);
    if (typeof value !== 'object' && typeof value !== 'function') return 0;
    const own = ownProperty(value, 'length');
    if (own === undefined) {
      if ('length' in value) throw new BareType('an inherited length is not accepted by a sandboxed script');
      return 0;
    }
    if (!has(own, 'value') || typeof own.value !== 'number') {
      throw new BareType('a computed length is not accepted by a sandboxed script');
    }
    return own.value;
  };
  const check = value => { if (length(value) > MOST) tooLong(); };
  const constantTime = { constructor: 1, push: 1, pop: 1, at: 1, keys: 1, values: 1, entries: 1 };
  const arrayNames = ownNames(Array.prototype);
  for (let i = 0; i < arrayNames.length; i++) {
    const name = arrayNames[i];
    const native = Array.prototype[name];
    if (typeof native !== 'function' || has(constantTime, name)) continue;
    put(Array.prototype, name, ({
      [name](...args) { check(this); return apply(native, this, args); }
    })[name]);
  }
  const join = (array, separator, text) => {
    if (array === null || array === undefined) throw new BareType('not an object');
    const object = BareObject(array);
    const count = length(object);
    if (count > MOST) tooLong();
    if (joining.length > 100) throw new BareRange('arrays are nested too deep');
    for (let i = 0; i < joining.length; i++) if (joining[i] === object) return '';
    joining[joining.length] = object;
    try {
      let out = '';
      for (let i = 0; i < count; i++) {
        if (i > 0) out += separator;
        const item = object[i];
        if (item !== null && item !== undefined) out += text(item);
      }
      return out;
    } finally {
      joining.length--;
    }
  };
  const joining = [];
  put(Array.prototype, 'join', ({
    join(separator) { return join(this, separator === undefined ? ',' : BareString(separator), BareString); }
  }).join);
  put(Array.prototype, 'toString', ({
    toString() {
      if (this === null || this === undefined) throw new BareType('not an object');
      const own = this.join;
      return typeof own === 'function' ? apply(own, this, []) : objectToString(this);
    }
  }).toString);
  put(Array.prototype, 'toLocaleString', ({
    toLocaleString() { return join(this, ',', item => BareString(item.toLocaleString())); }
  }).toLocaleString);
  put(Array.prototype, 'concat', ({
    concat(...items) {
      const out = [];
      let count = 0;
      const add = item => {
        const spread = item !== null && (typeof item === 'object' || typeof item === 'function')
          ? item[Symbol.isConcatSpreadable] : false;
        if (spread === undefined ? isArray(item) : spread) {
          const many = length(item);
          if (count + many > MOST) tooLong();
          for (let i = 0; i < many; i++) { if (i in item) out[count + i] = item[i]; }
          count += many;
        } else {
          out[count++] = item;
        }
      };
      add(BareObject(this));
      for (let i = 0; i < items.length; i++) add(items[i]);
      out.length = count;
      return out;
    }
  }).concat);
  put(Array.prototype, 'flat', ({
    flat(depth) {
      const out = [];
      const walk = (array, left) => {
        const count = length(array);
        if (count > MOST) tooLong();
        for (let i = 0; i < count; i++) {
          if (!(i in array)) continue;
          const item = array[i];
          if (left > 0 && isArray(item)) walk(item, left - 1); else out[out.length] = item;
        }
      };
      walk(this, depth === undefined ? 1 : +depth);
      return out;
    }
  }).flat);

  // ---- collections: filled by a loop that polls; set algebra walks foreign iterators natively

  const NativeSet = Set;
  const add = NativeSet.prototype.add;
  const construct = Reflect.construct;
  const SafeSet = function Set(items) {
    if (new.target === undefined) throw new BareType('Set needs new');
    const set = construct(NativeSet, [], new.target);
    if (items !== null && items !== undefined) for (const item of items) apply(add, set, [item]);
    return set;
  };
  define(SafeSet, 'length', { value: 0 });
  define(SafeSet, 'prototype', { value: NativeSet.prototype, writable: false });
  put(NativeSet.prototype, 'constructor', SafeSet);
  const algebra = ['union', 'intersection', 'difference', 'symmetricDifference', 'isSubsetOf', 'isSupersetOf',
    'isDisjointFrom'];
  for (let i = 0; i < algebra.length; i++) delete NativeSet.prototype[algebra[i]];

  // ---- iterator helpers walk natively
  const iteratorPrototype = prototypeOf(prototypeOf([][Symbol.iterator]()));
  const iteratorNames = ownNames(iteratorPrototype);
  for (let i = 0; i < iteratorNames.length; i++) delete iteratorPrototype[iteratorNames[i]];

  // ---- text: searches are bounded by the product of both lengths, patterns by the length of the text

  const text = value => typeof value === 'string' ? value : BareString(value);
  const isObject = value => value !== null && (typeof value === 'object' || typeof value === 'function');
  const searches = ['indexOf', 'lastIndexOf', 'includes', 'split', 'replace', 'replaceAll', 'match', 'matchAll',
    'search'];
  for (let i = 0; i < searches.length; i++) {
    const name = searches[i];
    const native = String.prototype[name];
    if (typeof native !== 'function') continue;
    put(String.prototype, name, ({
      [name](...args) {
        if (this === null || this === undefined) throw new BareType('not a text');
        const self = text(this);
        if (args.length > 0 && !isObject(args[0])) {
          args[0] = args[0] === undefined ? undefined : text(args[0]);
          const needle = args[0] === undefined ? 1 : stringLength(args[0]);
          if (stringLength(self) * (needle + 1) > MOST_SEARCH) tooLong();
        } else if (stringLength(self) > MOST) {
          tooLong();
        }
        return apply(native, self, args);
      }
    })[name]);
  }
  const patterns = [Symbol.replace, Symbol.split, Symbol.match, Symbol.search, Symbol.matchAll];
  for (let i = 0; i < patterns.length; i++) {
    const name = patterns[i];
    const native = RegExp.prototype[name];
    if (typeof native !== 'function') continue;
    put(RegExp.prototype, name, ({
      [name](...args) {
        args[0] = text(args[0]);
        if (stringLength(args[0]) > MOST) tooLong();
        return apply(native, this, args);
      }
    })[name]);
  }
  delete String.raw;
  const stringify = JSON.stringify;
  put(JSON, 'stringify', ({
    stringify(...args) { if (isArray(args[1])) check(args[1]); return apply(stringify, JSON, args); }
  }).stringify);
  if (Math.sumPrecise) delete Math.sumPrecise;
  const from = Array.from;
  put(Array, 'from', ({ from(...args) { check(isArray(args[0]) ? args[0] : null); return apply(from, this, args); } }).from);

  // ---- time

  const NativeDate = Date;
  const minutes = 60000;
  const getTime = uncurry(NativeDate.prototype.getTime);
  // What stands for the fields of a local time, and for a text: in the process's zone, or in the one that was given.
  let local = fields => construct(NativeDate, fields), parse = NativeDate.parse;
  let shown = uncurry(NativeDate.prototype.toString);
  if (offset !== undefined) {
    const behind = uncurry(NativeDate.prototype.getTimezoneOffset), setTime = uncurry(NativeDate.prototype.setTime);
    const indexOf = uncurry(String.prototype.indexOf), slice = uncurry(String.prototype.slice);
    const at = time => new NativeDate(time);
    const nativeParse = NativeDate.parse, utc = NativeDate.UTC, absolute = Math.abs, floor = Math.floor;
    // A date whose UTC fields are the local ones of this date; and one whose fields in the process's zone are.
    const shifted = date => at(getTime(date) + offset * minutes);
    const moved = date => at(getTime(date) + (offset + behind(date)) * minutes);
    const parts = ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds'];
    for (let i = 0; i < parts.length; i++) {
      const read = uncurry(NativeDate.prototype['getUTC' + parts[i]]);
      const name = 'get' + parts[i];
      put(NativeDate.prototype, name, ({ [name]() { return read(shifted(this)); } })[name]);
      const native = NativeDate.prototype['setUTC' + parts[i]];
      if (native === undefined) continue;
      const set = 'set' + parts[i];
      put(NativeDate.prototype, set, ({
        [set](...args) {
          const changed = shifted(this);
          apply(native, changed, args);
          return setTime(this, getTime(changed) - offset * minutes);
        }
      })[set]);
    }
    const fullYear = NativeDate.prototype.getFullYear, setFullYear = NativeDate.prototype.setFullYear;
    put(NativeDate.prototype, 'getYear', ({ getYear() { return apply(fullYear, this, []) - 1900; } }).getYear);
    put(NativeDate.prototype, 'setYear', ({
      setYear(year) { return apply(setFullYear, this, [+year >= 0 && +year <= 99 ? +year + 1900 : +year]); }
    }).setYear);
    put(NativeDate.prototype, 'getTimezoneOffset', ({
      getTimezoneOffset() { return getTime(this) === getTime(this) ? -offset : NaN; }
    }).getTimezoneOffset);
    const two = value => (value < 10 ? '0' : '') + value;
    const zone = 'GMT' + (offset < 0 ? '-' : '+') + two(floor(absolute(offset) / 60)) + two(absolute(offset) % 60);
    const texts = ['toString', 'toTimeString', 'toDateString', 'toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'];
    for (let i = 0; i < texts.length; i++) {
      const name = texts[i], native = NativeDate.prototype[name];
      put(NativeDate.prototype, name, ({
        [name](...args) {
          const text = apply(native, moved(this), args), end = indexOf(text, 'GMT');
          return end < 0 ? text : slice(text, 0, end) + zone;
        }
      })[name]);
    }
    shown = uncurry(NativeDate.prototype.toString);
    local = fields => at(apply(utc, NativeDate, fields) - offset * minutes);
    // A text without a zone is local, but for a day alone in ISO's form.
    const zoned = /(?:Z|GMT|UTC?|[A-Z][SD]T|[+-]\d{2}:?\d{2}|\))$|^[+-]?\d{4,6}(?:-\d\d){0,2}$/i;
    const iso = /^[+-]?\d{4,6}(?:-\d\d){0,2}T/i;
    const exec = uncurry(RegExp.prototype.exec), trim = uncurry(String.prototype.trim);
    parse = ({
      parse(given) {
        const text = trim(BareString(given));
        if (stringLength(text) > 100 || exec(zoned, text) !== null) return nativeParse(text);
        return nativeParse(text + (exec(iso, text) !== null ? 'Z' : ' GMT')) - offset * minutes;
      }
    }).parse;
  }
  const SafeDate = function Date(...args) {
    if (new.target === undefined) return shown(new NativeDate(now()));
    const count = args.length;
    const made = count === 0 ? [now()]
      : count === 1 ? [typeof args[0] === 'string' ? parse(args[0]) : args[0]]
      : [getTime(local(args))];
    return construct(NativeDate, made, new.target);
  };
  define(SafeDate, 'length', { value: 7 });
  define(SafeDate, 'prototype', { value: NativeDate.prototype, writable: false });
  put(SafeDate, 'parse', parse);
  put(SafeDate, 'UTC', NativeDate.UTC);
  put(SafeDate, 'now', ({ now() { return now(); } }).now);
  put(NativeDate.prototype, 'constructor', SafeDate);

  // ---- globals: a closed list

  const keep = { Object: 1, Error: 1, EvalError: 1, RangeError: 1, ReferenceError: 1, SyntaxError: 1, TypeError: 1,
    URIError: 1, InternalError: 1, Array: 1, parseInt: 1, parseFloat: 1, isNaN: 1, isFinite: 1, decodeURI: 1,
    decodeURIComponent: 1, encodeURI: 1, encodeURIComponent: 1, escape: 1, unescape: 1, Infinity: 1, NaN: 1,
    undefined: 1, Number: 1, Boolean: 1, String: 1, Math: 1, Symbol: 1, globalThis: 1, JSON: 1, RegExp: 1, Map: 1,
    WeakMap: 1, WeakSet: 1, Reflect: 1 };
  const globals = ownNames(globalThis);
  for (let i = 0; i < globals.length; i++) {
    if (!has(keep, globals[i])) delete globalThis[globals[i]];
  }
  put(globalThis, 'Function', noCode);
  put(globalThis, 'Set', SafeSet);
  put(globalThis, 'Date', SafeDate);
})
