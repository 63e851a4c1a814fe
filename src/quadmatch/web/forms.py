"""Forms as they come in: read into memory only, and refused as soon as a limit is passed."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from quadmatch.datasets.texts import is_text
from quadmatch.web.arrivals import Arrivals
from quadmatch.web.uploads import Refused, too_large

FIELDS = 10
TEXT = 256 * 1024
"""Bytes of a field that is no file."""


async def read_form(request: Request, arrivals: Arrivals, *, files: int) -> FormData:
    """The fields of a multipart request, its files in memory; refused as soon as a limit is passed."""
    limits = arrivals.limits
    most = files * limits.bytes + FIELDS * TEXT
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refused(415, "not-multipart", "The request must be multipart/form-data.")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_large(limits)

    async with arrivals.watch(request.client.host if request.client else "") as arrival:

        async def stream() -> AsyncGenerator[bytes, None]:
            size = 0
            async for chunk in request.stream():
                arrival.hear()
                size += len(chunk)
                if size > most:
                    raise too_large(limits)
                yield chunk

        return await parse_form(request, stream(), files, most)


async def parse_form(request: Request, stream: AsyncGenerator[bytes, None], files: int, most: int) -> FormData:
    """The fields of a form of at most so many bytes, all of whose texts can be sent back."""
    parser = MultiPartParser(request.headers, stream, max_files=files, max_fields=FIELDS, max_part_size=TEXT)
    for name in ("spool_max_size", "max_file_size"):  # As versions call it.
        setattr(parser, name, most + 1)  # Beyond it a part would go to a temporary file.
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, UnicodeError) as error:
        raise Refused(400, "bad-form", f"The form cannot be read: {error}.") from None
    for name, part in form.multi_items():
        text = (part.filename or "") if isinstance(part, UploadFile) else part
        if not is_text(name + text):
            raise Refused(400, "bad-form", f"The field {name!a} has half a character, which is no text.")
    return form
