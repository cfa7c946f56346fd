"""The files for other people's machinery: the GitHub Action runs against a stand-in for `gh`, and what the others name exists."""
import json
import os
import re
from pathlib import Path

import pytest
from wheel_backend import TAG, version

GH = r"""#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
calls = Path(os.environ["GH_CALLS"])
body = next((Path(word[6:]).read_text() for word in sys.argv if word.startswith("body=@")), None)
calls.write_text(calls.read_text() + json.dumps([sys.argv[1:], body]) + "\n")
if "--paginate" in sys.argv:
    print(os.environ.get("GH_COMMENT", ""))
sys.exit(int(os.environ.get("GH_CODE", "0")))
"""


@pytest.fixture
def act(root, build, vramscope, run, tmp_path):
    """act(trace, budget, code=..., **environment) -> (standard output, summary, calls of gh)."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    (programs / "vramscope").symlink_to(vramscope)
    calls, summary = tmp_path / "calls", tmp_path / "summary"

    def call(trace, budget, code=0, **environment):
        calls.write_text(""), summary.write_text("")
        (tmp_path / "vram.toml").write_text(budget)
        done = run([root / "packaging/github-action/check.sh"], code=code, cwd=tmp_path, env={
            "PATH": f"{programs}:{os.environ['PATH']}", "TRACE": str(trace), "BUDGET": "vram.toml", "GITHUB_REPOSITORY": "me/model",
            "GITHUB_STEP_SUMMARY": str(summary), "GH_CALLS": str(calls), **environment})
        return done.stdout, summary.read_text(), [json.loads(line) for line in calls.read_text().splitlines()]

    return call


@pytest.fixture
def traces(build, run, tmp_path):
    for name, options in {"base": ["layers=3"], "larger": ["layers=6"]}.items():
        run([build / "tracegen", "clean", tmp_path / f"{name}.vram", "seed=7", *options])
    return tmp_path / "base.vram", tmp_path / "larger.vram"


ROOMY, TIGHT = 'peak = "1TiB"\n', 'peak = "1KiB"\n'


def test_the_action_comments_the_difference(act, traces):
    base, larger = traces
    out, summary, calls = act(larger, TIGHT, code=1, BASELINE=str(base), PULL_REQUEST="12")
    assert "::error file=vram.toml,line=1" in out
    (listed, _), (posted, body) = calls
    assert "repos/me/model/issues/12/comments" in listed and {"POST", "repos/me/model/issues/12/comments"} <= set(posted)
    assert body == summary and body.startswith("<!-- vramscope check -->\n### GPU memory: over budget\n")
    assert "Compared with the baseline" in body and "::error" not in body
    blocks = body.split("\n\n")[1::2]
    assert len(blocks) == 2 and all(line.startswith("    ") or not line for block in blocks for line in block.splitlines())


def test_the_action_replaces_its_comment(act, traces):
    _, summary, calls = act(traces[0], ROOMY, PULL_REQUEST="12", GH_COMMENT="77", BASELINE="no-such-file")
    assert {"PATCH", "repos/me/model/issues/comments/77"} <= set(calls[1][0])
    assert "within budget" in summary and "Compared" not in summary


def test_the_action_without_a_pull_request_or_permission(act, traces):
    assert act(traces[0], ROOMY)[2] == []
    out, summary, _ = act(traces[0], ROOMY, PULL_REQUEST="12", GH_CODE="1")
    assert "::notice::" in out and "within budget" in summary
    assert "not checked" in act("no-such.vram", ROOMY, code=2)[1]


def lines_with_verbs(root):
    for file in ("examples/ci/memory.yml", "packaging/github-action/check.sh", "packaging/Containerfile", "packaging/conda/recipe.yaml"):
        for verb, rest in re.findall(r"\bvramscope (run|check|diff|summary|doctor)\b(.*)", (root / file).read_text()):
            yield verb, re.findall(r"(?<!\S)--?[a-z][\w-]*", rest.split(" -- ")[0].split("|")[0])


def test_commands_in_the_files_exist(root, vramscope, run):
    found = list(lines_with_verbs(root))
    assert {"run", "check", "diff", "summary", "doctor"} == {verb for verb, _ in found}
    for verb, options in found:
        known = run([vramscope, verb, "--help"]).stdout
        assert all(re.search(rf"(?<![\w-]){option}\b", known) for option in options), (verb, options)


def test_the_workflow_uses_the_action_as_it_is(root):
    import yaml
    action = yaml.safe_load((root / "packaging/github-action/action.yml").read_text())
    workflow = yaml.safe_load((root / "examples/ci/memory.yml").read_text())
    (step,) = [step for step in workflow["jobs"]["memory"]["steps"] if step.get("uses", "").startswith("./")]
    required = {name for name, one in action["inputs"].items() if one.get("required")}
    assert required <= set(step["with"]) <= set(action["inputs"])
    (ours,) = action["runs"]["steps"]
    script = (root / "packaging/github-action/check.sh").read_text()
    assert "check.sh" in ours["run"] and all(name == "GH_TOKEN" or f"${name}" in script or f"${{{name}:-" in script for name in ours["env"])
    assert "${{" not in ours["run"]


def test_the_recipe_is_of_this_package(root):
    """Version, wheel and program; the program and the libraries stay as they were built."""
    import tomllib

    import yaml
    recipe = yaml.safe_load((root / "packaging/conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == version()
    assert recipe["build"]["script"] == [f"python -m pip install --no-deps --no-index vramscope-${{{{ version }}}}-{TAG}.whl"]
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {function}" for name, function in scripts.items()]
    assert recipe["build"]["dynamic_linking"]["binary_relocation"] is False     # rattler-build would rewrite their search paths


def test_the_container_file(root, run):
    text = re.sub(r"\\\n", " ", (root / "packaging/Containerfile").read_text())
    words = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {word for word, _ in words} <= {"FROM", "RUN", "COPY", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert re.search(r"^build:", (root / "Makefile").read_text(), re.MULTILINE) and "make build" in text
    assert json.loads(dict(words)["ENTRYPOINT"]) == ["vramscope"]
    # The image is built from the whole checkout, without what is built or fetched beside it.
    ignored = (root / "packaging/Containerfile.dockerignore").read_text().split()
    tracked = [Path(file) for file in run(["git", "-C", root, "ls-files"]).stdout.splitlines()]
    heads = {one: {Path(*file.parts[:one.count("/") + 1]) for file in tracked} for one in ignored}
    assert Path("src") in heads["build*"] and [head for one in ignored for head in heads[one] if head.match(one)] == []
