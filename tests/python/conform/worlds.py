"""What the cases about chains stand on: a case's engine, providers, consumer and call."""
import byway
from byway import Dialect
from case import shown


class World:
    """One case's world. Numbers are rows + 1; monotonic time, `now`, stands still until it is moved. Draws are `random`'s,
    or follow a seed; the time of day is `wall`'s or the system's."""

    def __init__(self, dialect, consumer, rows, extra=None, unless="", random=None, wall=None):
        self.now = 3600000000000
        self.rows = rows or []
        self.engine = byway.Engine(seed=7, dialect=dialect, monotonic=lambda: self.now, random=random, wall=wall)
        self.chain = byway.Chain(self.engine, consumer)
        urls = [row if isinstance(row, str) else row["url"] for row in self.rows]
        if extra:
            urls = [url if unless in url else f"{url}{'&' if '?' in url else '?'}{extra}" for url in urls]
        self.list = byway.Invokers(self.engine, urls, range(1, len(urls) + 1))
        self.chain.set_invokers(self.list)
        self.invocation = byway.Invocation()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.close()

    def call(self, invocation, types=None):
        """Sets the call; says whether the case names a method."""
        invocation = invocation or {}
        method, arguments = invocation.get("method"), invocation.get("arguments") or []
        texts = [value if value is None or isinstance(value, str) else shown(value) for value in arguments]
        # A first argument that is no text names no method of a generic call.
        if types is None:
            types = ["java.lang.Object"] * len(texts) if arguments and not isinstance(arguments[0], str) else []
        attachments = {key: value for key, value in (invocation.get("attachments") or {}).items() if isinstance(value, str)}
        named = isinstance(method, str)
        self.invocation.reset(method if named else "", types=types, arguments=texts, attachments=attachments)
        return named

    def routed(self):
        """Rows that may serve the call."""
        return [tag - 1 for tag in self.chain.tags(self.invocation)]

    def set_rule(self, key, text):
        """The error that refuses a rule, None when it is taken."""
        try:
            self.engine.set_rule(key, text)
        except byway.BywayError as error:
            return error
        return None

    def remove_rule(self, key):
        try:
            self.engine.remove_rule(key)
        except byway.BywayError as error:
            return error
        return None


def ids_of(invokers, rows):
    return [invokers[row].get("id") for row in rows]


def dialect_named(name):
    """The dialect of an implementation's name, None when byway has none."""
    if name.startswith("dubbo-3"):
        return Dialect.DUBBO_3
    return {"byway": Dialect.BYWAY, "dubbo-2.7": Dialect.DUBBO_2_7, "dubbo-go": Dialect.DUBBO_GO}.get(name)


def dialect_of(case):
    """The dialect a case of dubbo_chain.jsonl comes from."""
    source = case.get("source") or ""
    if source.startswith("dubbo-go"):
        return Dialect.DUBBO_GO
    return Dialect.DUBBO_2_7 if "2.7" in source else Dialect.DUBBO_3


def sane_of(case):
    """The answer the default dialect gives where a case says that upstream is wrong; None when it does not say."""
    for name in ("expect_byway", "sane_expect", "fixed_expect"):
        if case.get(name) is not None:
            return None if isinstance(case[name], str) else case[name]
    return None
