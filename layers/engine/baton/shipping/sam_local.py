"""`python -m baton.shipping.sam_local`: adapt the built template for `sam local`.

`sam local` gives a function only the variables that its template declares, and it finds no routes of API
Gateway resources in a SAM template. The adapted template is not deployed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from baton.errors import BatonError

BUILT: Final = Path(".aws-sam/build/template.yaml")
NAME: Final = "sam-local.json"
ENV: Final = "env.json"
# Where boto3 finds the AWS API, and Lambda's own, which the local run serves itself. env.json says the addresses.
ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_LAMBDA")
_ROUTE: Final = "AWS::ApiGatewayV2::Route"


class NotBuilt(BatonError):
    """Error for a missing or unsupported built template. The message contains a remedy."""


def main() -> int:
    """Write the file beside the built template. Exit status 1 without a template or without `env.json`."""
    try:
        built: dict[str, Any] = yaml.safe_load(BUILT.read_text("utf-8"))
        document = for_sam_local(built)
    except FileNotFoundError:
        print(f"There is no {BUILT}: build first, with `make build`.", file=sys.stderr)
        return 1
    except NotBuilt as error:
        print(error, file=sys.stderr)
        return 1
    target = BUILT.with_name(NAME)
    target.write_text(json.dumps(document, indent=2, default=str) + "\n", "utf-8")
    print(
        f"{target}: for `sam local invoke FUNCTION -t {target} --env-vars {ENV} -e EVENT`, which needs docker"
    )
    if not Path(ENV).is_file():
        print(f"There is no {ENV}, which says where functions find the local AWS.", file=sys.stderr)
        print(
            "A project has one that was made by this version of Baton: take it from `baton new`.",
            file=sys.stderr,
        )
        return 1
    return 0


def for_sam_local(built: dict[str, Any]) -> dict[str, Any]:
    """Return the built template with the endpoints declared, and its routes as events of their function."""
    document: dict[str, Any] = json.loads(json.dumps(built, default=str))
    variables = document.get("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables")
    resources: dict[str, Any] = document.get("Resources", {})
    if variables is None or not resources:
        raise NotBuilt("The built template has no functions with variables of their own: `make build` again.")
    variables |= dict.fromkeys(ENDPOINTS, "")
    # Routes that depend on a parameter are for pages of other origins.
    always = (r for r in resources.values() if r["Type"] == _ROUTE and "Condition" not in r)
    routes = [r["Properties"]["RouteKey"] for r in always]
    behind = _function_behind(resources)
    document["Resources"] = {
        name: r for name, r in resources.items() if not r["Type"].startswith("AWS::ApiGatewayV2::")
    }
    if behind:
        document["Resources"][behind]["Properties"]["Events"] = {
            f"Route{number}": _event(key) for number, key in enumerate(routes)
        }
    document.pop("Outputs", None)  # they name what has been left out
    return document


def _function_behind(resources: dict[str, Any]) -> str | None:
    """Return the function that the HTTP API forwards its requests to."""
    for resource in resources.values():
        if resource["Type"] == "AWS::ApiGatewayV2::Integration":
            target = resource["Properties"]["IntegrationUri"]["Fn::GetAtt"]
            return str(target[0] if isinstance(target, list) else target.split(".")[0])
    return None


def _event(key: str) -> dict[str, Any]:
    """Return the SAM event of a route: `GET /health`, or `$default` for all other requests."""
    method, _, path = key.partition(" ")
    properties = {"PayloadFormatVersion": "2.0"}
    if path:
        properties |= {"Method": method, "Path": path}
    return {"Type": "HttpApi", "Properties": properties}


if __name__ == "__main__":
    sys.exit(main())
