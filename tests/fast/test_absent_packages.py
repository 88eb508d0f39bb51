"""What is said when a metric or a dataset needs a package that is not there."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.configs import Bench, FixedRegistry
from vlmhb.config.choices import metric_names
from vlmhb.config.lookup import Places
from vlmhb.contract.metric import Metric, Pairs
from vlmhb.discovery.registry import Registry
from vlmhb.errors import ConfigError, VlmhbError


class Needy(Metric):
    """A metric of a package that nobody has."""

    name = "needy"
    title = "Needy"
    packages = ("no-such-package-anywhere",)
    install = "vlmhb[needy]"

    def score(self, pairs: Pairs) -> Mapping[str, Sequence[float]]:
        raise AssertionError("it must not be asked")


class WithNeedy(FixedRegistry):
    def metrics(self) -> dict[str, Metric]:
        return {**super().metrics(), "needy": Needy()}


def test_a_metric_names_its_package_before_anything_is_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.registry = WithNeedy()
    fault = bench.fault(bench.row(metrics="CER,Needy"))
    assert (fault.row, fault.column) == (1, "metrics")
    assert "the metric needy needs no-such-package-anywhere, which is not installed" in fault.message
    assert fault.hint == "Install it: pip install 'vlmhb[needy]'"
    with pytest.raises(ConfigError, match="no-such-package-anywhere"):
        metric_names("needy", WithNeedy())


@pytest.mark.parametrize(("package", "extra"), [("datasets", "vlmhb[datasets]"), ("pypdfium2", "vlmhb[pdf]")])
def test_a_dataset_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, extra: str) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *arguments, **named)

    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": []}')
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4\n")
    monkeypatch.setattr(builtins, "__import__", without)
    place = tmp_path / ("saved" if package == "datasets" else "scan.pdf")
    with pytest.raises((VlmhbError, ValueError)) as caught:
        list(Places(tmp_path, tmp_path, Registry()).dataset(str(place), ""))
    assert extra in f"{caught.value}"
