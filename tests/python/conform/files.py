"""Rules in files that change: each way to change a file is seen once, whole, and nothing else is."""
import os
import tempfile
from pathlib import Path

import byway
from byway import Dialect
from case import need, same
from worlds import World

KEY, MARKER = "a.tag-router", "S::.condition-router"
OLD = "# the old rule\nkey: a\ntags: [{name: old, addresses: ['10.0.0.1:20880']}]\n"
NEW = "# the new rule\nkey: a\ntags: [{name: gray, addresses: ['10.0.0.1:20880']}]\n"
ROWS = [f"dubbo://10.0.0.{i}:20880/S?application=a" for i in (1, 2)]


class Watched:
    """A chain that follows a folder, and what was told of its rules."""

    def __init__(self, world, folder):
        self.world, self.folder, self.file = world, Path(folder), Path(folder) / KEY
        self.queue, self.heard = world.engine.queue, []
        world.engine.add_listener(self.heard.append, [byway.EventKind.RULE])
        world.call({"method": "m", "attachments": {"dubbo.tag": "gray"}})

    def told(self, key):
        return [event for event in self.heard if event.subject == key]

    def until(self, good):
        """Polls until something holds; False when it does not."""
        for _ in range(600):
            if good():
                return True
            self.queue.poll(0.1)
        return good()

    def follow(self):
        source = byway.Source.file(self.world.engine, str(self.folder))
        self.world.chain.bind(source, 60, rules_only=True)
        need(self.until(lambda: self.told(KEY)), "the old text is not seen")

    def put(self, name, text):
        """At once, as editors do."""
        (self.folder / ".new").write_text(text)
        os.rename(self.folder / ".new", self.folder / name)

    def mark(self):
        """Another file, so that a look has happened."""
        self.put(MARKER, "conditions: ['method=x => host=10.0.0.1']")
        need(self.until(lambda: self.told(MARKER)), "the other file is not seen")

    def point_to(self, name, text):
        (self.folder / name).mkdir()
        (self.folder / name / KEY).write_text(text)
        os.symlink(name, self.folder / "..tmp")
        os.rename(self.folder / "..tmp", self.folder / "..data")

    def revision(self):
        return next(one["revision"] for one in self.world.chain.status()["routers"] if one.get("key") == KEY)

    # --- the ways to change a file ---

    def write_in_place(self):
        self.file.write_text(NEW)

    def rename_over(self):
        self.put(KEY, NEW)

    def symlink_dir_swap(self):
        self.point_to("..2", NEW)

    def delete_create(self):
        self.file.unlink()
        self.file.write_text(NEW)

    def touch_only(self):
        os.utime(self.file)
        self.mark()

    def truncate_then_write(self):
        before = len(self.told(KEY))
        with open(self.file, "w") as file:
            file.write(NEW[:20])
            file.flush()
            # A look happens in between, and half a text is not taken.
            self.mark()
            same(len(self.told(KEY)), before, "texts taken in between")
            file.write(NEW[20:])


def one_variant(variant):
    """Whether a change was seen: once, and whole."""
    with tempfile.TemporaryDirectory(prefix="byway-watch-") as folder, World(
            Dialect.BYWAY, "consumer://10.1.1.1/S", ROWS) as world:
        watched = Watched(world, folder)
        if variant == "symlink_dir_swap":
            watched.point_to("..1", OLD)
            os.symlink(f"..data/{KEY}", watched.file)
        else:
            watched.file.write_text(OLD)
        watched.follow()
        before = len(watched.told(KEY))
        getattr(watched, variant)()
        if variant == "touch_only":
            return len(watched.told(KEY)) > before or watched.revision() > 1
        # Whether calls with the new rule's tag get its provider.
        if not watched.until(lambda: world.routed() == [0]):
            return False
        # A file that is away for longer than a moment is deleted, and its return a first text.
        need(watched.revision() == 2 or variant == "delete_create", f"{variant}: {watched.revision()} texts")
        need(all(event.status >= 0 for event in watched.heard), f"{variant}: an error was told")
        return True


def file_watch(case):
    same([one_variant(variant) for variant in case["input"]["variants"]], case["expect"]["reloaded"], "reloaded")


KINDS = {("bugs", "file_watch"): file_watch}
