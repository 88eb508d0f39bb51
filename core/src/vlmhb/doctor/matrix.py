"""The compatibility matrix: the probe over all families, kept cell by cell, so that it goes on where it was stopped."""

from __future__ import annotations

import datetime
import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from vlmhb import __version__
from vlmhb.compare.engines import EngineAnswers
from vlmhb.contract.model import ModelSpec
from vlmhb.contract.twin import Twin
from vlmhb.doctor.ask import ask
from vlmhb.doctor.cells import Cell, cell_of
from vlmhb.doctor.families import Row, write_config
from vlmhb.doctor.probe import REFERENCE, TwinWorker, Way, make_twin, twin_spec
from vlmhb.doctor.questions import questions
from vlmhb.engines import Engines
from vlmhb.environments import places
from vlmhb.errors import ModelLoadError, VlmhbError
from vlmhb.whole import written_whole


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the matrix, and what it was measured with.

    Attributes:
        family: the row's name.
        cell: what was found.
        version: of the engine.
        reference: version of the reference engine.
        date: of the measurement.
    """

    family: str
    cell: Cell
    version: str
    reference: str
    date: str


class Matrix:
    """The measured cells, in a JSON file that is written after each of them."""

    def __init__(self, path: Path) -> None:
        """Args: the file; what it holds already counts as measured."""
        self.path = path
        self.cells: dict[tuple[str, str], Measured] = {}
        if path.is_file():
            for entry in read_cells(path):
                self.cells[entry.family, entry.cell.name] = entry

    def has(self, family: str, name: str, version: str, reference: str) -> bool:
        """Whether a cell was measured with these versions."""
        found = self.cells.get((family, name))
        return found is not None and (found.version, found.reference) == (version, reference)

    def add(self, entry: Measured) -> None:
        """Keep a cell; the file is the old one or the new one, never half."""
        self.cells[entry.family, entry.cell.name] = entry
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(self.path) as beside:
            beside.write_bytes(msgspec.json.format(msgspec.json.encode(list(self.cells.values())), indent=1))


def read_cells(path: Path) -> list[Measured]:
    """The cells of a file.

    Raises:
        ModelLoadError: it is no such file.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Measured])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelLoadError(f"{path} does not hold the cells of a matrix: {error}") from error


class Survey:
    """Fills a matrix: twins and the reference's answers are kept under the user's data folder."""

    def __init__(
        self, engines: Engines, matrix: Matrix, rows: Sequence[Row], fresh: bool, say: Callable[[str], None]
    ) -> None:
        """Args: the engines; what to fill; which rows; whether to measure again; told what is being done."""
        self._engines = engines
        self._matrix = matrix
        self._rows = rows
        self._fresh = fresh
        self._say = say
        self._home = places.home() / "doctor" / "matrix"
        self._reference = self._version(REFERENCE)
        self._twins: dict[str, tuple[Twin, EngineAnswers]] = {}
        self._problems: dict[str, str] = {}

    def run(self, backends: Sequence[str]) -> None:
        """Measure the reference, then the other engines, one implementation after another.

        Raises:
            VlmhbError: the reference is not there, or an engine's environment is of no use; what was measured is kept.
        """
        with TwinWorker(self._engines, REFERENCE, self._home / "logs", self._say) as worker:
            for row in self._rows:
                self._refer(row, worker)
        for backend in backends:
            if backend == REFERENCE:
                continue
            for way in self._ways(backend):
                with TwinWorker(self._engines, backend, self._home / "logs", self._say) as worker:
                    for row in self._rows:
                        self._measure(row, way, worker)

    def _refer(self, row: Row, worker: TwinWorker) -> None:
        """A row's twin and the reference's answers, from the last time or anew."""
        place = self._home / _key(row, self._reference)
        if self._fresh:
            shutil.rmtree(place, ignore_errors=True)
        way = Way(REFERENCE, "transformers")
        known = self._matrix.cells.get((row.name, " ".join(way)))
        if not self._fresh and known and known.version == self._reference and known.cell.outcome == "refused":
            self._problems[row.name] = known.cell.reason
            return
        try:
            twin, answers = self._kept(place) or self._make(row, place, way, worker)
        except ModelLoadError as error:
            answers = EngineAnswers(REFERENCE, {}, str(error), loaded=False)
        else:
            self._twins[row.name] = twin, answers
        if answers.problem is not None:
            self._twins.pop(row.name, None)
            self._problems[row.name] = answers.problem
        if self._fresh or not self._matrix.has(row.name, " ".join(way), self._reference, self._reference):
            self._keep(row, cell_of(*way, answers))

    def _make(self, row: Row, place: Path, way: Way, worker: TwinWorker) -> tuple[Twin, EngineAnswers]:
        self._say(f"{row.name}: making its twin and asking {REFERENCE}")
        shutil.rmtree(place, ignore_errors=True)
        source = write_config(row, place / "config")
        spec = ModelSpec(model_path=str(source), trust_remote_code=row.trust_remote_code)
        twin = make_twin(self._engines, spec, place / "twin", self._say)
        answers = worker.ask(twin_spec(spec, twin, way), questions(twin.image_counts))
        (place / "answers.json").write_bytes(msgspec.json.encode((twin, answers)))
        return twin, answers

    def _kept(self, place: Path) -> tuple[Twin, EngineAnswers] | None:
        try:
            return msgspec.json.decode((place / "answers.json").read_bytes(), type=tuple[Twin, EngineAnswers])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):  # not there, or of another version
            return None

    def _measure(self, row: Row, way: Way, worker: TwinWorker) -> None:
        version = self._version(way.backend)
        known = self._matrix.has(row.name, " ".join(way), version, self._reference)
        if known and not self._fresh:
            return
        if row.name in self._problems:
            reason = f"without an answer of {REFERENCE} there is nothing to compare with."
            self._keep(
                row, Cell(backend=way.backend, implementation=way.implementation, outcome="unknown", reason=reason)
            )
            return
        twin, reference = self._twins[row.name]
        source = ModelSpec(model_path=twin.path, trust_remote_code=row.trust_remote_code)
        spec = twin_spec(source, twin, way)
        asked = questions(twin.image_counts)
        self._say(f"{row.name}: asking {' '.join(way)}")
        was_fresh = worker.is_fresh
        cell = cell_of(*way, worker.ask(spec, asked), reference)
        if not cell.agrees and not was_fresh:  # what a twin before it left behind must not be blamed on it
            worker.close()
            cell = cell_of(*way, worker.ask(spec, asked), reference)
        self._keep(row, cell)

    def _keep(self, row: Row, cell: Cell) -> None:
        self._say(f"{row.name}: {cell.name}: {cell.words()}")
        version = self._version(cell.backend)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        slim = msgspec.structs.replace(cell, comparisons=())
        entry = Measured(family=row.name, cell=slim, version=version, reference=self._reference, date=today)
        self._matrix.add(entry)

    def _ways(self, backend: str) -> list[Way]:
        """The implementations of an engine, as it names them for one of the twins."""
        try:
            twin, _ = next(iter(self._twins.values()))
            found = ask(self._engines, backend, ModelSpec(model_path=twin.path, dtype="float32"), say=self._say)
        except (StopIteration, VlmhbError) as error:
            self._say(f"{backend} could not be asked: {error}")
            return []
        return [Way(backend, support.implementation) for support in found.supports]

    def _version(self, backend: str) -> str:
        info = self._engines.backend_info(backend)
        return f"{info.engine} {info.engine_version or 'unknown'}"


def _key(row: Row, reference: str) -> str:
    ids = [request.id for request in questions((0, 1, 2))]
    digest = hashlib.sha256(msgspec.json.encode([__version__, reference, row.config, ids]))
    return digest.hexdigest()[:16]
