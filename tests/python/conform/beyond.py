"""Kinds about what is not, or not so, on this side of the boundary, each with its reason."""
from case import Skips

REASONS = {
    "mesh-manager": "how upstream hands rules to its listeners",
    "mesh-dispatch": "how upstream hands rules to its listeners",
    "polaris": "byway has no such router",
    "tag-static-config": "a rule has the key it is set under",
}


def run(case):
    raise Skips(REASONS[case["kind"]])


KINDS = {("dubbo_chain", kind): run for kind in REASONS}
