"""Whatever stands in a config file, the answer is a plan or a list of faults, never another error."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.configs import Bench
from vlmhb.config.columns import USER_CONFIG_COLUMNS, VLM_BASE_COLUMNS
from vlmhb.config.plan import read_plan_config
from vlmhb.errors import ConfigError

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = (
    *("", "cards", "tiny", "hf", "vLLM", "True", "0", "-1", "1e400", "nan", "9" * 30, "['a', \"b\"]", "['a'", "[", "]"),
    *(
        '{"a": 1}',
        "{",
        "a=1,b",
        "=",
        "../..",
        "/",
        "\\",
        "C:\\x",
        "a.txt",
        "\0",
        "\ud7ff",
        "😀",
        "x" * 300,
        "28*28*",
        "*",
    ),
    *("card", "CER", "model", "auto", "~", "org/name", "http://h/x", "%s", "{0}", "a\nb", "#"),
)
CELL = st.one_of(st.sampled_from(VALUES), st.text(st.characters(codec="utf-8"), max_size=8))


def check(bench: Bench) -> None:
    config = bench.root / "user_config.csv"
    try:
        assert read_plan_config(config, bench.registry).jobs
        return
    except ConfigError as error:
        faults = error.faults
    assert faults
    assert all(fault.file and fault.message and str(fault) for fault in faults)
    rows = [fault.row or 0 for fault in faults if fault.file == str(config)]
    assert rows == sorted(rows)


def quoted(cells: list[str]) -> str:
    return ";".join('"' + cell.replace('"', '""') + '"' for cell in cells)


@FUZZ
@given(content=st.one_of(st.binary(max_size=200), st.text(alphabet="dataset;model_nm\n\r\"',#\0é", max_size=80)))
def test_any_bytes(tmp_path: Path, content: bytes | str) -> None:
    bench = Bench(tmp_path)
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "user_config.csv").write_bytes(data)
    check(bench)
    (tmp_path / "user_config.csv").write_bytes(b"dataset;model_name\ncards;tiny\n")
    (tmp_path / "vlm_base.csv").write_bytes(data)
    check(bench)
    (tmp_path / "vlm_base.csv").unlink()


@FUZZ
@given(data=st.data())
def test_any_cells_under_known_columns(tmp_path: Path, data: st.DataObject) -> None:
    bench = Bench(tmp_path)
    for name, columns in (("user_config.csv", USER_CONFIG_COLUMNS), ("vlm_base.csv", VLM_BASE_COLUMNS)):
        extra = data.draw(st.lists(st.sampled_from(columns.known), unique=True, max_size=8))
        header = list(dict.fromkeys([*columns.needed, *extra]))
        good = {"dataset": "cards", "model_name": "tiny"}
        cells = [st.one_of(st.just(good[column]), CELL) if column in good else CELL for column in header]
        rows = data.draw(st.lists(st.tuples(*cells), min_size=1, max_size=3))
        bench.write(name, "\n".join(quoted(list(row)) for row in [header, *rows]) + "\n")
    check(bench)
