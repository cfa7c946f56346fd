"""What the scripts call: commands in shell scripts and the Makefile, in Python's and TypeScript's calls, in presets; libraries that tests preload."""
import ast
import os
import re
import subprocess

from packages.listed import Need, refuse
from packages.system import command_path

# What belongs to `make build` and `make demo`, and to `make bare`; everything else is only called by the tests.
SECTION_OF = {"Makefile": "build", "tools/setup.sh": "build", "tools/progress.sh": "build", "tools/demo.sh": "build",
              "tools/wheel_backend.py": "build", "tools/bare.sh": "presubmit"}
# Who starts make has make; sudo is only used where there is one.
GIVEN = {"make", "sudo"}
KEYWORDS = {"if", "then", "else", "elif", "do", "while", "until", "!", "exec", "env", "command", "time", "nohup", "{"}
BUILTINS = {"echo", "printf", "kill", "test", "true", "false", "pwd"}
# Not of this machine: the package runs on the user's, tools/offline_tf on one with a GPU and no network.
ELSEWHERE = ("python/vramscope/", "tools/offline_tf/")


def shell_commands(text):
    """The words of a shell script that stand where a command stands. Quotes are not understood: a word too many does no harm."""
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"(?m)(^|\s)#.*$", "", text)
    text = re.sub(r"tools/progress\.sh \"[^\"]*\"", ";", text)
    found = set()
    for part in re.split(r"[;|&`\n()]|\$\(|&&", text):
        words = part.replace("@", " ").split()
        while words and (words[0] in KEYWORDS or re.match(r"\"?\w+=", words[0]) or words[0].startswith("-")):
            words.pop(0)
        if words and re.fullmatch(r"[a-z][\w.+-]*", words[0]):
            found.add(words[0])
    found |= set(re.findall(r"(?:\?= |:-)([\w.+-]+)(?=\}|\n)", text))  # a default: PYTHON ?= python3, ${PYTHON:-python3}
    return found - BUILTINS


def started_commands(text):
    """Those that tools/progress.sh starts: commands for certain, even where this machine does not have them."""
    return set(re.findall(r"tools/progress\.sh \"[^\"]*\" ([a-z][\w.+-]*)", text))


def python_commands(text):
    """First words of command lines, constants that name a program, what shutil.which and os.exec are asked for, scripts behind sh -c."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        words = []
        if isinstance(node, ast.List):
            words = node.elts
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1 and str(getattr(node.elts[1], "value", "")).startswith("-"):
            words = node.elts
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            words = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("which", "execvp", "execv"):
            words = node.args[:1]
        texts = [word.value if isinstance(word, ast.Constant) and isinstance(word.value, str) else "" for word in words]
        if texts and re.fullmatch(r"[\w.+/-]+", texts[0]):
            found.add(texts[0])
        if len(texts) > 2 and texts[0] in ("sh", "bash") and texts[1].startswith("-"):
            found |= shell_commands(texts[2])
    return found


def commands(name, text):
    if name == "CMakePresets.json":
        return set(re.findall(r'"CMAKE_\w+_COMPILER": "([^"]+)"', text))
    if name.endswith(("Makefile", ".sh")) or text.startswith(("#!/usr/bin/env bash", "#!/bin/sh")):
        found = shell_commands(text)
    elif name.endswith(".py"):
        found = python_commands(text)
    else:
        found = set(re.findall(r"(?:spawn|execFile|exec)(?:Sync)?\(\s*\"([\w./+-]+)\"", text))
    found |= set(re.findall(r"^#!/usr/bin/env (\S+)", text))
    return found | set(re.findall(r"(?<![\w.}])/usr/bin/([\w.+-]+)", text))


def needs(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode:
        refuse(f"{root}: not a git checkout, so nothing says which scripts belong to it; run this in a clone")
    out = {}
    for name in listed.stdout.split("\n"):
        path = root / name
        if name.startswith(ELSEWHERE) or not re.search(r"(?:Makefile|CMakePresets\.json|\.sh|\.py|\.ts|\.ci/\w+)$", name) or not path.is_file():
            continue
        section = SECTION_OF.get(name, "test")
        certain = started_commands(path.read_text())
        for command in commands(name, path.read_text()):
            command = command.rpartition("/")[2]
            if command not in GIVEN and (command_path(command) or command in certain):
                out.setdefault((command, section), Need(command, section, True, name))
        for library in re.findall(r"\"(/usr/lib/[\w./+-]+\.so\.\d+)\"", path.read_text()):
            if os.path.exists(library):
                out.setdefault((library, section), Need(library, section, True, name))
    return list(out.values())
