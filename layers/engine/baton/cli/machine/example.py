"""What `baton up` starts of the example besides its functions: the outside services, a scripted model, and the page of the guest.

How they are started is in services.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.cli.documents.app import DEFAULT_APP
from baton.cli.machine.services import MODELS, MODULES, PAGE, PAGE_MODULE, PROFILE, PROVIDER, Services
from baton.local.functions.model_keys import parameters_of, variables_of
from baton.settings import local_key_variable

INTENTIONS, WORKFLOW = "IntentionWorkflow", "concierge"
GUEST, ROLES = "guest", ("read", "run", "answer")
_KEYS = local_key_variable("MODEL", "")


@dataclass(frozen=True, slots=True)
class Parts:
    """modules: programs by the parameter that takes their address. scripted: there is no key of a model, so a scripted one answers."""

    modules: Mapping[str, str]
    scripted: bool

    def parameters(self, services: Services) -> dict[str, str]:
        """The template's, as far as nothing else is wanted."""
        found = dict(services.parameters)
        if self.scripted:
            found[MODELS] = f"{PROFILE}={found[MODELS]}/v1"
        return found | ({INTENTIONS: WORKFLOW} if PAGE in self.modules else {})

    @property
    def variables(self) -> dict[str, str]:
        """Credentials: the scripted model takes the name of its profile and nothing else."""
        return {local_key_variable("MODEL", PROFILE): PROFILE} if self.scripted else {}


def parts_of(root: Path, app: str, parameters: Mapping[str, str], shell: Mapping[str, str]) -> Parts:
    """The guest's page and its model go with the example's own application."""
    if app != DEFAULT_APP or not (root / PAGE_MODULE.replace(".", "/") / "__main__.py").is_file():
        return Parts(MODULES, scripted=False)
    has_model = MODELS in {**parameters, **parameters_of(shell)} or any(
        name.startswith(_KEYS) for name in variables_of(shell)
    )
    modules = MODULES | {PAGE: PAGE_MODULE} | ({} if has_model else PROVIDER)
    return Parts(modules, scripted=not has_model)
