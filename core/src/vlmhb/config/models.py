"""From a row's model name to the :class:`~vlmhb.contract.model.ModelSpec` that is loaded."""

from __future__ import annotations

from typing import Any

import msgspec

from vlmhb.config import columns
from vlmhb.config.cells import CellError, parse_options, plain_value
from vlmhb.config.engines import check_options
from vlmhb.config.job import Overrides
from vlmhb.config.lookup import FoundModel, Places, model_at
from vlmhb.config.names import nearest
from vlmhb.config.sheet import Row, Setting
from vlmhb.config.vlm_base import BaseModel, VlmBase
from vlmhb.contract.backend import BackendInfo
from vlmhb.contract.calls import device_problem
from vlmhb.contract.model import ModelSpec
from vlmhb.errors import Fault


class Models:
    """Finds models and builds their specs.

    Args:
        base: the rows of ``vlm_base.csv``.
        base_name: how messages call that file.
        places: the folders to look in.
        overrides: values of the command line.
    """

    def __init__(self, base: VlmBase, base_name: str, places: Places, overrides: Overrides) -> None:
        self.base = base
        self._base_name = base_name
        self._places = places
        self._overrides = overrides

    def find(
        self, row: Row, backend: str, info: BackendInfo | None, faults: list[Fault], notes: list[str]
    ) -> FoundModel | None:
        """Where a row's model is; None, and a fault, when it is not found."""
        name = row.text("model_name")
        entry = self.base.find(name, backend)
        other = None if entry else self.base.of_other_backends(name)
        known = entry or other
        family = known.family if known else ""
        if info is not None and not info.needs_model_files:
            return FoundModel((entry.path if entry else "") or name, family)
        if known and known.path:
            if other:
                notes.append(
                    f"{row.file}, row {row.number}: {self._base_name} has no row of {name} for {backend}; "
                    f"the folder of its row for {other.backend} is used."
                )
            try:
                return model_at(known.path, self.base.folder)._replace(family=family)
            except CellError as error:
                faults.append(known.row.fault("model_path", str(error), error.hint))
                return None
        found = self._places.model(name)
        if found is None:
            faults.append(row.fault("model_name", f"the model {name!r} is not found.", self._not_found(name, known)))
            return None
        return found._replace(family=family or found.family)

    def spec(self, row: Row, backend: str, info: BackendInfo | None, model_path: str, faults: list[Fault]) -> ModelSpec:
        """What to load for a row: command line, then the row, then ``vlm_base.csv``.

        Without ``info`` the engine options are taken as they are: nothing will be loaded.
        """
        entry = self.base.find(row.text("model_name"), backend)
        fields = self._fields(row, entry, faults)
        options = self._options(row, entry, faults)
        if info is not None:
            checked = check_options(info, options, faults)
            if "device" in fields and (problem := device_problem(info, fields["device"].value)):
                faults.append(fields["device"].fault(f"{problem}.", "Write one of these, or auto."))
        else:
            checked = {name: plain_value(setting.value) for name, setting in options.items()}
        low, high = fields.get("min_pixels"), fields.get("max_pixels")
        if low and high and low.value > high.value:
            faults.append(low.fault(f"min_pixels ({low.value}) is above max_pixels ({high.value})."))
        values = {name: setting.value for name, setting in fields.items()}
        return ModelSpec(model_path=model_path, options=checked, **values)

    def _fields(self, row: Row, entry: BaseModel | None, faults: list[Fault]) -> dict[str, Setting]:
        fields: dict[str, Setting] = {}
        if entry:
            fields = {name: Setting(value, entry.row, name) for name, value in entry.model.items()}
        for name, parser in columns.MODEL.items():
            value = row.parse(name, parser, faults)
            if value is not None:
                fields[name] = Setting(value, row, name)
        given = {name: value for name, value in self._overrides.model.items() if name in columns.MODEL}
        fields.update({name: Setting(value, None, name) for name, value in given.items()})
        return fields

    def _options(self, row: Row, entry: BaseModel | None, faults: list[Fault]) -> dict[str, Setting]:
        options: dict[str, Setting] = {}
        if entry:
            options = {name: Setting(value, entry.row, columns.OPTIONS) for name, value in entry.options.items()}
        own: dict[str, Any] = row.parse(columns.OPTIONS, parse_options, faults) or {}
        options.update({name: Setting(value, row, columns.OPTIONS) for name, value in own.items()})
        options.update({name: Setting(value, None, name) for name, value in self._overrides.options.items()})
        return options

    def _not_found(self, name: str, entry: BaseModel | None) -> str:
        near = nearest(name, [*self._places.model_names(), *(model.name for model in self.base.models)])
        meant = f"Did you mean {near}? " if near and near != name else ""
        folder = self._places.data / "Models"
        if entry:
            where = f"Fill the column model_path in row {entry.row.number} of {self._base_name}"
        else:
            where = f"Add a row for it to {self._base_name} and fill its column model_path"
        return f"{meant}{where} with a folder or a hub id, or put the model's folder into {folder}."


def check_model_overrides(overrides: Overrides, faults: list[Fault]) -> None:
    """Faults of the command line's own ``ModelSpec`` fields."""
    unknown = [name for name in overrides.model if name not in columns.MODEL]
    faults.extend(Fault(message=f"there is no model setting {name!r}.", file="command line") for name in unknown)
    try:
        msgspec.convert({**overrides.model, "model_path": ""}, ModelSpec)
    except msgspec.ValidationError as error:
        faults.append(Fault(message=f"{error}.", file="command line"))
