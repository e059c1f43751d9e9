(function (native) {
  'use strict';
  const put = (object, name, value) =>
    Object.defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });
  const isNumber = value => typeof value === 'number';
  const same = (a, b) => a === b || (a !== null && typeof a === 'object' && typeof a.equals === 'function' && a.equals(b));
  const absent = () => { throw new TypeError('not available to a routing script'); };

  // ---- java.util, as far as published rules use it

  class ArrayList extends Array {
    constructor(from) {
      super();
      if (from !== undefined && from !== null && !isNumber(from)) for (const item of from) this[this.length] = item;
    }
    static get [Symbol.species]() { return Array; }
    size() { return this.length; }
    isEmpty() { return this.length === 0; }
    get(index) { if (!(index >= 0 && index < this.length)) throw new RangeError('index ' + index); return this[index]; }
    set(index, value) { const old = this.get(index); this[index] = value; return old; }
    add(a, b) { if (arguments.length > 1) { this.splice(a, 0, b); return; } this[this.length] = a; return true; }
    addAll(items) { const many = [...items]; for (const item of many) this[this.length] = item; return many.length > 0; }
    contains(value) { return this.indexOf(value) >= 0; }
    indexOf(value) { for (let i = 0; i < this.length; i++) if (same(this[i], value)) return i; return -1; }
    remove(what) {
      const index = isNumber(what) ? what : this.indexOf(what);
      if (isNumber(what)) { const old = this.get(index); this.splice(index, 1); return old; }
      if (index >= 0) this.splice(index, 1);
      return index >= 0;
    }
    removeAll(items) { return this.removeIf(item => has(items, item)); }
    retainAll(items) { return this.removeIf(item => !has(items, item)); }
    removeIf(test) {
      let kept = 0;
      const before = this.length;
      for (let i = 0; i < before; i++) { const item = this[i]; if (!call(test, item)) this[kept++] = item; }
      this.length = kept;
      return kept !== before;
    }
    clear() { this.length = 0; }
    toArray() { return [...this]; }
    subList(from, to) { return new ArrayList(this.slice(from, to)); }
    iterator() { return iterate(this); }
    listIterator() { return iterate(this); }
    stream() { return absent(); }
    toString() { return '[' + this.join(', ') + ']'; }
  }
  const call = (test, item) => typeof test === 'function' ? test(item) : test.test(item);
  const has = (items, value) => { for (const item of items) if (same(item, value)) return true; return false; };
  const iterate = list => {
    let at = 0;
    return { hasNext: () => at < list.length, next: () => list[at++], remove: () => { list.splice(--at, 1); } };
  };

  class HashMap {
    #map = new Map();
    constructor(from) { if (from instanceof HashMap) this.putAll(from); }
    get(key) { const value = this.#map.get(key); return value === undefined ? null : value; }
    getOrDefault(key, other) { return this.#map.has(key) ? this.#map.get(key) : other; }
    put(key, value) { const old = this.get(key); this.#map.set(key, value); return old; }
    putAll(other) { for (const key of other.keySet()) this.put(key, other.get(key)); }
    containsKey(key) { return this.#map.has(key); }
    containsValue(value) { return has(this.#map.values(), value); }
    remove(key) { const old = this.get(key); this.#map.delete(key); return old; }
    size() { return this.#map.size; }
    isEmpty() { return this.#map.size === 0; }
    clear() { this.#map.clear(); }
    keySet() { return new ArrayList(this.#map.keys()); }
    values() { return new ArrayList(this.#map.values()); }
    entrySet() {
      return new ArrayList([...this.#map].map(([key, value]) => ({ key, value, getKey: () => key, getValue: () => value })));
    }
    toString() { return '{' + [...this.#map].map(([key, value]) => key + '=' + value).join(', ') + '}'; }
  }
  class HashSet extends ArrayList {
    constructor(from) { super(); if (from && !isNumber(from)) for (const item of from) this.add(item); }
    add(item) { if (this.contains(item)) return false; this[this.length] = item; return true; }
    addAll(items) { let changed = false; for (const item of [...items]) changed = this.add(item) || changed; return changed; }
  }
  const Collections = {
    reverse: list => { list.reverse(); }, shuffle: list => {
      for (let i = list.length - 1; i > 0; i--) { const j = Math.floor(Math.random() * (i + 1)); [list[i], list[j]] = [list[j], list[i]]; }
    },
    sort: (list, order) => { list.sort(order); },
    emptyList: () => new ArrayList(), singletonList: item => new ArrayList([item]), singleton: item => new HashSet([item]),
    unmodifiableList: list => list, addAll: (list, ...items) => list.addAll(items),
    max: list => list.reduce((a, b) => a > b ? a : b), min: list => list.reduce((a, b) => a < b ? a : b),
  };
  const Arrays = { asList: (...items) => new ArrayList(items.length === 1 && Array.isArray(items[0]) ? items[0] : items) };
  const util = { ArrayList, LinkedList: ArrayList, Vector: ArrayList, List: ArrayList, HashMap, LinkedHashMap: HashMap,
    TreeMap: HashMap, Map: HashMap, HashSet, LinkedHashSet: HashSet, TreeSet: HashSet, Set: HashSet, Collections, Arrays };
  const Integer = { parseInt: text => parseInt(text, 10), valueOf: text => parseInt(text, 10), MAX_VALUE: 2147483647 };
  const lang = { String, Math, Boolean, Integer, Long: Integer, Double: { parseDouble: parseFloat, valueOf: parseFloat },
    Object, StringBuilder: class { #s = ''; append(t) { this.#s += t; return this; } toString() { return this.#s; } } };
  const closed = (members, name) => Object.freeze(Object.assign(Object.create(null), members, {
    toString: () => name, getClass: absent }));
  const java = closed({ util: closed(util, 'java.util'), lang: closed(lang, 'java.lang') }, 'java');
  const Java = {
    type: name => {
      const parts = String(name).split('.');
      let found = { java };
      for (const part of parts) found = found === undefined || found === null ? undefined : found[part];
      if (found === undefined) throw new TypeError('class ' + name + ' is not available to a routing script');
      return found;
    },
    from: items => [...items], to: items => new ArrayList(items),
  };
  put(globalThis, 'java', java);
  put(globalThis, 'Java', Java);
  put(globalThis, 'Packages', closed({ java }, 'Packages'));
  put(globalThis, 'importPackage', members => { for (const name of Object.keys(members)) put(globalThis, name, members[name]); });
  put(globalThis, 'importClass', () => {});
  put(globalThis, 'print', text => { native.log(String(text)); });
  put(globalThis, 'println', globalThis.print);
  put(globalThis, 'console', { log: globalThis.print, info: globalThis.print, warn: globalThis.print, error: globalThis.print });

  const strings = {
    equals(other) { return String(this) === other; },
    equalsIgnoreCase(other) { return String(this).toLowerCase() === String(other).toLowerCase(); },
    isEmpty() { return this.length === 0; },
    contains(part) { return String(this).includes(part); },
    matches(pattern) { return new RegExp('^(?:' + pattern + ')$').test(String(this)); },
    compareTo(other) { const own = String(this); return own < other ? -1 : own > other ? 1 : 0; },
    getBytes: absent, getClass: absent,
  };
  for (const name of Object.keys(strings)) put(String.prototype, name, strings[name]);

  // Every getX() and isX() is also the property x, as JSR-223 engines offer it.
  const beans = type => {
    const prototype = type.prototype;
    for (const name of Object.getOwnPropertyNames(prototype)) {
      const bean = /^(?:get|is)([A-Z])(\w*)$/.exec(name);
      if (bean === null || prototype[name].length > 0) continue;
      const property = bean[1].toLowerCase() + bean[2];
      if (property in prototype) continue;
      Object.defineProperty(prototype, property, { get() { return this[name](); }, configurable: true });
    }
  };

  // ---- what a rule sees of providers, the call and the consumer; row -1 is the consumer's URL

  class Url {
    #row; #known = new Map();
    constructor(row) { this.#row = row; }
    #part(name) {
      let value = this.#known.get(name);
      if (value === undefined) { value = native.part(this.#row, name); this.#known.set(name, value); }
      return value;
    }
    getProtocol() { return this.#part('protocol'); }
    getUsername() { return this.#part('username'); }
    getHost() { return this.#part('host'); }
    getIp() { return this.#part('host'); }
    getPort() { const port = this.#part('port'); return port === null ? 0 : +port; }
    getAddress() { return this.#part('address'); }
    getAuthority() { return this.#part('address'); }
    getPath() { return this.#part('path'); }
    getAbsolutePath() { return '/' + (this.#part('path') || ''); }
    getParameter(name, other) {
      const value = native.parameter(this.#row, String(name));
      if (value !== null && value !== '') return value;
      return other === undefined ? value : other;
    }
    getMethodParameter(method, name, other) {
      const value = native.parameter(this.#row, method + '.' + name);
      return value !== null && value !== '' ? value : this.getParameter(name, other);
    }
    hasParameter(name) { const value = native.parameter(this.#row, String(name)); return value !== null && value !== ''; }
    getParameters() { const map = new HashMap(); for (const [key, value] of native.parameters(this.#row)) map.put(key, value); return map; }
    getServiceInterface() { return this.getParameter('interface', this.getPath()); }
    getServiceKey() {
      const group = this.getGroup(), version = this.getVersion();
      return (group ? group + '/' : '') + this.getServiceInterface() + (version && version !== '0.0.0' ? ':' + version : '');
    }
    getGroup() { return this.getParameter('group'); }
    getVersion() { return this.getParameter('version'); }
    getSide() { return this.getParameter('side'); }
    getApplication() { return this.getParameter('application'); }
    getRemoteApplication() { return this.getParameter('remote.application', this.getParameter('application')); }
    toString() { return this.#part('text'); }
    toFullString() { return this.#part('text'); }
    equals(other) { return other instanceof Url && other.toString() === this.toString(); }
  }
  beans(Url);

  // dubbo-go's view: plain fields of a copy, which a script may change for itself.
  const goUrl = url => ({
    Protocol: url.getProtocol(), Location: url.getAddress(), Ip: url.getHost(), Port: String(url.getPort() || ''),
    Path: '/' + (url.getPath() || ''), Username: url.getUsername() || '', Password: '',
    GetParam: (name, other) => url.getParameter(name, other === undefined ? '' : other),
    GetParamBool: (name, other) => { const v = url.getParameter(name, ''); return v === '' ? !!other : v === 'true'; },
    GetParamInt: (name, other) => { const v = parseInt(url.getParameter(name, ''), 10); return isNaN(v) ? (other || 0) : v; },
    GetNonDefaultParam: name => { const v = url.getParameter(name, ''); return [v, v !== '']; },
    GetMethodParam: (method, name, other) => url.getMethodParameter(method, name, other === undefined ? '' : other),
    GetRawParam: name => url.getParameter(name, ''),
    Service: () => url.getServiceInterface() || '', ServiceKey: () => url.getServiceKey(), Key: () => url.toString(),
    Group: () => url.getGroup() || '', Version: () => url.getVersion() || '', Address: () => url.getAddress(),
    String: () => url.toString(), toString: () => url.toString(),
  });

  class Invoker {
    #row; #url = null; #copy = null;
    constructor(row) { this.#row = row; }
    static rowOf(value) { return value !== null && typeof value === 'object' && #row in value ? value.#row : -1; }
    getUrl() { return this.#url === null ? (this.#url = new Url(this.#row)) : this.#url; }
    getInterface() { return this.getUrl().getServiceInterface(); }
    isAvailable() { return native.available(this.#row); }
    GetURL() { return this.#copy === null ? (this.#copy = goUrl(this.getUrl())) : this.#copy; }
    IsAvailable() { return this.isAvailable(); }
    invoke() { return absent(); }
    destroy() { return absent(); }
    Invoke() { return absent(); }
    Destroy() { return absent(); }
    equals(other) { return this === other; }
    toString() { return this.getUrl().toString(); }
    // A call's copy is its own.
    static forget(invoker) { invoker.#copy = null; }
  }
  beans(Invoker);

  class Type {
    #name;
    constructor(name) { this.#name = name; }
    getName() { return this.#name; }
    getSimpleName() { return this.#name.slice(Math.max(this.#name.lastIndexOf('.'), this.#name.lastIndexOf('$')) + 1); }
    toString() { return this.#name; }
  }
  beans(Type);

  const attachments = () => { const map = new HashMap(); for (const [key, value] of native.attachments()) map.put(key, value); return map; };
  const attachment = (name, other) => {
    const value = native.attachment(String(name));
    if (other !== undefined && (value === null || value === '')) return other;
    return value;
  };
  class Invocation {
    getMethodName() { return native.method(); }
    getTargetServiceUniqueName() { return consumer.getServiceKey(); }
    getServiceName() { return consumer.getServiceInterface(); }
    getProtocolServiceKey() { return consumer.getServiceKey(); }
    getArguments() { return native.arguments(); }
    getParameterTypes() { return native.types().map(name => new Type(name)); }
    getCompatibleParamSignatures() { return native.types(); }
    getAttachment(name, other) { return attachment(name, other); }
    getAttachments() { return attachments(); }
    getObjectAttachment(name, other) { return attachment(name, other); }
    getObjectAttachments() { return attachments(); }
    getInvoker() { return null; }
    MethodName() { return native.method(); }
    ActualMethodName() { return native.method(); }
    Arguments() { return native.arguments(); }
    ParameterValues() { return native.arguments(); }
    ParameterTypeNames() { return native.types(); }
    Attachments() { return Object.fromEntries(native.attachments()); }
    GetAttachment(name) { const value = native.attachment(String(name)); return [value === null ? '' : value, value !== null]; }
    GetAttachmentWithDefaultValue(name, other) { return attachment(name, other); }
    GetAttachmentAsContext() { return context; }
    toString() { return 'Invocation [' + native.method() + ']'; }
  }
  beans(Invocation);

  const consumer = new Url(-1);
  const scratch = new HashMap();
  class Context {
    getUrl() { return consumer; }
    getConsumerUrl() { return consumer; }
    getMethodName() { return native.method(); }
    getArguments() { return native.arguments(); }
    getAttachment(name) { const own = scratch.get(name); return own === null ? attachment(name) : own; }
    getObjectAttachment(name) { return this.getAttachment(name); }
    getAttachments() { const map = attachments(); map.putAll(scratch); return map; }
    getObjectAttachments() { return this.getAttachments(); }
    setAttachment(name, value) { scratch.put(name, value); return this; }
    getLocalHost() { return consumer.getHost(); }
    getLocalAddressString() { return consumer.getAddress(); }
    getRemoteHost() { return null; }
    getRemoteApplicationName() { return null; }
    isConsumerSide() { return true; }
    isProviderSide() { return false; }
  }
  beans(Context);

  const invocation = new Invocation(), context = new Context();
  let generation = -1, cache = [];
  const list = (now, rows) => {
    if (now !== generation) { generation = now; cache = []; }
    const invokers = new ArrayList();
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      const invoker = cache[row] || (cache[row] = new Invoker(row));
      Invoker.forget(invoker);
      invokers[i] = invoker;
    }
    return invokers;
  };
  // Gives what the answer was if it was none.
  const keep = answer => {
    if (answer === null) return 'null';
    if (typeof answer !== 'object') return typeof answer;
    if (Invoker.rowOf(answer) >= 0) return 'an invoker instead of a list';
    if (typeof answer[Symbol.iterator] !== 'function') return 'an object that is no list';
    let items = 0, known = 0;
    for (const item of answer) {
      items++;
      const row = Invoker.rowOf(item);
      if (row >= 0) { known++; native.keep(row); }
    }
    // Foreign items beside given invokers are ignored; nothing but foreign items is a mistake, not "nobody".
    return items > 0 && known === 0 ? 'a list without any of them' : '';
  };
  return {
    run: (script, now, rows) => { scratch.clear(); return keep(script(list(now, rows), invocation, context)); },
    give: (now, rows) => {
      scratch.clear();
      put(globalThis, 'invokers', list(now, rows));
      put(globalThis, 'invocation', invocation);
      put(globalThis, 'context', context);
    },
    keep,
  };
})
