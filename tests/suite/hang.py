"""Where the threads of a program stand that does not end in time."""
import os
import shutil
import subprocess
from pathlib import Path

# Each asks about one process; the first that answers is enough.
TOOLS = (["eu-stack", "-p"], ["gdb", "-p", "{}", "-batch", "-nx", "-ex", "thread apply all bt"])


def stacks(group):
    """A text about every process of a process group: its threads, what they wait for, their stacks."""
    return "\n".join(process(pid) for pid in members(group))


def members(group):
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # After the name, which may hold anything: state, parent, group.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(folder.name))
    return sorted(found)


def process(pid):
    lines = [f"process {pid}: {read(f'/proc/{pid}/cmdline', 200)}"]
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        state = next((line for line in read(task / "status").splitlines() if line.startswith("State:")), "")
        lines.append(f"  thread {task.name} {read(task / 'comm')}: {state} in {read(task / 'wchan') or '-'}, "
                     f"system call {read(task / 'syscall') or '-'}")
    lines.append(stack(pid))
    return "\n".join(lines)


def stack(pid):
    if "valgrind" in read(f"/proc/{pid}/cmdline") and shutil.which("vgdb"):
        # The stacks of the program inside, not valgrind's own.
        return output(["vgdb", f"--pid={pid}", "v.info", "scheduler"])
    for tool in TOOLS:
        if shutil.which(tool[0]):
            given = [word.format(pid) for word in tool]
            text = output(given if "{}" in tool else [*given, str(pid)])
            if "#0" in text:
                return text
    return "  (no stacks: neither eu-stack nor gdb could look)"


def output(command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as why:
        return str(why)


def read(path, most=4000):
    try:
        return Path(path).read_bytes()[:most].replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def end(group):
    """Ends every process of the group."""
    try:
        os.killpg(group, 9)
    except ProcessLookupError:
        pass
