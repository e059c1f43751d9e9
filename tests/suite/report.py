"""Counts what a part passes, fails and skips, and says why."""
import os
import re
import subprocess
import sys
import time

import hang
from header import ROOT

NO_END = "no end after "


def tail(lines, most=60):
    """The last lines; of a program that did not end also everything about where it stood."""
    late = next((at for at, line in enumerate(lines) if line.startswith(NO_END)), len(lines))
    return lines[max(0, min(len(lines) - most, late - 10)):][:500]


class Report:
    """One part's results."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failed = 0
        self.skips = []
        self.began = time.monotonic()

    def ok(self, good, what, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {self.name}: {what}")
            for line in tail(detail.strip().splitlines()):
                print(f"    {line}")
        sys.stdout.flush()
        return good

    def skip(self, what, why, count=1):
        self.skips.append((what, why, count))

    @property
    def skipped(self):
        return sum(count for _, _, count in self.skips)

    def line(self):
        text = f"{self.name}: {self.passed} passed, {self.failed} failed"
        if self.skips:
            named = ", ".join(f"{what} ({why})" if why else what for what, why, _ in self.skips)
            text += f", {self.skipped} skipped [{named}]"
        return text

    def run(self, command, what, **options):
        """One test: a command that must end well."""
        done = run(command, **options)
        self.ok(done.returncode == 0, what, done.stdout)
        return done

    def tap(self, command, what, allow=(0, 1), **options):
        """A program that speaks TAP. Every line counts; so does an end without a plan."""
        done = run(command, **options)
        tests, failing = 0, []
        for line in done.stdout.splitlines():
            found = re.match(r"(not )?ok \d+ - (.*)", line)
            if not found:
                continue
            tests += 1
            skip = re.match(r"(.*) # SKIP (.*)", found.group(2))
            if found.group(1):
                failing.append(found.group(2))
                self.failed += 1
            elif skip:
                self.skip(f"{what}: {skip.group(1)}", skip.group(2))
            else:
                self.passed += 1
        plan = re.search(r"^1\.\.(\d+)$", done.stdout, re.M)
        whole = plan and int(plan.group(1)) == tests and done.returncode in allow
        if failing or not whole:
            why = f"{len(failing)} failing" if whole else f"ended with {done.returncode} before its plan was fulfilled"
            if not failing:
                self.failed += 1
            shown = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
            print(f"FAIL {self.name}: {what}: {why}")
            for line in tail(shown):
                print(f"    {line}")
        sys.stdout.flush()

    def counted(self, output, pattern=r"^\S+: (\d+) passed, (\d+) failed(?:, (\d+) skipped \((.*)\))?$"):
        """Adds the last line of a runner that counts itself; says whether there was one."""
        lines = re.findall(pattern, output, re.M)
        if not lines:
            return False
        passed, failed, skipped, kinds = lines[-1]
        self.passed += int(passed)
        self.failed += int(failed)
        if skipped and int(skipped):
            self.skip(kinds, "", int(skipped))
        return True


def run(command, timeout=1800, env=None, cwd=ROOT, **options):
    """Runs a command without input; its output is one text. One that does not end in time is ended with all it has
    started, and the text says where its threads stood."""
    environment = dict(os.environ, **(env or {}))
    try:
        child = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True, **options)
    except FileNotFoundError as missing:
        return subprocess.CompletedProcess(command, 127, str(missing))
    try:
        output, _ = child.communicate(timeout=timeout)
        return subprocess.CompletedProcess(command, child.returncode, output)
    except subprocess.TimeoutExpired:
        where = hang.stacks(child.pid)
        hang.end(child.pid)
        try:
            output, _ = child.communicate(timeout=10)
        except subprocess.TimeoutExpired as still:  # somebody outside the group holds the pipe
            output = (still.stdout or b"").decode(errors="replace")
        return subprocess.CompletedProcess(command, 124, f"{output}\n{NO_END}{timeout} s: {command}\n{where}")
    except BaseException:
        hang.end(child.pid)
        raise
