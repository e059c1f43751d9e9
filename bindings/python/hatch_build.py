"""Puts libbyway.so into the wheel and names the platform: one wheel serves every Python 3."""
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Library(BuildHookInterface):
    """`BYWAY_LIBRARY` names a library to take; otherwise cargo builds one from the checkout around this package."""

    def initialize(self, version, build_data):
        named = os.environ.get("BYWAY_LIBRARY")
        if named:
            library = Path(named)
        else:
            root = Path(self.root).parent.parent
            subprocess.run(["cargo", "build", "--release", "--lib", "--features", "script"], cwd=root, check=True)
            library = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release" / "libbyway.so"
        taken = Path(self.root) / "build" / "libbyway.so"
        taken.parent.mkdir(exist_ok=True)
        shutil.copy2(library.resolve(), taken)
        build_data["force_include"][str(taken)] = "byway/libbyway.so"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
