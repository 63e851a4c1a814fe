"""What the calls say about themselves in the OpenAPI description."""

from __future__ import annotations

from functools import reduce
from typing import Any

from quadmatch.datasets.turning import AS_GIVEN, AUTO, ORIENTATIONS
from quadmatch.own_images.answer import read_schema

INTRODUCTION = (
    "Matches keypoints of two pictures under a quadratic constraint. Nothing that is sent is stored; "
    "features of the last pictures stay in memory. "
    'Every refusal is JSON: {"error": {"code", "message"}}.'
)
FILE = {"type": "string", "format": "binary"}
POINTS = {"type": "string", "description": "JSON [[x, y], …] in pixels of the upright picture.", "default": "[]"}
POINT_LIST = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
INDEX_LIST = {"type": "array", "items": {"type": "integer"}}
PAIR_LIST = {"type": "array", "items": INDEX_LIST}
NAME_LIST = {"type": ["array", "null"], "items": {"type": "string"}}
BOX = {"type": ["array", "null"], "items": {"type": "number"}}
NAMES = {"type": "string", "description": "JSON with a name for each point.", "default": ""}
PART = {"type": "string", "description": "The part of the picture to look at: x0,y0,x1,y1.", "default": ""}
REFUSALS = {
    400: "A field is missing or wrong.",
    403: "The request comes from another site.",
    408: "The upload paused for too long, or took too long.",
    413: "A file, a picture or a list of points is too large.",
    415: "No picture, or a broken one.",
    503: "Busy, or no match in time; `Retry-After` has the seconds until what came before is expected to be done.",
}


def describe_answer() -> dict[str, Any]:
    """Fields of a match, from the schema of what every door of the package writes."""
    schema = read_schema("matches")
    fields: dict[str, Any] = _inline(schema["$defs"]["match"]["properties"], schema)
    return {name: field for name, field in fields.items() if name != "row"}


def _inline(part: Any, schema: dict[str, Any]) -> Any:
    """A part of a schema with what it refers to in place: addresses within it mean nothing elsewhere."""
    if isinstance(part, list):
        return [_inline(one, schema) for one in part]
    if not isinstance(part, dict):
        return part
    own = {key: _inline(value, schema) for key, value in part.items() if key != "$ref"}
    if "$ref" not in part:
        return own
    target = reduce(dict.__getitem__, part["$ref"].removeprefix("#/").split("/"), schema)
    return _inline(target, schema) | own


def describe_json(properties: dict[str, Any]) -> dict[str, Any]:
    """A JSON object as the content of an answer."""
    return {"application/json": {"schema": {"type": "object", "properties": properties}}}


def describe_form(required: list[str], **fields: dict[str, Any]) -> dict[str, Any]:
    """The body of a call that takes a multipart form."""
    schema = {"type": "object", "required": required, "properties": fields}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def describe_call(
    summary: str, content: dict[str, Any], body: dict[str, Any] | None = None, **more: str
) -> dict[str, Any]:
    """Keywords of a route."""
    refusals = REFUSALS if body else {}
    statuses = {int(name.removeprefix("status_")): text for name, text in more.items()}
    responses: dict[int, Any] = {200: {"description": "The answer.", "content": content}}
    responses |= {status: {"description": text} for status, text in sorted({**refusals, **statuses}.items())}
    return {"summary": summary, "responses": responses, "openapi_extra": body, "response_model": None}


NO_EXAMPLE = "There is no such example."
STATUS = describe_call(
    "The model, the limits, the examples, and how many batches had how many pairs",
    describe_json(
        {
            "version": {"type": "string"},
            "model": {"type": "string"},
            "models": {"type": "array", "items": {"type": "object"}},
            "limits": {"type": "object"},
            "examples": {"type": "array", "items": {"type": "object"}},
            "batches": INDEX_LIST,
        }
    ),
)
EXAMPLE = describe_call(
    "Keypoints of an example, and which belong together",
    describe_json({"points_a": POINT_LIST, "points_b": POINT_LIST, "truth": PAIR_LIST}),
    status_404=NO_EXAMPLE,
)
EXAMPLE_PICTURE = describe_call("A picture of an example, a or b", {"image/png": {}}, status_404=NO_EXAMPLE)
PICTURE = describe_call(
    "A picture as the page shows it: upright, in RGB, as JPEG; its true size is in X-Picture-Width and -Height",
    {"image/jpeg": {}},
    describe_form(["image"], image=FILE),
)
POINTS_FILE = describe_call(
    "Read a file of points as the command line does: JSON, CSV, TPS, labelme's, CVAT's or COCO's format",
    describe_json({"points": POINT_LIST, "names": NAME_LIST, "box": BOX}),
    describe_form(
        ["file", "width", "height"],
        file=FILE,
        width={"type": "integer", "minimum": 1},
        height={"type": "integer", "minimum": 1},
        image={
            "type": "string",
            "default": "",
            "description": "The picture's file name, by which files of many pictures (TPS, CVAT, COCO) find it.",
        },
    ),
)
DETECT = describe_call(
    "Find keypoints in a picture",
    describe_json({"points": POINT_LIST}),
    describe_form(["image"], image=FILE, count={"type": "integer", "minimum": 1, "default": 30}),
    status_501="No detector is installed.",
)
MATCH = describe_call(
    "Match the keypoints of two pictures, with the quadratic constraint and without",
    describe_json(describe_answer()),
    describe_form(
        ["image_a", "image_b"],
        image_a=FILE,
        image_b=FILE,
        points_a=POINTS,
        points_b=POINTS,
        **{f"names_{side}": NAMES for side in "ab"},
        **{f"box_{side}": PART for side in "ab"},
        partial={"type": "boolean", "default": False, "description": "Leave points alone that match nothing well."},
        orientation={
            "type": "string",
            "enum": [AUTO, *ORIENTATIONS],
            "default": AS_GIVEN,
            "description": "How the second picture is turned, in degrees clockwise; auto tries all.",
        },
        model={"type": "string", "default": "", "description": "One that the status lists; else the server's own."},
    ),
)
