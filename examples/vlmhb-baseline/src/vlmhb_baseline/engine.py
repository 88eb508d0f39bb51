"""The most frequent answer to each question, from a file; a constant for the rest."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import vlmhb
from vlmhb.errors import ModelLoadError


class BaselineModel(vlmhb.ModelInterface):
    """A "model" that knows questions and answers and sees no page. Sampling parameters mean nothing to it."""

    def __init__(self, backend: str = "baseline") -> None:
        self._backend = backend
        self._answer = ""
        self._learnt: dict[str, str] = {}

    def backend_info(self) -> vlmhb.BackendInfo:
        """See :meth:`vlmhb.ModelInterface.backend_info`."""
        from vlmhb_baseline import vlmhb_backend_info

        return vlmhb_backend_info(self._backend)

    def load_spec(self, spec: vlmhb.ModelSpec) -> None:
        """Learn the answers.

        Raises:
            ModelLoadError: the file of the option ``learn_from`` cannot be read or lacks a column.
        """
        self._answer = spec.options.get("answer") or ""
        path = spec.options.get("learn_from")
        self._learnt = most_frequent_answers(Path(path)) if path else {}

    def facts(self) -> dict[str, Any]:
        """What goes into the run's manifest."""
        return {"device": "cpu", "questions_learnt": len(self._learnt)}

    def generate_requests(
        self, requests: Iterable[vlmhb.GenerationRequest], control: vlmhb.GenerationControl | None = None
    ) -> Iterator[vlmhb.GenerationResult]:
        """Answer each request by the text of its last message."""
        for request in requests:
            question = "\n".join(part.text for part in request.messages[-1].content if isinstance(part, vlmhb.TextPart))
            answer = self._learnt.get(question, self._answer)
            yield vlmhb.GenerationResult(id=request.id, text=answer, finish_reason="stop")
            if control is not None and control.stop.is_set():
                return

    def close(self) -> None:
        """Forget everything."""
        self._learnt = {}


def most_frequent_answers(path: Path) -> dict[str, str]:
    """The most frequent answer to each question of an annotation.csv; of equally frequent ones the first.

    Raises:
        ModelLoadError: the file cannot be read or lacks a column.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = ";" if ";" in file.readline() else ","
            file.seek(0)
            for row in csv.DictReader(file, delimiter=delimiter):
                counts[row["question"]][row["answer"]] += 1
    except KeyError as error:
        raise ModelLoadError(f"learn_from: {path} has no column {error}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise ModelLoadError(f"learn_from: {path} cannot be read: {error}") from error
    return {question: answers.most_common(1)[0][0] for question, answers in counts.items()}
