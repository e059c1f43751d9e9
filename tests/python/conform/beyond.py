"""Kinds about what is not, or not so, on this side of the boundary, each with its reason."""
from case import Skips

REASONS = {
    "bitlist": "lists of rows are inside a chain",
    "address_match": "upstream's matcher; overrides read addresses as conditions do",
    "mesh-manager": "how upstream hands rules to its listeners",
    "mesh-dispatch": "how upstream hands rules to its listeners",
    "mesh-parse": "what a text is read as, where it does not show in routing",
    "chain-cache": "which objects upstream shares and keeps",
    "chain-sharing": "which objects upstream shares and keeps",
    "chain-snapshot": "which objects upstream shares and keeps",
    "snapshot-switch": "which objects upstream shares and keeps",
    "directory": "lists of what cannot be reached; a host gives availability to a pick",
    "polaris": "byway has no such router",
    "tag-static-config": "a rule has the key it is set under",
}


def run(case):
    raise Skips(REASONS[case["kind"]])


KINDS = {("dubbo_chain", kind): run for kind in REASONS}
