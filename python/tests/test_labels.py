"""What a program says about itself must never end it."""
import pytest
import vramscope
from vramscope.marks import _text


@pytest.mark.parametrize("odd, said", [(None, b"None"), (3, b"3"), (b"bytes", b"bytes"), ("\udcff", b"?"), ("Größe", "Größe".encode())])
def test_labels_of_any_kind(odd, said):
    assert _text(odd) == said
    vramscope.mark(odd, detail=odd)
    with vramscope.scope(odd):
        pass
