"""The API browser shows every operation, from the application's own description of itself."""

from headwater.web.pages.reference import example_of
from tests.web.pages.conftest import Visitor


def test_every_operation_is_shown_with_its_fields(visitor: Visitor) -> None:
    document = visitor.client.get("/api/openapi.json").json()
    page = visitor.see("/api/docs")
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert page.count('<details class="operation"') == len(operations)
    assert all(f'id="{each["operationId"]}"' in page for each in operations)
    assert "https://" not in page.partition("<main")[0], "nothing is loaded from elsewhere"


def test_examples_end_where_schemas_name_themselves() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "in": {"$ref": "#/components/schemas/T"}},
    }
    made = example_of({"components": {"schemas": {"T": tree}}}, {"$ref": "#/components/schemas/T"})
    assert made["name"] == "…"
    assert str(made).count("name") < 6
