"""How a run shows its progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from vlmhb.contract.result import GenerationResult
from vlmhb.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress

PLAIN_SECONDS = 10.0


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _in_words(fact: Any) -> str:
    """A fact; of one that has a value for each part of the model the different values."""
    return " and ".join(dict.fromkeys(map(str, fact.values()))) if isinstance(fact, dict) else str(fact)


def make_listener() -> PlainProgress:
    """The listener that fits standard error."""
    return BarProgress() if sys.stderr.isatty() else PlainProgress()


class PlainProgress:
    """Plain lines on standard error, one every ten seconds at the most while answers come in."""

    def __init__(self) -> None:
        self._total = self._done = self._failed = 0
        self._started = self._said = 0.0
        self._is_loading = False

    def note(self, text: str) -> None:
        """Say something the user should know."""
        self._say(f"Note: {printable(text)}")

    def planned(self, rows: int, pending: int, unaskable: int) -> None:
        """Say what there is to do."""
        text = f"{counted(rows, 'row')}; {counted(pending, 'question')} to ask"
        self._say(text + (f"; {counted(unaskable, 'row')} cannot be asked (see answers.csv)" if unaskable else ""))
        if not pending:
            self._say("Nothing to generate: every question that can be asked has its answer.")

    def loading(self, backend: str, model_name: str, pending: int) -> None:
        """Say which model is being loaded."""
        self._is_loading = True
        self._say(f"Loading {model_name} on {backend} for {counted(pending, 'question')} ...")

    def loaded(self, backend: str, model_name: str, facts: dict[str, Any]) -> None:
        """Say how the model was loaded."""
        shown = ", ".join(f"{key} {_in_words(facts[key])}" for key in ("device", "dtype", "attention") if key in facts)
        self._say(f"Loaded {model_name} on {backend}" + (f" ({shown})" if shown else ""))

    def begin(self, total: int) -> None:
        """Start counting answers of one model."""
        self._is_loading = False
        self._total, self._done, self._failed = total, 0, 0
        self._started = self._said = time.monotonic()

    def answered(self, result: GenerationResult) -> None:
        """Count a stored result."""
        self._done += 1
        self._failed += not result.ok
        now = time.monotonic()
        if now - self._said >= PLAIN_SECONDS or self._done == self._total:
            self._said = now
            rate = self._done / max(now - self._started, 1e-9)
            left = (self._total - self._done) / rate
            failed = f", {self._failed} failed" if self._failed else ""
            self._say(f"{self._done}/{self._total} answered{failed}, {rate:.2f}/s, {left:.0f} s left")

    def stopping(self) -> None:
        """Say that Ctrl-C was heard."""
        rest = "nothing is asked once the model is loaded" if self._is_loading else "finishing what is being answered"
        self._say(f"Stopping: {rest}. Press Ctrl-C again to stop at once.")

    def close(self) -> None:
        """Finish."""

    def _say(self, text: str) -> None:
        click.echo(text, err=True)


class BarProgress(PlainProgress):
    """A bar with rate and time left, for terminals."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progress | None = None

    def begin(self, total: int) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        super().begin(total)
        self.close()
        self._bar = Progress(
            TextColumn("Answering"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._bar.start()
        self._task = self._bar.add_task("answers", total=total, rate="")

    def answered(self, result: GenerationResult) -> None:
        """Move the bar."""
        self._done += 1
        self._failed += not result.ok
        rate = self._done / max(time.monotonic() - self._started, 1e-9)
        if self._bar is not None:
            failed = f", {self._failed} failed" if self._failed else ""
            self._bar.update(self._task, advance=1, rate=f"{rate:.2f}/s{failed}")
            if self._done == self._total:
                self.close()

    def close(self) -> None:
        """Take the bar down, leaving its last state."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            super()._say(text)
