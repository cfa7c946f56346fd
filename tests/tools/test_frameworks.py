"""A framework has one number in traces, which no other has. Its registrations name it, one on each side of the trace."""
import json
import re


def numbers(root, folder):
    """[(word, number)] of the registrations below the folder."""
    known = json.loads((root / "schema/trace/schema.json").read_text())["enums"]["Framework"]
    out = []
    for path in sorted((root / folder).glob("*/framework.cpp")):
        name, number = re.search(r"\.id = \w+::Framework(?:::(\w+)|\{(\d+)\})", path.read_text()).groups()
        assert name in known if name else int(number) not in known.values(), f"{path}: {name or number}"
        out.append((re.search(r'\.word = "(\w+)"', path.read_text())[1], known[name] if name else int(number)))
    return out


def test_each_framework_has_one_number_of_its_own(root):
    recorded, analyzed = numbers(root, "src/capture"), numbers(root, "src/analyze/attribute")
    assert recorded and set(recorded) <= set(analyzed)
    assert len({number for _, number in analyzed}) == len(analyzed)
