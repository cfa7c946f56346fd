"""What the page gets of the answers: each struct is described once."""
import json

import gen_rpc
import pytest


def own_structs():
    return json.loads(gen_rpc.SCHEMA.read_text())["structs"]


def answers():
    schema = json.loads(gen_rpc.ANSWERS.read_text())
    return {name: {one for names, *_ in struct["fields"] for one in names.split(", ")}
            for name, struct in (schema["structs"] | schema["view_structs"]).items()}


def test_an_answer_comes_with_what_it_contains():
    sent = gen_rpc.answers_sent({"structs": {"View": {"request": "PoolRequest?", "rows": "LayerRow[]"}}})
    assert set(sent) == {"PoolRequest", "Hole", "LayerRow"}
    assert sent["Hole"]["after"] == "u64!" and sent["Hole"]["bytes"] == "u64" and sent["PoolRequest"]["room"] == "u64?"


def test_a_second_description_is_refused():
    with pytest.raises(SystemExit, match="Hole is a struct of schema/answers"):
        gen_rpc.answers_sent({"structs": {"View": {"request": "PoolRequest?"}, "Hole": {"bytes": "f64"}}})


def test_a_type_that_the_page_does_not_know_is_refused():
    with pytest.raises(SystemExit, match="no type for"):
        gen_rpc.answers_sent({"structs": {"View": {"overview": "Summary"}}})


def test_no_struct_of_the_page_repeats_an_answer():
    """One with two members, such as a pair of a name and a size, may."""
    twins = [(name, answer) for name, fields in own_structs().items() for answer, members in answers().items()
             if len(fields) > 2 and set(fields) <= members]
    assert not twins, "use the struct of schema/answers instead"
