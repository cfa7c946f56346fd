"""Every check must be able to fail: each rule is shown a tree or a file that breaks it."""
import subprocess
import sys

import pytest

import check_layers
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
    ("x\n" * 601, "need a reason"),
    ("x\n" * 1001, "refused"),
])
def test_text_refuses(tmp_path, root, text, said):
    path = tree(tmp_path, {"src/a.cpp": text + "\n"}) / "src/a.cpp"
    errors = list(check_text.check_file(path, "src/a.cpp"))
    assert len(errors) == 1 and said in errors[0]
    assert tool(root, "check_text", tmp_path).returncode == 1


def test_text_accepts_ordinary_and_generated_files(tmp_path, root):
    tree(tmp_path, {"src/a.cpp": "int network; // /tmp/x, a/work/b\n" * 600, "src/gen/b.cpp": "x\n" * 5000, "docs/long.md": "x\n" * 5000})
    (tmp_path / "binary.bin").write_bytes(b"\xff\xfe\x00")
    done = tool(root, "check_text", tmp_path)
    assert done.returncode == 0, done.stdout


def test_format_refuses_and_mends(tmp_path, root):
    (tmp_path / ".clang-format").write_text((root / ".clang-format").read_text())
    path = tmp_path / "a.cpp"
    path.write_text("int   main( ){return 0 ;}\n")
    assert "not formatted" in tool(root, "check_format", path).stdout
    assert tool(root, "check_format", path).returncode == 1
    assert tool(root, "check_format", "--fix", path).returncode == 0
    assert tool(root, "check_format", path).returncode == 0


def test_schema_check_refuses_a_stale_file(tmp_path, root):
    for part in ("tools/gen_schema.py", "schema/trace/schema.json", "src/trace/gen/schema.h", "src/trace/gen/schema.cpp",
                 "docs/format/tables.md", "ui/src/gen/schema.ts"):
        tree(tmp_path, {part: (root / part).read_text()})
    assert tool(tmp_path, "gen_schema", "--check").returncode == 0
    header = tmp_path / "src/trace/gen/schema.h"
    header.write_text(header.read_text() + "// edited by hand\n")
    assert tool(tmp_path, "gen_schema", "--check").returncode == 1


def test_hook_check_refuses_a_stale_page(tmp_path, root):
    for part in ("tools/gen_hooks.py", "src/capture/cuda/hooks.inc", "docs/dev/hooks.md"):
        tree(tmp_path, {part: (root / part).read_text()})
    assert tool(tmp_path, "gen_hooks", "--check").returncode == 0
    table = tmp_path / "src/capture/cuda/hooks.inc"
    table.write_text(table.read_text().replace("cuMemAlloc_v2, cuMemAlloc, 3020", "cuMemAlloc_v2, cuMemAlloc, 4000"))
    assert tool(tmp_path, "gen_hooks", "--check").returncode == 1
    table.write_text("VS_HOOK(cuBroken)\n")
    assert "not a row" in tool(tmp_path, "gen_hooks", "--check").stderr
