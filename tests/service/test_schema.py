"""What is served is what the OpenAPI document says: schemathesis, all checks, requests right and wrong."""

import os

import pytest

pytest.importorskip("fastapi")
schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from recsys.service import create_app

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
HEADERS = {"Authorization": "Bearer secret"}
OPERATIONS = [
    ("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("POST", "/recommend"), ("POST", "/similar"),
    ("POST", "/explain"), ("POST", "/events"), ("GET", "/users/{user}/recommendations"),
    ("GET", "/items/{item}/similar"), ("PUT", "/item-sets/{name}"), ("GET", "/item-sets/{name}"),
    ("DELETE", "/item-sets/{name}"), ("POST", "/scores"), ("POST", "/rules"), ("GET", "/users/{user}/similar"),
]  # fmt: skip
MANY = settings(
    max_examples=int(os.environ.get("RECSYS_SCHEMA_EXAMPLES", "100")), deadline=None, database=None,
    derandomize=True, suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def schema(path):
    config = schemathesis.Config.from_dict({
        # A request of the right shape may ask for what the model does not have, or name an item twice.
        "checks": {"positive_data_acceptance": {"expected-statuses": [200, 404, 422]}},
    })  # fmt: skip
    app = create_app(path, token="secret")
    return schemathesis.openapi.from_asgi("/openapi.json", app, config=config, headers=HEADERS)


def test_every_operation_is_tried(schema):
    found = {(one.ok().method.upper(), one.ok().path) for one in schema.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(
    "method, url, mode",
    [(*one, GenerationMode.POSITIVE) for one in OPERATIONS]
    # The first three take nothing that could be wrong.
    + [(*one, GenerationMode.NEGATIVE) for one in OPERATIONS[3:]],
)
def test_served_as_described(schema, method, url, mode):
    operation = schema[url][method]

    @MANY
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        case.call_and_validate(headers=HEADERS)

    ask()
