"""Everything public says what it is for: `help(byway)` is the documentation."""
import enum
import inspect
import unittest

import byway
from byway import aio, failure


def members(kind):
    for name, value in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))):
            yield name, getattr(value, "__func__", value)


class Documented(unittest.TestCase):
    def test_every_public_name_has_a_text_of_its_own(self):
        missing = []
        public = [(name, getattr(byway, name)) for name in byway.__all__]
        public += [(f"{module.__name__}.{name}", value) for module in (aio, failure) for name, value in vars(module).items()
                   if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__]
        for name, value in public:
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            if not inspect.getdoc(value) or (inspect.isclass(value) and value.__doc__ is None):
                missing.append(name)
            if inspect.isclass(value) and not issubclass(value, enum.Enum):
                missing += [f"{name}.{member}" for member, function in members(value)
                            if not inspect.getdoc(function) and not isinstance(function, property)]
                missing += [f"{name}.{member}" for member, function in members(value)
                            if isinstance(function, property) and not (function.fget and function.fget.__doc__)]
        self.assertEqual(missing, [])

    def test_what_is_exported_exists_and_is_sorted_out(self):
        self.assertEqual(len(set(byway.__all__)), len(byway.__all__))
        here = {name for name, value in vars(byway).items() if not name.startswith("_") and not inspect.ismodule(value)}
        self.assertEqual(here, set(byway.__all__))


if __name__ == "__main__":
    unittest.main()
