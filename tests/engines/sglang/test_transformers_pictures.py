"""Pictures for models that SGLang runs by transformers' code: our pixels, and the tokens of the hf plugin."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import twins
from vlmhb import GenerationRequest
from vlmhb.doctor.questions import questions


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen2_vl", "llava"])
def test_tokens_are_those_of_transformers(family, script, tmp_path, hf_answers):
    """SGLang has a processor of its own for the one, and its general one for the other; neither takes ready pixels."""
    twin = twins.twin_apart(twins.ROWS[family], tmp_path / "twin")
    asked: list[GenerationRequest] = questions(twin.image_counts)
    wanted = hf_answers(Path(twin.path), asked)
    (tmp_path / "asked.json").write_bytes(msgspec.json.encode(asked))
    process = script(f"""
        import json
        from pathlib import Path
        import msgspec
        from vlmhb import GenerationRequest
        from vlmhb_sglang import SGLangModel

        asked = msgspec.json.decode(Path({str(tmp_path / "asked.json")!r}).read_bytes(), type=list[GenerationRequest])
        with SGLangModel().load({twin.path!r}, dtype="float32", model_impl="transformers", max_images=2) as model:
            found = {{result.id: [result.token_ids, str(result.failure)] for result in model.generate_requests(asked)}}
        print(json.dumps(found), flush=True)
        """)
    said = process.stdout.readline()
    assert said, (tmp_path / "stderr").read_text()[-2000:]
    assert {len(request.images) for request in asked} == {0, 1, 2}
    assert json.loads(said) == {id: [list(result.token_ids), "None"] for id, result in wanted.items()}
    assert process.wait(60) == 0
