"""The documents say what the program does: verbs, options and links are compared with the real thing."""
import re


def test_verbs_in_the_documents_exist(root, vramscope, run):
    """Which verbs there are is said by `vramscope --help` alone; documents explain the more important ones."""
    said = run([vramscope, "--help"]).stdout
    verbs = {line.split()[0] for line in said.split("Examples")[0].splitlines() if re.match(r"  [a-z]+ ", line)}
    named = {verb for path in documents(root) if path.name != "CHANGELOG.md" for verb in re.findall(r"`vramscope ([a-z]+)", path.read_text())}
    assert {"run", "summary", "peak", "serve"} <= named <= verbs


def test_the_guide_lists_every_option_of_run(root, vramscope, run):
    said = run([vramscope, "run", "--help"]).stdout
    options = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", said, re.MULTILINE)) - {"--help"}
    written = set(re.findall(r"`(?:-\w, )?(--[a-z-]+)", (root / "docs/guide/recording.md").read_text()))
    assert options and options <= written, f"docs/guide/recording.md does not explain {sorted(options - written)}"


def documents(root):
    return [path for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "src").rglob("*.md"), *(root / "tests").rglob("*.md")]]


def test_links_between_documents_lead_somewhere(root):
    found = [(path, link) for path in documents(root) for link in re.findall(r"(?<!!)\[[^\]]*\]\((?!https?:|#)([^)#]+)", path.read_text())]
    assert found
    assert [(str(path), link) for path, link in found if not (path.parent / link).exists()] == []


def test_the_list_of_documents_has_every_document(root):
    index = root / "docs/README.md"
    listed = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)", index.read_text())}
    assert {path.resolve() for path in documents(root)} - {index.resolve(), (root / "README.md").resolve()} <= listed


def test_make_targets_in_the_documents_exist(root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    named = {target for path in documents(root) for target in re.findall(r"`make ([a-z-]+)`", path.read_text())}
    assert {"demo", "test"} <= named <= targets


def test_the_guide_walks_through_every_example(root):
    guides = (root / f"docs/guide/{name}.md" for name in ("tensorflow", "jax"))
    named = {name for guide in guides for name in re.findall(r"^\| `(\w+\.py)`", guide.read_text(), re.MULTILINE)}
    assert named == {path.name for path in (root / "examples").glob("*.py")} - {"demo_keras.py"}     # that one is `make demo`
