"""The server does what its own OpenAPI document says: schemathesis tries what the document allows, and what not."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from kaiwa.server.app import ENDPOINTS
from kaiwa.server.openapi import document
from live import MODEL, Live, serve
from small_model import says

EXAMPLES = 12
OPERATIONS = [(endpoint.method, endpoint.path.replace(":path", "")) for endpoint in ENDPOINTS]


def described() -> dict[str, Any]:
    """The document, with the names of models narrowed to the one that is there."""
    described = document(ENDPOINTS)
    for schema in described["components"]["schemas"].values():
        if schema.get("additionalProperties") is False and "model" in schema["properties"]:
            schema["properties"]["model"] = {"const": MODEL}
    for operations in described["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = {"const": MODEL}
    return described


def is_not_in_the_document(error: dict[str, Any]) -> bool:
    """How fields go together, which responses are kept, and what the model itself refuses: it knows no fields."""
    is_the_models = error.get("code") == "invalid_value" and error["param"] is None
    # Anthropic's errors have no code.
    return is_the_models or error.get("code") in ("incompatible_parameters", "previous_response_not_found", None)


def test_every_endpoint_is_described(echo: Live) -> None:
    with echo.http() as client:
        page = client.get("/docs").text
        assert client.get("/openapi.json").json() == document(ENDPOINTS)
    for method, path in OPERATIONS:
        assert f"{method} {path}" in page
    assert "src=" not in page
    assert "://" not in page


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[" ".join(pair) for pair in OPERATIONS])
def test_the_server_keeps_to_its_description(method: str, path: str, mode: GenerationMode) -> None:
    operation = schemathesis.openapi.from_dict(described())[path][method]
    if mode is GenerationMode.NEGATIVE and operation.definition.raw.get("requestBody") is None:
        pytest.skip("it takes nothing that could be wrong")

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        response = case.call(base_url=live.url)
        contradicts = response.status_code == 400 and is_not_in_the_document(response.json()["error"])
        case.validate_response(response, excluded_checks=[positive_data_acceptance] if contradicts else [])

    with serve(says("It is.")) as live:
        check()
