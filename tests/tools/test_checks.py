"""Every check must be able to fail: each rule is shown a tree or a file that breaks it."""
import os
import shutil
import subprocess
import sys

import pytest

import check_layers
import check_length
import check_text

CLEAN = {"src/base/a.h": "#include <atomic>\n", "src/trace/r.cpp": '#include "trace/r.h"\n#include "support/result.h"\n#include <string>\n'}


def tree(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tool(root, name, *args):
    return subprocess.run([sys.executable, str(root / f"tools/{name}.py"), *map(str, args)], capture_output=True, text=True)


def test_layers_accept_what_the_data_flow_allows(tmp_path):
    assert list(check_layers.check(tree(tmp_path, CLEAN))) == []


@pytest.mark.parametrize("name, text, said", [
    ("src/base/b.h", '#include "support/result.h"', "base/ may only see: nothing"),
    ("src/record/b.cpp", '#include "trace/writer.h"', "record/ may only see: base, spool"),
    ("src/capture/b.cpp", '#include "support/result.h"', "capture/ may only see"),
    ("src/analyze/b.cpp", '  #  include "serve/http.h"', "analyze/ may only see"),
    ("src/cli/b.cpp", '#include "record/recorder.h"', "cli/ may only see"),
    ("src/cli/b.cpp", '#include "neighbour.h"', "write the path from src/"),
    ("src/record/b.cpp", "#include <vector>", "libstdc++"),
    ("src/newcomer/b.cpp", "", "no line for this folder"),
    ("ui/src/rpc/b.ts", 'import {x} from "../views/peak";', "rpc/ may only see: gen"),
    ("ui/src/parts/b.svelte", "<script>import x from '../views/Peak.svelte';</script>", "parts/ may only see"),
])
def test_layers_refuse(tmp_path, name, text, said):
    errors = list(check_layers.check(tree(tmp_path, {**CLEAN, name: text + "\n"})))
    assert len(errors) == 1 and said in errors[0] and errors[0].startswith(name.removeprefix("ui/").removesuffix("/b.cpp"))


def test_layers_exit_code(tmp_path, root):
    tree(tmp_path, CLEAN)
    assert tool(root, "check_layers", tmp_path).returncode == 0
    tree(tmp_path, {"src/base/b.h": '#include "cli/x.h"\n'})
    assert tool(root, "check_layers", tmp_path).returncode == 1


@pytest.mark.parametrize("text, said", [
    ("see /ro" + "ot/notes", "machine"),
    ("data in /ho" + "me/jane/x", "machine"),
    ("/wo" + "rk/main", "machine"),
    ("https://pyp" + "i.org/simple", "registry"),
    ("https://registry.npm" + "js.org/x", "registry"),
    ("// TO" + "DO later", "later"),
    ("// FIX" + "ME", "later"),
    ("<" * 7 + " HEAD", "conflict"),
    ("// Tested at its " + "begin.", "wording"),
])
def test_text_refuses(tmp_path, root, text, said):
    path = tree(tmp_path, {"src/a.cpp": text + "\n"}) / "src/a.cpp"
    errors = list(check_text.check_file(path, "src/a.cpp"))
    assert len(errors) == 1 and said in errors[0]
    assert tool(root, "check_text", tmp_path).returncode == 1


def test_text_accepts_ordinary_files(tmp_path, root):
    tree(tmp_path, {"src/a.cpp": "int network; // /tmp/x, a/work/b\n" * 600})
    (tmp_path / "binary.bin").write_bytes(b"\xff\xfe\x00")
    done = tool(root, "check_text", tmp_path)
    assert done.returncode == 0, done.stdout


def test_text_refuses_a_root_without_files(tmp_path, root):
    (tmp_path / "empty").mkdir()
    for wrong in (tmp_path / "nowhere", tmp_path / "empty"):
        done = tool(root, "check_text", wrong)
        assert done.returncode == 2 and str(wrong) in done.stdout


# Each with BODY in place of its lines.
FUNCTIONS = {
    "free.cpp": "int one(int a,\n        int b) {\nBODY}\n",
    "entry.cpp": 'extern "C" int one(const char* data) {\nBODY}\n',
    "made.cpp": "Thing::Thing(int a)\n    : a_{a}, b_(a) {\nBODY}\n",
    "method.h": "class A {\n public:\n  int one() const {\nBODY  }\n};\n",
    "case_test.cpp": "namespace {\n\nTEST(Suite, Case) {\nBODY}\n}  // namespace\n",
    "a.py": "def one():\nBODY    return 1\n",
    "a.ts": "export const one = (a: number) => {\nBODY};\n",
    "A.svelte": '<script lang="ts">\n  function one(): void {\nBODY  }\n</script>\n',
    "a.spec.ts": 'describe("suite", () => {\n  test("case", async () => {\nBODY  });\n});\n',
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_length_refuses_a_long_function(tmp_path, name):
    def errors(body):
        path = tree(tmp_path, {name: FUNCTIONS[name].replace("BODY", body)}) / name
        return list(check_length.check_file(path, name))

    (error,) = errors("    work();\n" * 60)
    assert error.startswith(f"{name}:") and "split it" in error
    assert errors("    work();\n" * 57) == []
    assert errors(("    # " if name.endswith(".py") else "    // ") + "Long because each line is a case.\n" + "    work();\n" * 60) == []


def test_length_refuses_a_long_file(tmp_path, root):
    tree(tmp_path, {"src/a.cpp": "int x;\n" * 401, "src/b.cpp": "// Long because it is a table.\n" + "int x;\n" * 401, "src/c.cpp": "int x;\n" * 400,
                    "src/gen/d.cpp": "int x;\n" * 5000, "docs/long.md": "x\n" * 5000})
    done = tool(root, "check_length", tmp_path)
    assert done.returncode == 1 and "src/a.cpp: 401 lines" in done.stdout and "1 findings" in done.stdout, done.stdout
    (tmp_path / "src/a.cpp").unlink()
    assert tool(root, "check_length", tmp_path).returncode == 0


def test_length_refuses_a_root_without_files(tmp_path, root):
    assert tool(root, "check_length", tmp_path / "nowhere").returncode == 2


@pytest.mark.parametrize("part", ["check_format.py", "check_packages.py"])
def test_outside_a_checkout_one_line_says_so(tmp_path, root, build, part):
    shutil.copytree(root / "tools", tmp_path / "tools")
    done = subprocess.run([sys.executable, tmp_path / "tools" / part], capture_output=True, text=True,
                          env={**os.environ, "VRAMSCOPE_BUILD": str(build), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert done.returncode == 2 and "not a git checkout" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_format_refuses_and_fixes(tmp_path, root):
    (tmp_path / ".clang-format").write_text((root / ".clang-format").read_text())
    path = tmp_path / "a.cpp"
    path.write_text("int   main( ){return 0 ;}\n")
    assert "not formatted" in tool(root, "check_format", path).stdout
    assert tool(root, "check_format", path).returncode == 1
    assert tool(root, "check_format", "--fix", path).returncode == 0
    assert tool(root, "check_format", path).returncode == 0


@pytest.mark.parametrize("text, said", [
    ("print(undefined_name)", "F821"),
    ("import json", "F401"),
    ("print(", "invalid-syntax"),
])
def test_names_refuse(tmp_path, root, text, said):
    def ruff(text):
        (tmp_path / "a.py").write_text(text + "\n")
        return subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise",
                               f"--config={root / 'pyproject.toml'}", tmp_path], capture_output=True, text=True)

    assert ruff("import json\nkept = json.loads('1')").returncode == 0
    done = ruff(text)
    assert done.returncode == 1 and said in done.stdout


def test_schema_check_refuses_a_stale_file(tmp_path, root):
    for part in ("tools/gen_schema.py", "schema/trace/schema.json", "src/trace/gen/schema.h", "src/trace/gen/schema.cpp",
                 "src/trace/gen/site_flags.h", "docs/format/tables.md", "src/base/gen/enums.h", "python/vramscope/_schema.py"):
        tree(tmp_path, {part: (root / part).read_text()})
    assert tool(tmp_path, "gen_schema", "--check").returncode == 0
    header = tmp_path / "src/trace/gen/schema.h"
    header.write_text(header.read_text() + "// edited by hand\n")
    assert tool(tmp_path, "gen_schema", "--check").returncode == 1


@pytest.mark.parametrize("generator, first, schema, changed", [
    ("gen_answers", [], "answers", "analyze/gen/methods.inc"),
    ("gen_rpc", ["server"], "rpc", "serve/gen/views.h"),  # reads the answers too
    ("gen_rpc", ["page"], "rpc", "views.ts"),
])
def test_generators_write_only_what_changed(tmp_path, root, generator, first, schema, changed):
    for part in (f"tools/{generator}.py", "tools/write_changed.py", "schema/answers/schema.json", "schema/rpc/schema.json"):
        tree(tmp_path, {part: (root / part).read_text()})
    out = tmp_path / "out"

    def dates():
        assert tool(tmp_path, generator, *first, out).returncode == 0
        return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.rglob("*.*")}

    before = dates()
    assert changed in before and dates() == before
    source = tmp_path / f"schema/{schema}/schema.json"
    source.write_text(source.read_text().replace('"leaks": {"answer": "Leaks"', '"losses": {"answer": "Leaks"').replace('"name": "leaks"', '"name": "losses"'))
    assert {path for path, date in dates().items() if date != before[path]} == {changed}


def test_browser_tests_are_not_left_out_silently(tmp_path, root):
    done = subprocess.run([root / "tools/ui_tests.sh", "browser"], capture_output=True, text=True, env={**os.environ, "CHROMIUM": str(tmp_path / "none")})
    assert done.returncode == 1 and "no Chromium at" in done.stderr


def test_hook_check_refuses_a_stale_page(tmp_path, root):
    for part in ("tools/gen_hooks.py", "src/capture/cuda/hooks.inc", "docs/dev/hooks.md"):
        tree(tmp_path, {part: (root / part).read_text()})
    assert tool(tmp_path, "gen_hooks", "--check").returncode == 0
    table = tmp_path / "src/capture/cuda/hooks.inc"
    table.write_text(table.read_text().replace("cuMemAlloc_v2, cuMemAlloc, 3020", "cuMemAlloc_v2, cuMemAlloc, 4000"))
    assert tool(tmp_path, "gen_hooks", "--check").returncode == 1
    table.write_text("VS_HOOK(cuBroken)\n")
    assert "not a row" in tool(tmp_path, "gen_hooks", "--check").stderr
