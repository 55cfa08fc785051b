#!/usr/bin/env python3
"""Checks that what the documentation says exists: docs.py [--fix] [BUILD]

BUILD is the folder with our programs (default: build). Every complaint
goes to standard error; exit 1 if there is one. With --fix the examples are first made to show
what they print, but for those with `...`. Checked, in every *.md file:

  links      relative links lead to a file, and to a heading where they name one
  paths      `planner/cost/cost.h` and the like are files or folders of this repository
  constants  `HET_MAX_NODES` and the like occur in the sources
  make       `make TARGET`: the Makefile has the target
  options    `--option` in code: the --help of our programs, or of the command, has it, or
             planner/render writes it for a training runtime, or the training program has it
  claims     each row of README.md's tables says of this project where it is told, by a heading
             of a page or a file, or names a command, option, field or value of the chart
  anchors    each row of the tables of ANCHORED pages leads somewhere: by a link, or by a name in
             code, in its first cell or in `<!-- anchor: NAME -->`, that occurs in the sources or
             tests; and all names in code occur there, but for NAMES_OF_OTHERS. Tables of
             figures and of what papers say are left out by their headings (UNANCHORED)
  commands   every command is run by a test: it stands under `<!-- check: run -->`, a script of
             tests/e2e says `as_documented PAGE 'BEGINNING'`, it is one of `make`'s, or it is
             among NOT_RUN_HERE with what runs it or why nothing can; a command of ours that
             needs no cluster is run here, and must succeed
  examples   a console block under `<!-- check: run -->` prints what it shows; under
             `<!-- check: run | FILTER -->` what is left of it by that shell command

and of the sources:

  options    docs/operations.md names every option of heterotrain-controller
  reasons    docs/api.md or docs/operations.md names every condition reason, event reason and
             trigger that controller/ can write
"""
import os
import pathlib
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARGUMENTS = [argument for argument in sys.argv[1:] if argument != "--fix"]
FIX = "--fix" in sys.argv
BUILD = pathlib.Path(ARGUMENTS[0] if ARGUMENTS else "build")
PROGRAMS = ("hetplan", "heterotrain-controller", "heterotrain-simulate", "kubectl-htj")
REASON = r'"([A-Z][a-z]+(?:[A-Z]+[a-z]*)*|[A-Z]+[a-z]+)"'
# Where reasons, triggers and the like are written, and how to find them there.
REASONS = {
    "controller/decision/*.c": REASON,
    "controller/placement/*.c": REASON,
    "controller/reconcile/*.c": REASON,
    "controller/job/job_spec.c": r'refuse\([^,]*,\s*"(\w+)"',
    "controller/cluster/capacity.c": r'(?:return|arena,) "([A-Z]\w+)',
    "controller/cluster/node_state.c": r'unusable = "(\w+)"',
    "planner/format/kubernetes_node.c": r'(?:return|\?) "([A-Z]\w+)"',
}
VALUES = {"snapshot", "children", "status", "decision", "other_jobs", "replan_rule"}  # of reconcile: they decide nothing
NOT_REASONS = {  # values of conditions, kinds of objects, types and actions of events
    "True", "False", "Unknown", "Normal", "Warning", "ConfigMap", "Event", "Plan", "ModelProfile",
    "ClusterModelProfile", "HeteroTrainingJob", "PodScheduled", "CheckpointRequest", "Checkpoint", "Place",
}

ANCHORED = ("docs/api.md", "docs/operations.md", "docs/planner.md", "docs/testing.md")
UNANCHORED = {  # headings of docs/planner.md
    "Notation", "Estimated profiles", "Memory", "metis", "oomfirst", "amp", "ditto", "autohet", "optimal",
    "What released planners do, and what this one does", "Runtimes", "Figures",
}
NAMES_OF_OTHERS = {
    "ClusterQueueStopped": "Kueue's reasons for ending pods",
    "fb_sync": "of profiles of the published Metis",
}

# The tools whose commands are looked for, and those commands that no test reads from its page.
TOOLS = ("build/", "deploy/", "tests/", "kubectl", "helm", "docker", "skopeo", "ctr", "hetplan",
         "heterotrain-controller", "heterotrain-simulate", "torchrun", "pip", "python3", "source")
NOT_RUN_HERE = {
    r"deploy/apt-packages build$": "`make packages` runs it",
    r"(docker|ctr|skopeo) ": "needs a container engine or a registry",
    r"kubectl .* port-forward ": "needs a kubelet that forwards connections",
    r"(source <\()?kubectl[ -]htj ": "all of docs/kubectl.md: case_kubectl_htj_does_what_its_page_shows",
    r"pip install (--no-deps )?\./deploy/runtime$": "install_runtime of tests/e2e/training",
    r"torchrun -m heterotrain\.train ": "tests/e2e/training, with a smaller model",
    r"kubectl logs -l heterotrain": "needs a kubelet that gives logs out",
    r"((IN_IMAGE|KEEP|KUBERNETES)=\w+ )?tests/(e2e|fresh)/(run|chart|training)\b": "these are the tests themselves",
    r"build/hetplan profile from-megatron-timers ": "needs logs of runs: tests/planner/format/profile/test_profile_timers.c makes some",
    r"tests/bench/run --tables ": "writes the tables anew",
    r"kubectl .*(link-probe|links.json)": "tests/runtime/test_link_probe.py, for want of GPUs",
    r"kubectl .*(llama-8b|deploy/profiler/)": "tests/runtime/test_profile_job.py, for want of GPUs",
    r"python3 -m heterotrain\.profile ": "tests/runtime/test_profile_job.py",
    r"kubectl (apply -f deploy/rbac-profiler|get jobs -l app|get htj NAME -o jsonpath=.*ProfilesReady)":
        "tests/e2e/run installs these rights, and case_gpu_types_are_measured_on_demand asks the same",
}

complaints = []


def complain(where, what):
    complaints.append(f"{where}: {what}")


def git_files(*patterns):
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                              *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listing.stdout.split("\n") if name]


# ---- what a document holds ----

FENCE = re.compile(r"^(```+)(\S*)\s*$")


class Document:
    """Lines of prose, spans of code and blocks of code of one file, with line numbers."""

    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(ROOT)
        self.prose, self.spans, self.blocks = [], [], []
        self.read(path.read_text().split("\n"))

    def read(self, lines):
        i = 0
        before = ""
        while i < len(lines):
            fence = FENCE.match(lines[i])
            if fence:
                end = i + 1
                while end < len(lines) and not lines[end].startswith(fence[1]):
                    end += 1
                self.blocks.append((i + 2, lines[i + 1:end], fence[2], before))
                before = ""
                i = end + 1
                continue
            if lines[i].startswith("    ") and (not before or before.startswith("    ")):
                self.blocks.append((i + 1, [lines[i][4:]], "", ""))
            else:
                self.prose.append((i + 1, lines[i]))
                self.spans += [(i + 1, s) for s in re.findall(r"`([^`]+)`", lines[i])]
            before = lines[i] if lines[i].strip() or before.startswith("<!--") else ""
            i += 1

    def where(self, line):
        return f"{self.name}:{line}"

    def code(self):
        """Every piece of code as (line, text), continuation lines joined."""
        yield from self.spans
        for first, lines, _, _ in self.blocks:
            start, text = first, ""
            for number, line in enumerate(lines, first):
                if not text:
                    start = number
                if line.endswith("\\"):
                    text += line[:-1] + " "
                    continue
                yield start, text + line
                text = ""


def slug(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(path):
    found = set()
    for _, line in Document(path).prose:
        match = re.match(r"#+ (.*)", line)
        if match:
            found.add(slug(match[1]))
    return found


# ---- the checks ----


def check_links(document):
    for line, text in document.prose:
        text = re.sub(r"`[^`]*`", "", text)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (document.path.parent / file).resolve() if file else document.path
            if not path.exists():
                complain(document.where(line), f"no such file: {target}")
            elif anchor and anchor not in headings(path):
                complain(document.where(line), f"no such heading: {target}")


def check_paths(document):
    for line, span in document.spans:
        match = re.fullmatch(r"\.?/?((?:planner|controller|crds|deploy|docs|tests|\.ci)/[\w./-]*)",
                             span)
        if match and not (ROOT / match[1]).exists():
            complain(document.where(line), f"no such file: {span}")


def check_constants(document, sources):
    for line, span in document.spans:
        if re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", span) and span not in sources:
            complain(document.where(line), f"not in the sources: {span}")


def check_make(document, targets):
    for line, text in document.code():
        for words in re.findall(r"(?:^|[\s;&|])make((?: +[\w./=\"'-]+)+)", text):
            for word in re.sub(r"[A-Z_]+=(\"[^\"]*\"|'[^']*'|\S*)", "", words).split():
                if not word.startswith(("-", '"', "'", "build/")) and word not in targets:
                    complain(document.where(line), f"no such target: make {word}")


def help_of(*command):
    result = subprocess.run([ROOT / BUILD / command[0], *command[1:], "--help"],
                            capture_output=True, text=True)
    return result.stdout + result.stderr


class Options:
    """The options that the --help of each command names."""

    def __init__(self):
        self.known = {}
        for program in PROGRAMS:
            text = help_of(program)
            self.known[program,] = found = set(re.findall(r"--[a-z][a-z0-9-]*", text))
            commands = re.findall(rf"^ {{2,4}}([a-z]+(?: [a-z-]+)?) {{2,}}|{program} ([a-z]+) ", text, re.M)
            for name in {listed or used for listed, used in commands}:
                self.known[program, name] = set(re.findall(r"--[a-z][a-z0-9-]*",
                                                           help_of(program, *name.split()))) | found

    def of(self, program, command=None):
        """Those of a command; of a whole program where no command is named."""
        if (program, command) in self.known:
            return self.known[program, command]
        return set().union(*(found for key, found in self.known.items() if key[0] == program))

    def any(self):
        named = [*(ROOT / "planner" / "render").rglob("*.c"), *(ROOT / "deploy/runtime").rglob("*.py")]
        others = re.findall(r'"(--[a-z][a-z0-9_-]*)"', "".join(f.read_text() for f in named))
        return set(others).union(*self.known.values())


def check_options(document, options):
    for line, text in document.code():
        text = re.sub(r"<!--.*?-->", "", text)
        used = re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]*", text)
        text = re.sub(r"\bkubectl htj\b", "kubectl-htj", text)  # as kubectl runs it
        ours = re.search(r"(?:^|[\s/$])(hetplan|heterotrain-controller|heterotrain-simulate|kubectl-htj)(?: +((?:profile )?[a-z][a-z-]*))?(?=\s|$)", text)
        if ours:
            known = options.of(ours[1], ours[2])
            if re.match(r"\s*kubectl ", text):  # an object of that name
                continue
        elif text.startswith("--"):
            known = options.any()
        else:
            continue
        for option in used:
            is_family = option.endswith("-") and any(o.startswith(option) for o in known)
            if option not in known | {"--help"} and not is_family:
                complain(document.where(line), f"no such option: {option} ({text.strip()})")


def properties(schema, path):
    """The paths of all fields of a schema: spec.suspend, spec.resources.gpuTypes[].name."""
    if schema.get("type") == "array":
        yield from properties(schema["items"], path + "[]")
    for name, field in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield below
        yield from properties(field, below)


def values_of_chart(values, path=""):
    for name, value in values.items():
        yield path + name
        if isinstance(value, dict):
            yield from values_of_chart(value, f"{path}{name}.")


def known_names(options):
    """What a row may name: commands, options, fields of our objects, values of the chart."""
    names = {" ".join(key) for key in options.known if len(key) == 2} | options.any()
    for path in git_files("crds/*.yaml"):
        for version in yaml.safe_load(path.read_text())["spec"]["versions"]:
            names.update(properties(version["schema"]["openAPIV3Schema"], ""))
    names.update(values_of_chart(yaml.safe_load((ROOT / "helm/heterotrain/values.yaml").read_text())))
    return names


def rows(document):
    """The rows below the heads of all tables, with their lines, as lists of cells."""
    is_below = False
    for line, text in document.prose:
        if re.match(r"\|[-:| ]+\|$", text):
            is_below = True
        elif not text.startswith("|"):
            is_below = False
        elif is_below:
            yield line, [cell.strip() for cell in text.strip("|").split("|")]


def check_claims(document, names):
    """In a row about a command or a page the first cell is it, else the second is about us.
    That links lead to something is checked with all others."""
    for line, cells in rows(document):
        is_of_it = re.search(r"`|\]\(", cells[0])
        ours = cells[0] if is_of_it else cells[1]
        named = re.findall(r"`([^`]+)`", re.sub(r"\[[^\]]*\]\([^)]*\)", "", ours))
        told = re.findall(r"\]\(([^)\s]+)\)", ours)
        for name in sorted(set(named) - names):
            complain(document.where(line), f"no command, option, field or value of the chart: {name}")
        if not named and not told:
            complain(document.where(line), f"says nowhere where this is told: {cells[0]}")
        for target in told:
            if target.endswith(".md") and not is_of_it:
                complain(document.where(line), f"leads to no heading: {target}")


def words_of_sources():
    """All words of what is not documentation, nor data."""
    words = set()
    for path in git_files("*"):
        name = str(path.relative_to(ROOT))
        if path.suffix == ".md" or name.startswith(("tests/data/", "tests/golden/")) or not path.is_file():
            continue
        words.update(re.findall(r"\w+", path.read_text(errors="replace")))
    return words


def check_anchors(document, words):
    """What a row says is looked for by nobody; that what it speaks of is there, is checked."""
    headings = [(line, text.lstrip("# ")) for line, text in document.prose if text.startswith("#")]
    for line, cells in rows(document):
        heading = [text for first, text in headings if first < line][-1:]
        row = "|".join(cells)
        named = [word for span in re.findall(r"`([^`]+)`", row) for word in re.findall(r"[A-Za-z_]\w*", span)]
        for word in sorted(set(named) - words - set(NAMES_OF_OTHERS)):
            if len(word) > 2:  # else a letter of a format
                complain(document.where(line), f"neither sources nor tests have {word}")
        anchors = re.findall(r"<!-- anchor: (\S+) -->", row)
        for anchor in sorted(set(anchors) - words):
            complain(document.where(line), f"leads to nothing: {anchor}")
        plain = re.findall(r"^[A-Z]\w*$", cells[0])
        if not (named or anchors or re.search(r"\]\(", row) or set(plain) & words or set(heading) & UNANCHORED):
            complain(document.where(line), f"no link, no name and no anchor: {cells[0]}")


def check_controller_options(options):
    text = (ROOT / "docs/operations.md").read_text()
    for option in sorted(options.known["heterotrain-controller",] - {"--help"}):
        if option not in text:
            complain("docs/operations.md", f"does not name heterotrain-controller {option}")


def reasons_of(path, pattern):
    """Every reason in a source, with its line."""
    text = path.read_text()
    for match in re.finditer(pattern, text, re.S):
        words = [match[1]] if match[1] else re.findall(r'return "([A-Z]\w+)"', match[0])
        line = text.count("\n", 0, match.start()) + 1
        yield from ((line, word) for word in words if word not in NOT_REASONS)


def check_reasons():
    text = (ROOT / "docs/api.md").read_text() + (ROOT / "docs/operations.md").read_text()
    for name, pattern in REASONS.items():
        paths = sorted(path for path in ROOT.glob(name) if path.stem not in VALUES)
        if not paths:
            complain("tests/lint/docs.py", f"no such source: {name}")
        for path in paths:
            for line, word in reasons_of(path, pattern):
                if f"`{word}`" not in text:
                    complain(f"{path.relative_to(ROOT)}:{line}",
                             f"neither docs/api.md nor docs/operations.md has {word}")


def documented():
    """What scripts of tests/e2e run: (page, beginning of a command)."""
    for path in git_files("tests/e2e/*"):
        for page, beginning in re.findall(r"as_documented\w*(?: \d+| \"[^\"]*\" \w+)? (\S+\.md) '([^']+)'",
                                          path.read_text(errors="replace")):
            yield page, beginning


def commands(document):
    """The commands that a page shows and does not have run already, with their lines."""
    shown = [(number, line) for first, lines, language, before in document.blocks
             if language in ("", "console", "sh") and "check: run" not in before
             for number, line in enumerate(lines, first)]
    text, start = "", 0
    for number, line in shown:
        start = start if text else number
        text += line.removesuffix("\\")
        if not line.endswith("\\"):
            yield start, re.sub(r" {2,}", " ", re.sub(r" {2,}#.*", "", text.removeprefix("$ ")))
            text = ""


def commands_run_by_tests(documents):
    """Those of all pages; a command that stands on several is run from one."""
    found = set()
    for page, beginning in documented():
        shown = [command for document in documents if str(document.name) == page
                 for _, command in commands(document) if command.startswith(beginning)]
        if not shown:
            complain("tests/e2e", f"{page} has no command that begins with '{beginning}'")
        found.update([beginning] if beginning in shown else shown)
    return found


def check_commands(document, run_by_tests):
    for line, command in commands(document):
        if not re.sub(r"^(?:[A-Z_]+=\S+ )+", "", command).startswith(TOOLS) or command in run_by_tests \
                or any(re.match(pattern, command) for pattern in NOT_RUN_HERE):
            continue
        if not command.startswith(("build/hetplan ", "tests/")):
            complain(document.where(line), f"no test runs this command: {command}")
            continue
        status, printed = run_for_status(command)
        if status:
            complain(document.where(line), f"ends with {status}: {command}\n    " + "\n    ".join(printed[-3:]))


def matches(shown, printed):
    """Whether the printed lines are those shown, where a line `...` stands for any lines."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()) + "\n"
                      for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def run_for_status(command):
    """The exit status of a command and the lines that it prints, on a terminal of 100 columns."""
    command = re.sub(r"^make ", f"make B={BUILD} ",
                     re.sub(r"(?<![\w/])build/", f"{BUILD}/", command))
    environment = dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="100",
                       HETPLAN=str((ROOT / BUILD / "hetplan").resolve()))
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # ours may be run by a make
        environment.pop(name, None)
    result = subprocess.run(["bash", "-c", command], cwd=ROOT, text=True, env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=1800, check=False)
    printed = result.stdout.replace(f"{BUILD}/", "build/").rstrip("\n")
    return result.returncode, [line.rstrip() for line in printed.split("\n")] if printed else []


def run(command):
    return run_for_status(command)[1]


def examples(lines):
    """The commands of a console block: each with its line, its own lines, and those shown."""
    number = 0
    while number < len(lines):
        first = number
        while lines[number].endswith("\\"):
            number += 1
        number += 1
        end = number
        while end < len(lines) and not lines[end].startswith("$ "):
            end += 1
        yield first, lines[first:number], lines[number:end]
        number = end


def check_examples(document):
    fixed = document.path.read_text().split("\n")
    for first, lines, _, before in reversed(document.blocks):
        mark = re.match(r"<!-- check: run( \|.*)? -->", before)
        if not mark:
            continue
        for start, command, shown in reversed(list(examples(lines))):
            printed = run("\n".join(command).removeprefix("$ ") + (mark[1] or ""))
            if matches(shown, printed):
                continue
            if FIX and "..." not in shown:
                at = first - 1 + start + len(command)
                fixed[at:at + len(shown)] = printed
            else:
                complain(document.where(first + start), "prints something else:\n"
                         + "\n".join("    " + text for text in printed))
    if FIX:
        document.path.write_text("\n".join(fixed))


def main():
    os.chdir(ROOT)
    documents = [Document(path) for path in git_files("*.md")]
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.M))
    sources = "".join(path.read_text() for path in git_files("*.c", "*.h", "*.py", "Makefile", "tests/**"))
    sources += (ROOT / "docs/api.md").read_text()
    for program in PROGRAMS:
        if not (ROOT / BUILD / program).exists():
            sys.exit(f"docs.py: {BUILD / program} is missing: make")
    options = Options()
    run_by_tests = commands_run_by_tests(documents)
    for document in documents:
        check_links(document)
        check_paths(document)
        check_constants(document, sources)
        check_make(document, targets)
        check_options(document, options)
        check_commands(document, run_by_tests)
        check_examples(document)
    for document in documents:
        if str(document.name) == "README.md":
            check_claims(document, known_names(options))
        if str(document.name) in ANCHORED:
            check_anchors(document, words_of_sources())
    check_controller_options(options)
    check_reasons()
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
