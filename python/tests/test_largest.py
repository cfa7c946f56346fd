"""The largest batch in a program: what the forecast is asked for, with answers of a stand-in for the program."""
from vramscope import _largest

GIB = 1 << 30


def test_what_the_pool_cannot_have_is_not_counted_as_free(monkeypatch):
    asked = []

    def fit(*_, on=None, limit=None, batches=None):
        asked.append((on, limit))
        memory = int(limit) if limit else 2 * GIB
        return {"cards": [{"memory": memory, "available": memory, "largest": memory >> 20}], "rows": [], "sentence": "Done."}

    monkeypatch.setattr(_largest, "fit", fit)
    monkeypatch.setattr(_largest, "_recorded", lambda train, batch, steps, folder: "run")
    found = _largest.find(lambda _: None, 8, "2GiB", None, False, outside=lambda: GIB // 2)
    assert asked == [("2GiB", None), (None, str(3 * GIB // 2))]
    assert found.batch == 1536 and found.sentence == "Of 2GiB, 512.0 MiB is for the context, libraries and other programs, as now. Done."
    assert _largest.find(lambda _: None, 8, None, str(2 * GIB), False, outside=lambda: GIB // 2).batch == 2048      # a limit is the pool's own


def test_a_step_that_needs_more_than_the_forecast_makes_the_batch_smaller(monkeypatch):
    """Above 32 samples, the stand-in for the model needs a quarter more than its small batches show."""
    def fit(*_, on=None, limit=None, batches=None):
        largest = int(limit) >> 20
        return {"cards": [{"memory": int(limit), "available": int(limit), "largest": largest}], "rows": [{"batch": largest, "live": largest << 20}], "sentence": "Done."}

    monkeypatch.setattr(_largest, "fit", fit)
    monkeypatch.setattr(_largest, "_recorded", lambda train, batch, steps, folder: "run")
    monkeypatch.setattr(_largest, "_confirmed", lambda train, batch, folder: int(1.25 * (batch << 20)))
    found = _largest.find(lambda _: None, 8, None, str(1000 << 20), True)
    assert found.batch == 800 and found.confirmed and found.measured == 1000 << 20
    assert found.sentence == "Done. A step with it needed 25.0% more."
