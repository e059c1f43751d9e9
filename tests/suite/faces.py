"""The bindings: each in its own language, on the library as shipped."""
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from artefacts import BUILD, FEATURES, LIMIT, PROFILE, ROOT, have, prefix, version
from report import run, tail

PYTHON = ROOT / "bindings" / "python"
# The clients the adapters are for, and certificates for the servers of their tests; then what checks types.
CLIENTS = ["requests", "httpx", "trustme"]
TOOLS = ["mypy"]


def interpreters():
    """Every Python from 3.8 on, one of each minor version, this one first."""
    found = {sys.version_info[:2]: sys.executable}
    places = [*os.environ.get("PATH", "").split(":"), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    for place in places:
        for minor in range(8, 20):
            program = Path(place) / f"python3.{minor}"
            if program.exists() and (3, minor) not in found:
                if run([str(program), "-c", "import ctypes, ssl"]).returncode == 0:
                    found[(3, minor)] = str(program)
    return found


def unittests(report, program, what, env):
    done = run([program, "-m", "unittest", "discover", "-v", "-s", str(PYTHON / "tests")], env=env,
               cwd=PYTHON / "tests", timeout=600)
    ran = re.search(r"^Ran (\d+) tests?", done.stdout, re.M)
    bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", done.stdout))
    skipped = re.findall(r"^(\w+ \(.*?\)).*skipped [\"'](.*)[\"']", done.stdout, re.M)
    for name, why in skipped:
        report.skip(f"{what}: {name}", why)
    if not ran or (done.returncode and not bad):
        report.ok(False, f"{what}: the tests run", done.stdout)
        return
    report.passed += int(ran.group(1)) - bad - len(skipped)
    report.failed += bad
    if bad:
        print(f"FAIL {report.name}: {what}")
        for line in tail(done.stdout.splitlines(), 80):
            print(f"    {line}")


def environment(program, version, packages):
    """A virtual environment of this Python with these packages; None when it cannot be had."""
    folder = BUILD / "venv" / "{}.{}".format(*version)
    inside, note = folder / "bin" / "python", folder / "installed.txt"
    if note.exists() and note.read_text() == " ".join(packages):
        return str(inside)
    shutil.rmtree(folder, ignore_errors=True)
    if run([program, "-m", "venv", str(folder)]).returncode:
        return None
    if run([str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]).returncode:
        return None
    note.write_text(" ".join(packages))
    return str(inside)


def python_environment():
    """What a program needs to import the package from here, over the library as shipped."""
    return {"BYWAY_LIBRARY": str(prefix() / "lib" / "libbyway.so"), "PYTHONPATH": str(PYTHON / "src")}


def python(report):
    library = python_environment()
    report.run([sys.executable, str(PYTHON / "abi.py"), "--check"], "the declarations are the header's")
    for version, program in interpreters().items():
        own = version == sys.version_info[:2]
        name = "Python {}.{}".format(*version)
        rich = environment(program, version, CLIENTS + (TOOLS if own else []))
        if rich is None:
            report.skip(f"{name}: requests, httpx" + (", types and wheel" if own else ""),
                        "no virtual environment or no package index")
        unittests(report, rich or program, name, library)
        if own and rich is not None:
            report.run([rich, "-m", "mypy"], "mypy --strict", cwd=PYTHON)
            wheel(report, rich)


def wheel(report, program):
    """The wheel carries the library and needs nothing else."""
    folder = BUILD / "wheel"
    made = report.run(["make", "--no-print-directory", "wheel", f"PROFILE={PROFILE}", f"FEATURES={FEATURES}"], "make wheel")
    wheels = list(folder.glob("byway-*.whl")) if made.returncode == 0 else []
    name = rf"byway-{re.escape(version())}-py3-none-linux_\w+\.whl"
    if not report.ok(len(wheels) == 1 and re.fullmatch(name, wheels[0].name), "one wheel for every Python 3", str(wheels)):
        return
    with zipfile.ZipFile(wheels[0]) as opened:
        brought = {name for name in opened.namelist() if ".dist-info/" not in name}
    package = PYTHON / "src"
    wanted = {str(path.relative_to(package)) for path in package.rglob("*.py")} | {"byway/py.typed", "byway/libbyway.so"}
    report.ok(brought == wanted, "it brings the package, its library and the mark that it is typed, nothing else",
              f"only there: {sorted(brought - wanted)}\nonly here: {sorted(wanted - brought)}")
    shutil.rmtree(folder / "site", ignore_errors=True)
    run([program, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(wheels[0])])
    script = "import byway; assert byway.find_library().startswith(r'%s'); print(byway.version())" % (folder / "site")
    report.run([program, "-c", script], "the installed wheel uses its own library",
               env={"PYTHONPATH": str(folder / "site"), "BYWAY_LIBRARY": ""})


JAVA = ROOT / "bindings" / "java"


def maven(report, what, *arguments):
    """Runs Maven in bindings/java; None when it cannot get what it needs."""
    if not have("mvn"):
        report.skip(what, "no Maven")
        return None
    done = run(["mvn", "-q", "-B", *arguments], cwd=JAVA, env={"PROFILE": PROFILE}, timeout=1800)
    if done.returncode and re.search(r"Could not transfer artifact|Unknown host", done.stdout):
        report.skip(what, "no Maven repository")
        return None
    return done


def jar():
    """How building it went, and the jar with the library inside."""
    done = run(["mvn", "-q", "-B", "package", "-DskipTests", "-Dmaven.javadoc.skip=true"], cwd=JAVA,
               env={"PROFILE": PROFILE}, timeout=1800)
    names = [path for path in (JAVA / "target").glob("byway-*.jar") if not path.stem.endswith(("-sources", "-javadoc"))]
    return done, names[0] if names else None


def junit(report, done, what, folder=JAVA / "target" / "surefire-reports"):
    """Counts the XML reports of one run."""
    tests, failed = 0, report.failed
    for path in sorted(folder.glob("TEST-*.xml")):
        head = ElementTree.parse(path).getroot()
        number = {name: int(head.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        tests += number["tests"]
        bad = number["failures"] + number["errors"]
        report.failed += bad
        report.passed += number["tests"] - bad - number["skipped"]
        for case in head.iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                why = (skipped.get("message") or skipped.text or "").strip().splitlines()
                report.skip(f"{what}: {case.get('name')}", why[0] if why else "")
            for kind in ("failure", "error"):
                if case.find(kind) is not None:
                    print(f"FAIL {report.name}: {what}: {case.get('classname')}.{case.get('name')}")
                    for line in (case.find(kind).text or "").splitlines()[:30]:
                        print(f"    {line}")
    report.ok(tests > 0, f"{what}: tests were run", done.stdout)
    if done.returncode and report.failed == failed:
        report.ok(False, f"{what}: the run ends well", done.stdout)


def jvms():
    """Every JVM of this machine, one of each major version: {version: program}, the one that is `java` first."""
    found = {}
    for program in ["java", *map(str, sorted(Path("/usr/lib/jvm").glob("*/bin/java")))]:
        version = re.search(r'version "(\d+)', run([program, "-version"]).stdout)
        if version and int(version.group(1)) >= 11:
            found.setdefault(int(version.group(1)), program)
    return found


def checked(report, program, version):
    """The tests on one JVM, with JNI's own checks; a word from these fails."""
    folder = BUILD / "java" / str(version)
    shutil.rmtree(folder, ignore_errors=True)
    access = ["--enable-native-access=ALL-UNNAMED"] if version >= 17 else []
    done = run([program, "-Xcheck:jni", "-Xmx512m", *access, *classpath(),
                "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--details=none",
                "--scan-classpath", str(JAVA / "target" / "test-classes"), f"--reports-dir={folder}"], timeout=600)
    what = f"Java {version}, checked"
    junit(report, done, what, folder)
    warnings = re.findall(WARNINGS, done.stdout, re.M)
    report.ok(not warnings, f"{what}: JNI is used as it should be", "\n".join(warnings[:3]))


def natives(report):
    """Every native method has its function, every function its method, and nothing else is exported."""
    declared = set()
    for path in (JAVA / "src" / "main").rglob("*.java"):
        owner = "_".join(path.relative_to(JAVA / "src" / "main" / "java").with_suffix("").parts)
        for name in re.findall(r"\bnative\s+[\w\[\]]+\s+(\w+)\(", path.read_text()):
            declared.add(f"Java_{owner}_{name}")
    built = next((JAVA / "target" / "native").rglob("libbyway_jni.so"))
    exported = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", str(built)]).stdout.splitlines()}
    exported.discard("JNI_OnLoad")
    report.ok(exported == declared, "native methods and exported functions are the same",
              f"only in Java: {sorted(declared - exported)}\nonly exported: {sorted(exported - declared)}")


CLASSPATH = ["org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath",
             "-Dmdep.outputFile=target/test-classpath", "-Dmdep.includeScope=test"]
WARNINGS = r"^(?:WARNING|FATAL ERROR) in native method.*(?:\n.*){0,4}"
TRACES = r"^(?:WARNING|FATAL ERROR) in native method.*(?:\n\t.*)*"


def classpath():
    """Options of Java for the classes and the tests that Maven has built."""
    places = [JAVA / "target" / "classes", JAVA / "target" / "test-classes"]
    libraries = (JAVA / "target" / "test-classpath").read_text().strip()
    return [*unpacked(), "-cp", ":".join([*map(str, places), libraries])]


def unpacked():
    """Has Java keep the library it unpacks inside this project."""
    return [f"-Dio.byway.workdir={JAVA / 'target' / 'unpacked'}"]


def java_command(report, what):
    """How Java is called to run a class of the tests; None when Maven cannot build them."""
    done = maven(report, what, "test-compile", *CLASSPATH)
    if done is None:
        return None
    if done.returncode:
        report.ok(False, f"{what}: Maven builds", done.stdout)
        return None
    return ["java", "-Xcheck:jni", *classpath()]


def vectors_java(report, finish):
    """The same files through the Java package; what JNI's checks say fails."""
    command = java_command(report, "every case through Java")
    if command is None:
        return
    done = run([*command, "io.byway.conform.Main"], timeout=900)
    # JNA, by which races get their network, is not byway's.
    warnings = [said for said in re.findall(TRACES, done.stdout, re.M) if "at com.sun.jna." not in said]
    if warnings:
        report.ok(False, "JNI is used as it should be", "\n".join(warnings[:3]))
    finish(report, done)


OKHTTP_4 = ["-Dokhttp.artifact=okhttp", "-Dokhttp.version=4.12.0"]


def java(report):
    report.run([sys.executable, str(JAVA / "abi.py"), "--check"], "the numbers in Java are the header's")
    # The other OkHttp first: what stays behind is built with the current one.
    for what, goal in (("Java with OkHttp 4.12", ["test", "-Dtest=OkHttpTest", *OKHTTP_4]), ("Java", ["package"])):
        shutil.rmtree(JAVA / "target" / "surefire-reports", ignore_errors=True)
        done = maven(report, what, *goal, *CLASSPATH, "-Dmaven.test.failure.ignore=true")
        if done is None:
            return
        junit(report, done, what)
    natives(report)
    jars = sorted(path.name for path in (JAVA / "target").glob("byway-*.jar"))
    if not report.ok(jars == [f"byway-{version()}{kind}.jar" for kind in ("-javadoc", "-sources", "")],
                     "jar, sources and javadoc, of the library's version", str(jars)):
        return
    jar = JAVA / "target" / f"byway-{version()}.jar"
    contents(report, jar)
    found = jvms()
    for source in sorted((ROOT / "examples").glob("*.java")):
        done = run(["java", *unpacked(), "-cp", str(jar), str(source)], timeout=LIMIT)
        report.ok(done.returncode == 0 and done.stdout.strip(), f"{source.name} runs on the jar alone", done.stdout)
        # Newer JVMs would warn if the module had another name.
        allow = ["--enable-native-access=io.byway"] if max(found) >= 17 else []
        done = run([found[max(found)], *unpacked(), "-p", str(jar), "--add-modules", "io.byway", *allow, str(source)],
                   timeout=LIMIT)
        report.ok(done.returncode == 0 and done.stdout.strip() and "WARNING" not in done.stdout,
                  f"{source.name} runs with the jar as the module io.byway", done.stdout)
    for major, program in found.items():
        checked(report, program, major)
    if max(found, default=0) < 21:
        report.skip("virtual threads", "no JVM of 21 or later")


def contents(report, jar):
    """What each of the three jars brings."""
    names = {}
    for kind in ("", "-sources", "-javadoc"):
        with zipfile.ZipFile(jar.with_name(f"{jar.stem}{kind}.jar")) as opened:
            names[kind] = set(opened.namelist())
            if not kind:
                manifest = opened.read("META-INF/MANIFEST.MF").decode()
    report.ok("Automatic-Module-Name: io.byway\r\n" in manifest, "the jar names its module", manifest)
    natives = {name for name in names[""] if name.endswith(".so")}
    report.ok(len(natives) == 1 and re.fullmatch(r"META-INF/native/linux-\w+(-musl)?/libbyway_jni\.so", *natives),
              "the jar has one library, in its place", str(natives))
    classes = {name[:-6] for name in names[""] if name.endswith(".class")}
    report.ok(classes and all(name.startswith("io/byway/") for name in classes) and
              not any("Test" in name or "/conform/" in name for name in classes), "the jar has byway's classes alone",
              str(sorted(classes)))
    whole = {name.partition("$")[0] for name in classes if not name.endswith("package-info")}
    missing = sorted(name for name in whole if f"{name}.java" not in names["-sources"])
    report.ok(not missing and not any(name.endswith((".so", ".class")) for name in names["-sources"]),
              "every class has its source, and nothing else is there", str(missing))
    public = [path.relative_to(JAVA / "src/main/java").with_suffix("") for path in (JAVA / "src/main/java").rglob("*.java")
              if re.search(r"^public ", path.read_text(), re.M)]
    missing = sorted(str(name) for name in public if f"io.byway/{name}.html" not in names["-javadoc"])
    report.ok(len(public) > 50 and not missing and "index.html" in names["-javadoc"], "every public class has its page",
              str(missing))


def estate(report):
    """With ZooKeeper and real Dubbo: the example, followed by every caller there is, and byway's choices side by side
    with those of Dubbo's own consumer; before it byway's router in Dubbo's own chain."""
    reports = JAVA / "dubbo" / "target" / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    done = maven(report, "byway's router in a Dubbo consumer", "-f", "all.xml", "package", "-Dtest=io/byway/dubbo/*",
                 "-Dsurefire.failIfNoSpecifiedTests=false", "-Dmaven.javadoc.skip=true",
                 "-Dmaven.test.failure.ignore=true")
    if done is not None:
        junit(report, done, "Dubbo", reports)
    for program in ("examples/dubbo/run.py", "tests/dubbo"):
        done = run([sys.executable, str(ROOT / program)], timeout=900,
                   env={"BYWAY_LIBRARY": str(prefix() / "lib" / "libbyway.a")})
        for what, why in re.findall(r"^skipped: ([^:]*): (.*)$", done.stdout, re.M):
            report.skip(what, why)
        lines = done.stdout.splitlines()
        for at, line in enumerate(lines):
            if line.startswith("FAIL"):
                print(f"FAIL {report.name}: {line[4:].strip()}")
                print("\n".join(f"    {more}" for more in lines[at + 1:at + 40]))
        if not report.counted(done.stdout, r"^(\d+) passed, (\d+) failed()()$"):
            report.ok(False, f"{program} ends with its count", done.stdout)
