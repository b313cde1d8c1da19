"""Queries for the lists of a GraphQL schema that could be items, made of what the schema says of itself. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.formats.tables import Part, guess_parts

_TYPE: Final = "kind name ofType { kind name ofType { kind name ofType { kind name } } }"
INTROSPECTION: Final = (
    "query { __schema { queryType { name } types { kind name fields { name args { name defaultValue type {"
    f" {_TYPE} }} }} type {{ {_TYPE} }} }} }} }} }}"
)
MOST_PROPOSALS: Final = 5
MOST_TYPES: Final = 5_000
FIRST: Final = 50  # items a page
_PARTS: Final[tuple[Part, ...]] = ("id", "title", "url", "date", "author", "summary", "content", "image")

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A query for a list of the schema, and the config of a source that asks it."""

    name: str
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    args: Mapping[str, Object]
    type: str  # the name of its innermost type
    is_list: bool
    is_scalar: bool


def propose_query(data: Any) -> list[Proposal]:
    """Queries for the lists whose items have a title or an address, those that say most first."""
    schema = data.get("__schema") if isinstance(data, Mapping) else None
    if not isinstance(schema, Mapping):
        return []
    listed = schema.get("types")
    types = {
        str(each.get("name")): _fields(each)
        for each in (listed if isinstance(listed, list) else [])[:MOST_TYPES]
        if isinstance(each, Mapping)
    }
    root = schema.get("queryType")
    name = str(root.get("name")) if isinstance(root, Mapping) else "Query"
    found = [made for field in types.get(name, {}).values() for made in _propose(field, types)]
    found.sort(key=lambda each: -each[0])
    return [proposal for _, proposal in found[:MOST_PROPOSALS]]


def _fields(described: Object) -> dict[str, _Field]:
    found = {}
    listed = described.get("fields")
    for each in listed if isinstance(listed, list) else ():
        if not isinstance(each, Mapping):
            continue
        args = each.get("args")
        kinds, type_name = _unwrap(each.get("type"))
        found[str(each.get("name"))] = _Field(
            str(each.get("name")),
            {
                str(arg.get("name")): arg
                for arg in (args if isinstance(args, list) else ())
                if isinstance(arg, Mapping)
            },
            type_name,
            "LIST" in kinds,
            bool(kinds) and kinds[-1] in ("SCALAR", "ENUM"),
        )
    return found


def _unwrap(described: Any) -> tuple[list[str], str]:
    """The kinds around a type, outermost first, and its name."""
    kinds: list[str] = []
    while isinstance(described, Mapping):
        kinds.append(str(described.get("kind")))
        if described.get("ofType") is None:
            return kinds, str(described.get("name"))
        described = described["ofType"]
    return kinds, ""


def _propose(field: _Field, types: Mapping[str, Mapping[str, _Field]]) -> Iterator[tuple[int, Proposal]]:
    if any(_is_required(arg) for arg in field.args.values()):
        return
    inside = types.get(field.type, {})
    nodes = inside.get("nodes")
    edges = inside.get("edges")
    if field.is_list:
        item, path, around = inside, field.name, "{}"
    elif nodes is not None and nodes.is_list:
        item, path, around = types.get(nodes.type, {}), f"{field.name}.nodes", "nodes { {} }"
    elif edges is not None and (node := types.get(edges.type, {}).get("node")):
        item, path, around = types.get(node.type, {}), f"{field.name}.edges[].node", "edges { node { {} } }"
    else:
        return
    scalars = [each.name for each in item.values() if each.is_scalar and not each.args]
    guessed = guess_parts(scalars)
    parts = {part: guessed[part] for part in _PARTS if part in guessed}
    if not parts.keys() & {"title", "url"} or not parts.keys() & {"id", "url", "title"}:
        return
    wanted = " ".join(dict.fromkeys(parts.values()))
    pages = not field.is_list and "pageInfo" in inside and "after" in field.args
    variable = "($after: String)" if pages else ""
    given = [f"first: {FIRST}"] if "first" in field.args else []
    given += ["after: $after"] if pages else []
    arguments = f"({', '.join(given)})" if given else ""
    info = " pageInfo { endCursor }" if pages else ""
    body = around.replace("{}", wanted)
    config: dict[str, Any] = {
        "query": f"query{variable} {{ {field.name}{arguments} {{ {body}{info} }} }}",
        "items": path,
        **{str(part): name for part, name in parts.items()},
    }
    if pages:
        config["cursor"] = f"{field.name}.pageInfo.endCursor"
    yield len(parts) + 2 * ("date" in parts) + pages, Proposal(field.name, config)


def _is_required(arg: Object) -> bool:
    said = arg.get("type")
    return isinstance(said, Mapping) and said.get("kind") == "NON_NULL" and arg.get("defaultValue") is None
