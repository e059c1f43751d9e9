"""The header's groups of numbers are whole in Python's enumerations, and of their names."""
import unittest

import byway
from byway import _abi, failure

GROUPS = {
    "BALANCE": byway.Balance,
    "COMPAT": byway.Compat,
    "DIALECT": byway.Dialect,
    "DIAL_EVENT": byway.DialEventKind,
    "DISCOVERY": byway.Discovery,
    "EMPTY_PROTECTION": byway.EmptyProtection,
    "EVENT": byway.EventKind,
    "FAILURE": byway.Failure,
    "FIRST_FAMILY": byway.FirstFamily,
    "HANDSHAKE": byway.Want,
    "NO_COALESCING": byway.NoCoalescing,
    "PEER": byway.Peer,
    "PHASE": byway.Phase,
    "PROXY": byway.ProxyKind,
    "RACE_UNTIL": byway.RaceUntil,
    "RECOVER": byway.Recovery,
    "RESUME": byway.Resume,
    "RULE": byway.RuleKind,
    "SOURCE_EVENT": byway.SourceEventKind,
    "TELL": failure.Tell,
}
# What no number of the header stands for.
OWN = {byway.Balance: {"AUTO"}}


class Constants(unittest.TestCase):
    def test_every_group_is_whole(self):
        for prefix, kind in GROUPS.items():
            begin = f"BYWAY_{prefix}_"
            header = {name[len(begin):]: value for name, value in vars(_abi).items() if name.startswith(begin)
                      and isinstance(value, int)}
            here = {name: int(value) for name, value in kind.__members__.items() if name not in OWN.get(kind, ())}
            self.assertEqual(here, header, prefix)

    def test_dial_flags_are_whole(self):
        others = {"BYWAY_DIAL_NONE"}
        header = {name[len("BYWAY_DIAL_"):]: value for name, value in vars(_abi).items()
                  if name.startswith("BYWAY_DIAL_") and not name.startswith("BYWAY_DIAL_EVENT_") and name not in others
                  and isinstance(value, int)}
        self.assertEqual({name: int(value) for name, value in byway.DialFlag.__members__.items()}, header)

    def test_flags_of_proxy_selectors_are_whole(self):
        for prefix, kinds in (("BYPASS", (byway.BypassStyle, byway.BypassFlag)), ("PAC", (byway.PacFlag,))):
            begin = f"BYWAY_{prefix}_"
            header = {name[len(begin):]: value for name, value in vars(_abi).items() if name.startswith(begin)
                      and isinstance(value, int)}
            self.assertEqual({name: int(value) for kind in kinds for name, value in kind.__members__.items()}, header)

    def test_every_status_has_an_exception(self):
        for name, value in vars(_abi).items():
            if name.startswith("BYWAY_E_"):
                self.assertEqual(byway.status_name(value), name)
                self.assertTrue(issubclass(byway.errors.class_of(value), byway.BywayError))


if __name__ == "__main__":
    unittest.main()
