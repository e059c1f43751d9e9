"""Which provider serves a call? A provider list, rules that change while calls are routed, picks and explanations.

    PYTHONPATH=bindings/python/src BYWAY_LIBRARY=target/release/libbyway.so python3 examples/router.py
"""
import byway

RULE = """\
scope: service
force: true
conditions:
  - method=hello => region=north
  - method=report => region=south & tier!=small
"""


def main():
    engine = byway.Engine(seed=1)
    chain = byway.Chain(engine, "consumer://10.20.1.9/HelloService?interface=HelloService&application=shop")

    # The numbers are yours: here indices of a list of connections, say.
    urls = [
        f"tri://10.0.0.{i}:20880/HelloService?region={region}&tier={tier}"
        for i, (region, tier) in enumerate([("north", "big"), ("north", "small"), ("south", "big"), ("south", "small")], 1)
    ]
    chain.set_invokers(byway.Invokers(engine, urls, range(1, 5), keep_urls=True))

    hello, report = byway.Invocation("hello"), byway.Invocation("report")
    print("without a rule:", chain.tags(hello), chain.tags(report))

    key = byway.rule_key("HelloService")
    for change in chain.diff(key, RULE, [hello, report]):
        print("the rule would leave", change["after"], "of", change["before"])
    engine.set_rule(key, RULE)
    print("with the rule:", chain.route_many([hello, report]))

    picked = [chain.pick(hello, balance=byway.Balance.ROUND_ROBIN) for _ in range(4)]
    print("four picks:", [one.tag for one in picked])
    for one in picked:
        chain.pick_end(one, ok=True)

    try:
        engine.set_rule(key, "conditions: [ 'method=hello => region=' ")
    except byway.RuleError as error:
        print(f"a broken text: line {error.line}, column {error.column}; still in force:", chain.tags(hello))

    def mine(request):
        """A router of one's own: calls of testers stay on one provider."""
        return [1] if request.attachment("user") == "tester" else None

    chain.add_router(byway.Router(engine, "testers", mine, priority=500))
    print("a tester's call:", chain.tags(byway.Invocation("hello", attachments={"user": "tester"})))

    print("why not the others:")
    for line in chain.explain(report).splitlines():
        print("   ", line)
    engine.close()


if __name__ == "__main__":
    main()
