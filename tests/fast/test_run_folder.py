"""The names of the logs in a run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from vlmhb.run.folder import RunFolder


@pytest.mark.parametrize(
    ("names", "file"),
    [
        (("hf", "Qwen2-VL-2B"), "hf-Qwen2-VL-2B.log"),
        (("hf", "Qwen/Qwen2.5-VL_3B"), "hf-Qwen-Qwen2.5-VL_3B.log"),
        (("hf", "../../etc/passwd"), "hf-..-..-etc-passwd.log"),
        (("vllm", "/data/моя модель/"), "vllm-data-моя-модель.log"),
        (("vllm:transformers",), "vllm-transformers.log"),
        (("hf", "a\0b\nc"), "hf-a-b-c.log"),
    ],
)
def test_a_log_is_called_by_its_backend_and_its_model(tmp_path: Path, names: tuple[str, ...], file: str) -> None:
    assert RunFolder(tmp_path).log(*names) == tmp_path / "logs" / file


@pytest.mark.parametrize("name", ["a" * 300, "\U00020000" * 300])
def test_any_name_is_short_enough_for_a_file(tmp_path: Path, name: str) -> None:
    log = RunFolder(tmp_path).log("hf", name)
    log.parent.mkdir()
    log.write_text("")
    assert log.name.startswith(f"hf-{name[:50]}")


def test_no_two_logs_have_one_name(tmp_path: Path) -> None:
    taken: list[Path] = []
    for names in (("hf", "a b"), ("hf", "a/b"), ("hf-a", "b"), ("hf", "a-b-2")):
        taken.append(RunFolder(tmp_path).log(*names, taken=taken))
    assert [path.stem for path in taken] == ["hf-a-b", "hf-a-b-2", "hf-a-b-3", "hf-a-b-2-2"]
