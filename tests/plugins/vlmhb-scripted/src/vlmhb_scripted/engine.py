"""The engine: takes requests in batches, answers by the script; tokens are words."""

from __future__ import annotations

import gc
import itertools
import os
import time

import vlmhb
from vlmhb.errors import RequestError
from vlmhb.images import open_image

from vlmhb_scripted.actions import perform
from vlmhb_scripted.script import Script


class ScriptedModel(vlmhb.ModelInterface):
    """A model that answers by a script."""

    def __init__(self, backend: str = "scripted") -> None:
        self._backend = backend
        self._script: Script | None = None

    def backend_info(self):
        from vlmhb_scripted import vlmhb_backend_info

        return vlmhb_backend_info(self._backend)

    def load_spec(self, spec):
        self._script = _script(self._backend, spec)
        self._batch = spec.options.get("batch") or 8
        self._ahead = spec.options.get("ahead") or 0
        self._delay = spec.options.get("delay") or 0.0
        self._script.log(event="load", max_images=spec.max_images, garbage=gc.isenabled())
        rule = self._script.rule(on="load")
        if "do" in rule:
            perform(rule["do"])

    def facts(self):
        return {"device": "cpu", "batch": self._batch, "pid": os.getpid()}

    def close(self):
        if self._script is not None:
            self._script.log(event="close")
            self._script = None

    def generate_requests(self, requests, control=None):
        control = control or vlmhb.GenerationControl()
        source = iter(requests)
        waiting = []
        while not control.stop.is_set():
            waiting += itertools.islice(source, self._batch + self._ahead - len(waiting))
            batch, waiting = waiting[: self._batch], waiting[self._batch :]
            if not batch:
                return
            if any(self._script.rule(on="batch", **_facts(request)) for request in batch):
                out_of_memory = RequestError("not enough memory for this batch", kind="out_of_memory")
                for request in batch:
                    self._log(request, len(batch))
                    yield vlmhb.GenerationResult.failed(request.id, out_of_memory)
                continue
            for request in batch:
                started = time.perf_counter()
                try:
                    text = self._answer(request, len(batch))
                except RequestError as error:
                    yield vlmhb.GenerationResult.failed(request.id, error)
                else:
                    yield self._result(request, text, control, started)

    def _answer(self, request, batch_size):
        self._log(request, batch_size)
        for image in request.images:
            open_image(image)
        rule = self._script.rule(**_facts(request))
        if "do" in rule:
            perform(rule["do"])
        return rule.get("answer", _facts(request)["question"])

    def _log(self, request, batch_size):
        self._script.log(
            **_facts(request),
            batch=batch_size,
            max_tokens=request.sampling.max_tokens,
            json_schema=request.json_schema,
        )

    def _result(self, request, text, control, started):
        if self._delay:
            time.sleep(self._delay)
        words = text.split(" ")
        kept = words[: request.sampling.max_tokens]
        for number, word in enumerate(kept):
            control.step()
            if control.on_text is not None:
                control.on_text(request.id, word if number == 0 else f" {word}")
        return vlmhb.GenerationResult(
            id=request.id,
            text=" ".join(kept),
            token_ids=tuple(sum(word.encode("utf-8", "surrogatepass")) for word in kept),
            finish_reason="stop" if len(kept) == len(words) else "length",
            prompt_tokens=len(request.text.split(" ")),
            total_time=time.perf_counter() - started,
        )


def prepare(backend, spec):
    script = _script(backend, spec)
    script.log(event="prepare", garbage=gc.isenabled())
    rule = script.rule(on="prepare")
    if "do" in rule:
        perform(rule["do"])


def _script(backend, spec):
    return Script(spec.options.get("script") or os.environ.get("VLMHB_SCRIPT", ""), backend, spec.model_path)


def _facts(request):
    question = "\n".join(p.text for p in request.messages[-1].content if isinstance(p, vlmhb.TextPart))
    return {"id": request.id, "question": question, "images": [image.label for image in request.images]}
