"""From template.yaml to plain CloudFormation: reads the file and lets the official SAM translator expand it.

Local paths travel through the translator as S3 keys of a made-up bucket (it accepts no paths) and are
found again by `local_path`. Intrinsic functions are left as they are (see resolve.py).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import yaml

from baton.local.aws.ministack import REGION
from baton.local.processes.problems import LocalRunError, TemplateProblem

BUCKET = "baton-local"
_PATHS = ("CodeUri", "ContentUri", "DefinitionUri")


class _AnyPolicy(dict[str, str]):
    """Stands in for the map of AWS managed policies: the local run has no permissions to grant."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"arn:aws:iam::aws:policy/{name}"

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


@dataclass(frozen=True)
class Template:
    """The expanded document and the file it came from."""

    path: Path
    document: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.document.get("Parameters") or {}

    @property
    def resources(self) -> Mapping[str, Any]:
        return self.document.get("Resources") or {}

    def of_type(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Logical id and resource of every resource of that type, conditions not looked at."""
        for logical_id, resource in self.resources.items():
            if resource.get("Type") == kind:
                yield logical_id, resource

    def local_path(self, logical_id: str, key: object) -> Path:
        """The file or folder that a code location of the template means."""
        path = self.path.parent / str(key)
        if not path.exists():
            raise TemplateProblem(
                logical_id, f"{path} does not exist (paths are relative to {self.path.name})"
            )
        return path.resolve()


def load(path: Path, parameters: Mapping[str, Any]) -> Template:
    """Reads and expands. Raises `LocalRunError` for a file that is missing, malformed or not valid SAM."""
    return Template(path, _expand(path, _read(path), parameters))


def defaults(path: Path) -> dict[str, str]:
    """The default of each parameter that has one. Nothing is expanded. Raises as `load` does."""
    declared = _read(path).get("Parameters") or {}
    return {name: str(spec["Default"]) for name, spec in declared.items() if "Default" in spec}


def parse(text: str) -> Any:
    """A template as it is written, with the short forms of intrinsic functions written out. Raises `yaml.YAMLError`."""
    return yaml.load(text, _loader())  # noqa: S506  # a subclass of the safe loader: it builds no objects


@cache
def _loader() -> Any:
    """libyaml's, where PyYAML has it: in Python alone, reading the template takes longer than all else of a start."""
    from samtranslator.yaml_helper import (  # type: ignore[import-untyped]  # has no stubs
        intrinsics_multi_constructor,
    )

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("TemplateLoader", (safe,), {})
    loader.add_multi_constructor("!", intrinsics_multi_constructor)
    return loader


def _read(path: Path) -> dict[str, Any]:
    try:
        document = parse(path.read_text("utf-8"))
    except OSError as error:
        raise LocalRunError(f"template: {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise LocalRunError(f"template: {path} is not valid YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise LocalRunError(f"template: {path} has no section Resources")
    return document


def _expand(path: Path, document: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here: it takes 0.4 s, and MiniStack starts meanwhile.
    from samtranslator.model.exceptions import (  # type: ignore[import-untyped]  # has no stubs
        InvalidDocumentException,
    )
    from samtranslator.parser.parser import Parser  # type: ignore[import-untyped]  # has no stubs
    from samtranslator.translator.translator import (  # type: ignore[import-untyped]  # has no stubs
        Translator,
    )

    logging.getLogger("samtranslator").setLevel(logging.ERROR)  # it warns that its own metrics go nowhere
    document = copy.deepcopy(document)
    for resource in document["Resources"].values():
        properties = resource.get("Properties") if isinstance(resource, dict) else None
        for name in _PATHS:
            if isinstance(properties, dict) and isinstance(properties.get(name), str):
                properties[name] = f"s3://{BUCKET}/{properties[name].removeprefix('./')}"
    declared = document.get("Parameters") or {}
    values = {name: value for name, value in parameters.items() if name in declared}
    translator = Translator(_AnyPolicy(), Parser(), boto_session=boto3.Session(region_name=REGION))
    try:
        expanded: dict[str, Any] = translator.translate(document, values)
    except InvalidDocumentException as error:
        causes = "; ".join(cause.message for cause in error.causes) or error.message
        raise LocalRunError(f"template: {path} is not valid: {causes}") from error
    return expanded
