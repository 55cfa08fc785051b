#!/usr/bin/env python3
"""Checks that a fresh machine has what our files call and import: packages.py

Everything must come from a package of the sets in deploy/apt-packages that its file may count on
(SETS), from what these packages depend on, from Debian's essential packages, or from one of our
own scripts that fetch (FETCHED). Looked at:

  commands   in shell scripts and recipes of the Makefile, what stands where a command stands; in
             Python what subprocess is given; in C what system, popen and execlp are
  modules    what Python files import, and so do the files of FlagScale's package that
             tests/runtime runs; what `python3 -m` runs
  libraries  what the Makefile asks pkg-config for

Which package a program, module or library is of, dpkg says: the sets must be installed.
"""
import ast
import collections
import glob
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/runtime"))
import flagscale_package  # noqa: E402

# By the first that matches: what has been installed where a file is run.
SETS = [
    ("deploy/apt-packages", ()),
    ("deploy/(image|Dockerfile)", ("build",)),
    ("tests/(lint|fuzz)/|Makefile|.ci/", ("build", "test", "lint")),
    ("", ("build", "test")),
]
# What our own scripts install, or find where it is.
FETCHED = {
    "torch": "tests/runtime/fetch-torch",
    "go": "tests/e2e/go-programs",
    "kubectl": "tests/e2e/fetch-control-plane",
    "etcd": "tests/e2e/fetch-control-plane",
    "kube-apiserver": "tests/e2e/fetch-control-plane",
    "kube-controller-manager": "tests/e2e/fetch-control-plane",
    "kube-scheduler": "tests/e2e/fetch-control-plane",
    "helm": "tests/e2e/fetch-helm",
}
# Calls that cannot be seen to be calls: they must stand in the file, and are checked as all others.
UNSEEN = {
    "tests/e2e/dashboard": ["chromium"],
    "tests/bench/run": ["git"],
}
# What a file does without where it is not there.
OPTIONAL = {
    ("deploy/apt-packages", "sudo"): "only for those who are not root",
    ("tests/runtime/fetch-torch", "sudo"): "only for those who are not root",
}
# A module that needs another to be of use.
ALSO_NEEDS = {"venv": "ensurepip"}

KEYWORDS = {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"}
ENDS = {"fi", "done", "esac", "}"}
BUILTINS = set("""alias bg bind break builtin cd command compgen complete continue declare dirs disown echo enable eval
    exec exit export false fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read
    readarray readonly return set shift shopt source . : [ [[ ]] test times trap true type typeset ulimit umask unalias
    unset wait coproc function in""".split())
# What runs the command that follows, with those of its options that take a word, and words before the command.
WRAPPERS = {"exec": ((), 0), "command": (("-v",), 0), "nice": (("-n",), 0), "env": (("-u",), 0), "sudo": ((), 0),
            "xargs": (("-n", "-I", "-P"), 0), "timeout": (("--signal", "--kill-after"), 1),
            "setpriv": (("--pdeathsig", "--reuid", "--regid"), 0), "unshare": (("--propagation",), 0), "nohup": ((), 0)}

MAY_FAIL = {"ImportError", "ModuleNotFoundError", "Exception"}
STARTS = {"shutil.which", *("subprocess." + name for name in ("run", "Popen", "call", "check_call", "check_output"))}

complaints = []


def complain(where, what):
    complaints.append(f"{where}: {what}")


# ---- what Debian has ----


class Debian:
    """The packages of this machine: whose a file is, and what comes with what."""

    def __init__(self):
        self.owner, self.needs, self.providers, self.base = {}, {}, collections.defaultdict(set), {"apt"}
        for path in glob.glob("/var/lib/dpkg/info/*.list"):
            package = os.path.basename(path)[:-5].split(":")[0]
            with open(path, encoding="utf-8") as file:
                for line in file:
                    self.owner.setdefault(re.sub(r"^/(bin|sbin|lib)/", r"/usr/\1/", line.rstrip("\n")), package)
        form = "${Package}\t${Essential}\t${Priority}\t${Depends}, ${Pre-Depends}\t${Provides}\n"
        listing = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            name, essential, priority, needs, provides = line.split("\t")
            self.needs[name] = [re.findall(r"(?:^|\|)\s*([a-z0-9][a-z0-9+.-]+)", group)
                                for group in needs.split(",") if group.strip()]
            self.providers[name].add(name)
            for virtual in re.findall(r"(?:^|,)\s*([a-z0-9][a-z0-9+.-]+)", provides):
                self.providers[virtual].add(name)
            if essential == "yes" or priority == "required":
                self.base.add(name)

    def closure(self, packages):
        """These, what is essential, and what all of them depend on."""
        found, todo = set(), [*packages, *self.base]
        while todo:
            name = todo.pop()
            if name in found:
                continue
            found.add(name)
            for group in self.needs.get(name, ()):
                todo += [p for alternative in group for p in self.providers.get(alternative, ())]
        return found

    def of(self, path):
        return self.owner.get(re.sub(r"^/(bin|sbin|lib)/", r"/usr/\1/", path))

    def of_command(self, name):
        """The packages that have it: several, for alternatives."""
        for folder in ("/usr/bin", "/usr/sbin"):
            path = f"{folder}/{name}"
            if not os.path.exists(path):
                continue
            if self.of(path):
                return {self.of(path)}
            paths = subprocess.run(["update-alternatives", "--list", name], capture_output=True, text=True,
                                   check=False).stdout.split()
            return {self.of(os.path.realpath(p)) or self.of(p) for p in paths or [path]} - {None}
        return set()

    def of_module(self, name):
        for folder in ("/usr/lib/python3/dist-packages", *glob.glob("/usr/lib/python3.*[0-9]")):
            for path in (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py", *glob.glob(f"{folder}/{name}.*.so"),
                         *glob.glob(f"{folder}/lib-dynload/{name}.*.so")):
                if self.of(path):
                    return self.of(path)
        return None

    def of_library(self, name):
        folder = subprocess.run(["pkg-config", "--variable=pcfiledir", name], capture_output=True, text=True,
                                check=False).stdout.strip()
        return self.of(f"{folder}/{name}.pc")


# ---- shell ----


class Shell:
    """The simple commands of a shell script as (line, words), a word that is not plain as None; its
    functions; here-documents as (line, terminator, text)."""

    def __init__(self, text):
        self.text, self.at, self.pending = text, 0, []
        self.commands, self.functions, self.documents = [], set(), []
        self.list_of_commands("")

    def line(self):
        return self.text.count("\n", 0, self.at) + 1

    def peek(self, count=1):
        return self.text[self.at:self.at + count]

    def list_of_commands(self, end):
        """Up to the character `end`, which is passed."""
        words, begun, cases = [], 0, []
        while self.at < len(self.text):
            char = self.peek()
            if char and char == end and not (cases and cases[-1] == "pattern"):
                self.at += 1
                break
            if cases and cases[-1] == "pattern":
                self.skip_blank()
                if re.match(r"esac\b", self.text[self.at:]):
                    self.at += 4
                    cases.pop()
                else:
                    self.pattern()
                    cases[-1] = "body"
                continue
            if char in " \t" or self.peek(2) == "\\\n":
                self.at += 2 if char == "\\" else 1
            elif char == "#":
                self.at = self.find("\n")
            elif char in "\n;&|(){}" and not (char == "{" and self.peek(2) != "{ " and self.peek(2) != "{\n"):
                if char == "(" and words and len(words) == 1 and self.peek(2) == "()":
                    self.functions.add(words.pop())
                    self.at += 2
                    continue
                self.done(begun, words)
                words = []
                if self.peek(2) == ";;":
                    self.at += 1
                    if cases:
                        cases[-1] = "pattern"
                if self.peek(2) == "((":
                    self.at = self.find("))") + 1
                self.at += 1
                if char == "\n":
                    self.here_documents()
            elif char in "<>" or re.match(r"\d+[<>]", self.text[self.at:]):
                self.redirection()
            else:
                begun = begun if words else self.line()
                word = self.word()
                if not words and word in KEYWORDS:
                    continue
                if not words and word in ENDS:
                    if word == "esac" and cases:
                        cases.pop()
                    continue
                if not words and isinstance(word, str) and re.match(r"[A-Za-z_]\w*\+?=", word):
                    continue
                if not words and word == "=":  # an assignment with more than plain text
                    continue
                if word == "[[" and not words:
                    self.until_word("]]")
                    continue
                if word == "in" and words and words[0] == "case":
                    cases.append("pattern")
                    words = []
                    continue
                words.append(word)
        self.done(begun, words)

    def find(self, what):
        found = self.text.find(what, self.at)
        return len(self.text) if found < 0 else found

    def skip_blank(self):
        while self.at < len(self.text):
            if self.peek() == "#":
                self.at = self.find("\n")
            elif self.peek() in " \t\n":
                self.at += 1
            else:
                break

    def pattern(self):
        if self.peek() == "(":
            self.at += 1
        while self.at < len(self.text) and self.peek() != ")":
            if self.peek() in " \t|\n":
                self.at += 1
            else:
                self.word()
        self.at += 1

    def until_word(self, end):
        while self.at < len(self.text):
            if self.peek() in " \t\n&|()<>;":
                self.at += 1
            elif self.word() == end:
                break

    def done(self, line, words):
        if words and words[0] not in ("for", "select", "case"):
            self.commands.append((line, words))

    def redirection(self):
        operator = re.match(r"\d*(<<<|<<-?|<\(|>\(|>>|[<>]&|<>|>\||[<>])", self.text[self.at:])[0]
        self.at += len(operator)
        if operator.endswith("("):
            self.list_of_commands(")")
            return
        while self.peek() in (" ", "\t"):
            self.at += 1
        if self.peek(2) in ("<(", ">("):
            self.at += 2
            self.list_of_commands(")")
            return
        word = self.word()
        if operator.rstrip("-").endswith("<<") and isinstance(word, str):
            self.pending.append(word)

    def here_documents(self):
        for end in self.pending:
            begun, lines = self.line(), []
            while self.at < len(self.text):
                stop = self.find("\n")
                line = self.text[self.at:stop]
                self.at = stop + 1
                if line.strip() == end:
                    break
                lines.append(line)
            self.documents.append((begun, end, "\n".join(lines)))
        self.pending = []

    def word(self):
        """The next word; None unless it is plain text. An assignment of anything is "="."""
        text, is_plain, begun = "", True, self.at
        while self.at < len(self.text):
            char = self.peek()
            if char == "\\":
                text += self.text[self.at + 1:self.at + 2]
                self.at += 2
            elif char == "'":
                end = self.text.index("'", self.at + 1)
                text += self.text[self.at + 1:end]
                self.at = end + 1
            elif char == '"':
                self.at += 1
                while self.peek() not in ('"', ""):
                    if self.peek() == "\\":
                        text += self.text[self.at + 1:self.at + 2]
                        self.at += 2
                    elif self.peek() in "$`":
                        is_plain &= self.expansion()
                    else:
                        text += self.peek()
                        self.at += 1
                self.at += 1
            elif char in "$`":
                is_plain &= self.expansion()
            elif char == "(" and re.fullmatch(r"[A-Za-z_]\w*\+?=", text):
                self.at += 1
                self.array()
                return "="
            elif char in " \t\n;&|()<>":
                break
            else:
                text += char
                self.at += 1
        if self.at == begun:
            self.at += 1
        if not is_plain and re.match(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", self.text[begun:self.at]):
            return "="
        return text if is_plain else None

    def array(self):
        """Its words are a command, more often than not, but for options."""
        line, words = self.line(), []
        while self.peek() not in (")", ""):
            if self.peek() in " \t\n":
                self.at += 1
            elif self.peek() == "#":
                self.at = self.find("\n")
            else:
                words.append(self.word())
        self.at += 1
        if words and isinstance(words[0], str) and re.fullmatch(r"(apt-get|make|nice|sudo|tar|python3)", words[0]):
            self.commands.append((line, words))

    def expansion(self):
        """What begins with $ or `: commands in it are taken."""
        if self.peek() == "`":
            self.at += 1
            self.list_of_commands("`")
        elif self.peek(3) == "$((":
            depth, self.at = 2, self.at + 3
            while depth and self.at < len(self.text):
                depth += {"(": 1, ")": -1}.get(self.peek(), 0)
                self.at += 1
        elif self.peek(2) == "$(":
            self.at += 2
            self.list_of_commands(")")
        elif self.peek(2) == "${":
            self.at += 2
            while self.peek() not in ("}", ""):
                if self.peek(2) in ("$(", "${"):
                    self.expansion()
                else:
                    self.at += 2 if self.peek() == "\\" else 1
            self.at += 1
        else:
            self.at += len(re.match(r"\$(\w+|.)?", self.text[self.at:], re.S)[0])
        return False


def unwrapped(words):
    """The commands of a simple command: `nice make x` are two."""
    while words:
        name = words[0]
        if name is None or not re.fullmatch(r"[A-Za-z0-9_.+-]+", name):
            if isinstance(name, str) and name.startswith(("/usr/bin/", "/bin/")):
                yield os.path.basename(name), words[1:]
            return
        yield name, words[1:]
        if name not in WRAPPERS:
            return
        options, positional = WRAPPERS[name]
        rest = collections.deque(words[1:])
        while rest and (rest[0] is None or rest[0].startswith("-") or "=" in rest[0]):
            if rest[0] is None:
                return
            if rest.popleft() in options and rest and name != "command":
                rest.popleft()
        words = list(rest)[positional:]


def recipes(text):
    """The Makefile's recipes and $(shell ...) as a script of as many lines."""
    lines = []
    for line in text.split("\n"):
        shell = " ; ".join(re.findall(r"\$\(shell ([^()]*)\)", line))
        body = re.sub(r"^\t[@+-]*", "", line) if line.startswith("\t") else ""
        while re.search(r"(?<!\$)\$\([^()]*\)", body):
            body = re.sub(r"(?<!\$)\$\([^()]*\)", "$MAKE_VARIABLE", body)
        lines.append(body.replace("$$", "$") if body else shell)
    return "\n".join(lines)


# ---- Python and C ----


def imports(tree, top_level_only=False):
    """(line, module) of what is imported, but for what may fail to be."""
    allowed = {node for statement in ast.walk(tree) if isinstance(statement, ast.Try)
               and any(h.type is None or ast.unparse(h.type) in MAY_FAIL for h in statement.handlers)
               for node in ast.walk(statement)}
    for node in tree.body if top_level_only else ast.walk(tree):
        if node in allowed:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module.split(".")[0]


def processes(tree):
    """(line, words) of the processes that are started."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in STARTS:
            first = node.args[0]
            elements = first.elts if isinstance(first, ast.List) else [first]
            words = [e.value if isinstance(e, ast.Constant) and isinstance(e.value, str) else None for e in elements]
            if words and words[0]:
                yield node.lineno, words


def processes_of_c(text):
    for match in re.finditer(r'\b(?:system|popen|execlp|execvp)\("([^"]+)"', text):
        yield text.count("\n", 0, match.start()) + 1, match[1].split()


# ---- all of it ----


class Checker:
    def __init__(self):
        self.debian = Debian()
        self.sets = {}
        self.functions = set()
        listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
        self.files = {name: self.read(name) for name in listing.stdout.split("\n") if name}
        self.own_modules = {pathlib.Path(name).stem for name in self.files if name.endswith(".py")} | \
            {pathlib.Path(name).parent.name for name in self.files if name.endswith("__init__.py")}

    @staticmethod
    def read(name):
        path = ROOT / name
        return path.read_text(errors="replace") if path.is_file() and path.stat().st_size < 1 << 20 else ""

    def closure(self, name):
        sets = next(sets for pattern, sets in SETS if re.match(pattern, name))
        if sets not in self.sets:
            packages = subprocess.run([ROOT / "deploy/apt-packages", "--print", *sets], capture_output=True,
                                      text=True, check=True).stdout.split()
            for package in packages:
                if package not in self.debian.needs:
                    sys.exit(f"packages.py: {package} is not installed: deploy/apt-packages {' '.join(sets)}")
            self.sets[sets] = self.debian.closure(packages)
        return self.sets[sets], " and ".join(sets) or "an empty system"

    def check(self, name, line, thing, packages, where=None):
        """That one of the packages is there where the file, or the one that stands for it, is used."""
        if thing in FETCHED or (name, thing) in OPTIONAL:
            return
        there, sets = self.closure(name)
        where = where or f"{name}:{line}"
        if not packages:
            complain(where, f"no package of Debian has {thing}: in FETCHED of tests/lint/packages.py stands what "
                     "our own scripts provide")
        elif not packages & there:
            complain(where, f"needs {thing}, of package {' or '.join(sorted(packages))}, which is in no set of "
                     f"deploy/apt-packages that it may count on ({sets})")

    def check_module(self, name, line, module):
        if module in self.own_modules or module in sys.builtin_module_names or module == "__future__":
            return
        package = self.debian.of_module(module)
        if not package and module in sys.stdlib_module_names:
            return
        self.check(name, line, f"module {module}" if module not in FETCHED else module, {package} - {None})
        if module in ALSO_NEEDS:
            self.check_module(name, line, ALSO_NEEDS[module])

    def check_words(self, name, line, words):
        for command, rest in unwrapped(words):
            if command in BUILTINS or command in self.functions:
                continue
            self.check(name, line, command, self.debian.of_command(command))
            if command == "python3" and rest[:1] == ["-m"] and len(rest) > 1 and rest[1]:
                self.check_module(name, line, rest[1].split(".")[0])

    def check_shell(self, name, shell):
        for line, words in shell.commands:
            self.check_words(name, line, words)
        for line, end, text in shell.documents:
            if end == "PYTHON":
                for number, module in imports(ast.parse(text)):
                    self.check_module(name, line + number - 1, module)

    def check_python(self, name, text):
        tree = ast.parse(text)
        for line, module in imports(tree):
            self.check_module(name, line, module)
            if module == "venv":
                self.check_module(name, line, "ensurepip")
        for line, words in processes(tree):
            self.check_words(name, line, words)

    def check_libraries(self, text):
        for number, line in enumerate(text.split("\n"), 1):
            found = re.match(r"PKGS\s*:=(.*)", line)
            for names in [found[1]] if found else re.findall(r"pkg-config --\w+ ([a-z0-9. -]+)\)", line):
                for library in names.split():
                    package = self.debian.of_library(library)
                    # The tests' own is in a set of theirs.
                    self.check("tests/main.c" if library == "check" else "deploy/image", number, f"library {library}",
                               {package} - {None}, f"Makefile:{number}")

    def check_parsers(self):
        """What the files of FlagScale's package import as they are loaded."""
        for path in sorted(pathlib.Path(flagscale_package.folder()).rglob("*.py")):
            for line, module in imports(ast.parse(path.read_text()), top_level_only=True):
                if module not in ("megatron", "flagscale"):
                    self.check_module("tests/runtime/test_arguments.py", f" {path.name}:{line}", module)

    def run(self):
        shells = {name: Shell(text) for name, text in self.files.items() if re.match(r"#!.*\b(ba)?sh\b", text)}
        shells["tests/e2e/go-programs"] = Shell(self.files["tests/e2e/go-programs"])
        shells["Makefile"] = Shell(recipes(self.files["Makefile"]))
        self.functions = set().union(*(shell.functions for shell in shells.values()))
        for name, shell in shells.items():
            self.check_shell(name, shell)
        for name, text in self.files.items():
            if name.endswith(".py") or re.match(r"#!.*\bpython3\b", text):
                self.check_python(name, text)
            elif name.endswith(".c"):
                for line, words in processes_of_c(text):
                    self.check_words(name, line, words)
        for name, commands in UNSEEN.items():
            for command in commands:
                if command not in self.files.get(name, ""):
                    complain("tests/lint/packages.py", f"{name} does not name {command}")
                self.check_words(name, 1, [command])
        for thing, script in FETCHED.items():
            if not (ROOT / script).exists():
                complain("tests/lint/packages.py", f"{thing} comes from {script}, which is not there")
        self.check_libraries(self.files["Makefile"])
        self.check_parsers()
        if "-v" in sys.argv:
            seen = {command for shell in shells.values() for _, words in shell.commands
                    for command, _ in unwrapped(words)}
            print("commands:", " ".join(sorted(seen - BUILTINS - self.functions)))


def main():
    Checker().run()
    for complaint in sorted(set(complaints)):
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
