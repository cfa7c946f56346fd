"""The framework of the tests as the Python side knows it: everything that python/vramscope/_hooks/<framework>/ holds for a real one."""

WORD = "toyframe"
NAME = "ToyFrame"
MODULE = "toyframe"
WATCHED = {"toyframe": "vramscope._hooks.toyframe.framework"}
PACKAGES = ("toyframe",)


def install(toyframe):
    from vramscope._hooks import emit, wrapping
    from vramscope._schema import BEGIN, END, STEP

    numbers = iter(range(1, 1_000_000))

    def begin(*_, **__):
        number = next(numbers)
        emit.mark(STEP, BEGIN, "train", number)
        return number

    def end(number, *_, **__):
        emit.mark(STEP, END, "train", number)

    def made(token, ok, address, name, bytes):
        emit.tag(address, bytes, "parameter", name, name.split("/")[0])

    emit.at_first_event(lambda: emit.setting("toyframe.version", toyframe.__version__))
    wrapping.wrap(toyframe, "train_step", begin, end)
    wrapping.wrap(toyframe, "parameter", after=made)
    emit.watching(b"toyframe")
