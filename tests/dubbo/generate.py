"""Rules and provider lists for the comparison with Dubbo's own consumer: the same for the same seed.

A case is one service of one consumer: its providers, the rules in force for it, and calls. Everything that a rule can
ask for exists somewhere in the lists, so most conditions split them; some rules are broken on purpose.
"""
import json
import random

REGIONS = ["hz", "sh", "bj"]
TAGS = ["gray", "blue"]
PORTS = [20880, 20881, 20882]
METHODS = ["hello", "hello2", "findUser", "findAll", "delete"]
SIZES = [1, 2, 3, 5, 8, 8, 13, 13, 21, 40, 100]
CASES_OF_AN_APPLICATION = 20
# Draws of a case with weights: the rarest outcome has one chance in 25.
DRAWS = 600

WHEN = [
    "method=hello", "method=hello,hello2", "method=find*", "method!=hello", "method!=find*", "method=*", "true", "",
    "host=10.9.8.7", "host=10.9.8.*", "host!=10.9.8.7", "host=10.1.1.1", "side=consumer", "region=hz", "region!=hz",
    "region=hz,sh", "env=gray", "env!=gray", "lane=1~5", "lane=~3", "lane=5~", "nothing!=x", "nothing=*",
    "arguments[0]=ann", "arguments[0]!=ann", "arguments[0]=a*", "arguments[1]=1~5", "arguments[5]!=x",
    "attachments[user]=ann", "attachments[user]!=ann", "attachments[level]=3~7", "attachments[user]=*",
    "method = hello & attachments[user] = ann,bob", "method=hello&region=$region",
]
THEN = [
    "region=hz", "region!=hz", "region=$region", "region!=$region", "region=hz,sh", "region=h*", "env=gray",
    "env!=gray", "env=$env", "port=20880", "port!=20880", "address=*:20880", "address!=*:20881", "host=10.0.0.*",
    "host=10.0.*.1", "host!=10.0.1.*", "level=1~5", "level=~3", "level=5~", "level=9~1", "level=x~y", "weight=100",
    "weight!=100", "protocol=dubbo", "protocol!=dubbo", "dubbo.tag=gray", "nothing=x", "nothing!=x", "region",
    "region=hz & env=gray", "region=$region & level=1~8", "side=provider", "side=consumer", "disk=*", "disk=s*d",
    "remote.application={provider}", "application={provider}", "application={consumer}", "path=*", "host=$host",
    "methods=*", "region=hz&port=20880,20881",
]
BROKEN = ["a==b => region=hz", "=> region=hz,,sh", "method=hello => region=!hz"]


class Case:
    def __init__(self, draw, number):
        self.draw, self.number = draw, number
        self.application = f"shop-{number // CASES_OF_AN_APPLICATION}"
        self.provider = f"stock-{number}"
        self.interface = f"org.example.Case{number}"
        self.version = draw.choice(["", "", "", "1.0.0"])
        self.group = draw.choice(["", "", "", "blue"])
        self.weighted = False

    def some(self, choices, chance=0.5):
        return self.draw.choice(choices) if self.draw.random() < chance else None

    def consumer(self):
        own = {"region": self.some(REGIONS, 0.7), "env": self.some(["gray", "prod"], 0.5),
               "lane": self.some(["1", "4", "9", "x"], 0.4), "dubbo.tag": self.some(TAGS, 0.1)}
        return {key: value for key, value in own.items() if value}

    def providers(self):
        urls, draw = [], self.draw
        for at in range(draw.choice(SIZES)):
            own = {
                "application": self.provider, "interface": self.interface, "side": "provider", "dubbo": "2.0.2",
                "methods": ",".join(METHODS), "release": "3.3.6", "timestamp": str(1730000000000 + at),
                "region": self.some(REGIONS, 0.8), "env": self.some(["gray", "prod"], 0.6),
                "level": self.some(list("123456789"), 0.8), "disk": self.some(["ssd", "hdd", ""], 0.5),
                "weight": self.some(["100", "50", "0"], 0.5), "dubbo.tag": self.some(TAGS, 0.3),
                "group": self.group or None, "version": self.version or None,
                "disabled": self.some(["true"], 0.04), "enabled": self.some(["false"], 0.04),
            }
            host = f"10.0.{draw.choice([0, 0, 1])}.{at + 1}"
            query = "&".join(f"{key}={value}" for key, value in own.items() if value is not None)
            urls.append(f"dubbo://{host}:{draw.choice(PORTS)}/{self.interface}?{query}")
        return urls

    def atom(self, choices):
        text = self.draw.choice(choices)
        return text.replace("{provider}", self.provider).replace("{consumer}", self.application)

    def head(self, scope, key, version):
        lines = [f"configVersion: {version}"] if version else []
        lines += [f"scope: {scope}", f"key: '{key}'"]
        for name, chance in (("force", 0.6), ("runtime", 0.5)):
            if self.draw.random() < chance:
                lines.append(f"{name}: {self.draw.choice(['true', 'false'])}")
        if self.draw.random() < 0.3:
            lines.append(f"priority: {self.draw.randint(0, 9)}")
        enabled = self.draw.choice(["true", "true", "true", "true", "true", "true", None, "false"])
        if enabled:
            lines.append(f"enabled: {enabled}")
        return lines

    def conditions(self, scope, key):
        """v3.0 and older."""
        lines = self.head(scope, key, self.draw.choice(["v3.0", "v3.0", None, "v2.7"])) + ["conditions:"]
        for _ in range(self.draw.choice([1, 1, 2, 2, 3, 4])):
            text = f"{self.atom(WHEN)} => {self.atom(THEN)}"
            if self.draw.random() < 0.06:
                text = f"{self.atom(WHEN)} =>" + self.draw.choice(["", " false"])
            elif self.draw.random() < 0.06:
                text = "=> " + self.atom(THEN)
            elif self.draw.random() < 0.02:
                text = self.draw.choice(BROKEN)
            lines.append(f"- '{text}'")
        return "\n".join(lines) + "\n"

    def destinations(self, scope, key):
        """v3.1."""
        self.weighted = True
        lines = self.head(scope, key, "v3.1") + ["conditions:"]
        # No outcome is so rare that it might not be seen.
        weights = self.draw.choice([[100, 100, 200, None], [100, 200, None], [1, 1, 2]])
        for _ in range(self.draw.choice([1, 1, 2])):
            lines += ["- from:", f"    match: '{self.atom(WHEN)}'"]
            count = self.draw.choice([0, 1, 2, 2, 3])
            if count:
                lines.append("  to:")
            for _ in range(count):
                match = self.draw.choice(["", "false"]) if self.draw.random() < 0.08 else self.atom(THEN)
                lines.append(f"  - match: '{match}'")
                weight = self.draw.choice(weights)
                if weight:
                    lines.append(f"    weight: {weight}")
        return "\n".join(lines) + "\n"

    def tags(self, providers):
        lines = self.head("application", self.provider, self.draw.choice(["v3.0", "v3.0", None])) + ["tags:"]
        for name in self.draw.sample(["gray", "blue", "gray|canary", "canary"], self.draw.choice([1, 2, 2, 3])):
            lines.append(f"- name: '{name}'")
            if lines[0] == "configVersion: v3.0" and self.draw.random() < 0.5:
                value = self.draw.choice(["exact: hz", "prefix: h", "regex: 's.*'", "wildcard: '*'", "noempty: x", "empty: x"])
                lines += ["  match:", f"  - key: {self.draw.choice(['region', 'env'])}", "    value:", f"      {value}"]
                continue
            lines.append("  addresses:")
            for _ in range(self.draw.choice([1, 2, 3])):
                at = self.draw.choice(providers).split("://")[1].split("/")[0]
                host = at.split(":")[0]
                own = [at, at, at, host, f"0.0.0.0:{self.draw.choice(PORTS)}", "10.0.0.0/28", "10.0.1.*", "10.0.0.1-9",
                       "10.0.0.*:20880", "10.7.7.7:20880"]
                lines.append(f"  - '{self.draw.choice(own)}'")
        return "\n".join(lines) + "\n"

    def affinity(self, scope, key):
        lines = self.head(scope, key, "v3.1")
        lines += ["affinityAware:", f"  key: {self.draw.choice(['region', 'region', 'env', 'lane', 'nothing'])}",
                  f"  ratio: {self.draw.choice([0, 10, 30, 50, 90])}"]
        return "\n".join(lines) + "\n"

    def override(self, providers):
        """Parameters that an administrator lays over providers, or takes them out with."""
        lines = ["configVersion: v2.7", "scope: service", f"key: '{self.interface}'", "enabled: true", "configs:"]
        for _ in range(self.draw.choice([1, 2])):
            at = self.draw.choice(providers).split("://")[1].split("/")[0]
            own = self.draw.choice(["region: sh", "env: gray", "level: 7", "disabled: true", "weight: 50",
                                    "'dubbo.tag': gray"])
            lines += ["- side: consumer", "  addresses: ['0.0.0.0']"]
            if self.draw.random() < 0.7:
                lines.append(f"  providerAddresses: ['{at}']")
            lines += ["  parameters:", f"    {own}"]
        return "\n".join(lines) + "\n"

    def calls(self):
        calls = []
        for method in METHODS:
            attachments = {}
            if self.draw.random() < 0.5:
                attachments["user"] = self.draw.choice(["ann", "bob", "cyd"])
            if self.draw.random() < 0.4:
                attachments["level"] = self.draw.choice(["1", "5", "9", "x"])
            if self.draw.random() < 0.4:
                attachments["dubbo.tag"] = self.draw.choice(["gray", "blue", "gray|canary", "canary|blue", "none"])
                if self.draw.random() < 0.3:
                    attachments["dubbo.force.tag"] = "true"
            arguments = self.draw.choice([[], ["ann"], ["bob", 3], ["cyd", 9], ["ann", "x", True]])
            calls.append({"method": method, "arguments": arguments, "attachments": attachments})
        if self.draw.random() < 0.2:
            # A generic call: the method meant is its first argument.
            calls.append({"method": "$invoke", "arguments": [self.draw.choice(METHODS)], "attachments": {}})
        return calls

    def made(self, application_rule):
        draw = self.draw
        service = f"{self.interface}:{self.version}:{self.group}"
        providers, rules = self.providers(), {}
        if application_rule:
            rules[f"{self.application}.condition-router"] = application_rule
        kind = draw.random()
        if kind < 0.45:
            rules[f"{service}.condition-router"] = self.conditions("service", service)
        elif kind < 0.75:
            rules[f"{service}.condition-router"] = self.destinations("service", service)
        if draw.random() < 0.35:
            rules[f"{self.provider}.condition-router"] = self.conditions("application", self.provider)
        if draw.random() < 0.4:
            rules[f"{self.provider}.tag-router"] = self.tags(providers)
        if draw.random() < 0.25:
            rules[f"{service}.affinity-router"] = self.affinity("service", service)
        if draw.random() < 0.15:
            rules[f"{service}.configurators"] = self.override(providers)
        return {
            "name": f"case-{self.number}", "application": self.application, "provider": self.provider,
            "interface": self.interface, "version": self.version or None, "group": self.group or None,
            "consumer": self.consumer(), "providers": providers, "rules": rules, "calls": self.calls(),
            "draws": DRAWS if self.weighted else 3,
        }


def cases(seed, count):
    draw, made, rule = random.Random(seed), [], None
    for number in range(count):
        case = Case(draw, number)
        if number % CASES_OF_AN_APPLICATION == 0:
            # One rule for all services of an application; every third has none.
            third = number // CASES_OF_AN_APPLICATION % 3 == 2
            rule = None if third else case.conditions("application", case.application)
        made.append(case.made(rule))
    return made


def write(path, seed, count):
    made = cases(seed, count)
    path.write_text("".join(json.dumps(case) + "\n" for case in made))
    return made
