"""The verbs that answer, as the schema has them: a new one is in every test that goes through them all."""
import json
from pathlib import Path

ANSWERING = list(json.loads((Path(__file__).resolve().parent.parent.parent / "schema/answers/schema.json").read_text())["verbs"])
# They take one trace and nothing else.
OF_ONE_TRACE = [verb for verb in ANSWERING if verb not in ("diff", "check", "fit")]
