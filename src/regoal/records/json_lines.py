"""JSON files and JSON lines: written so that a kill costs at most the last line, read with care.

Writers append whole lines. Readers leave out a last line that a kill has cut, and name the line of
any other fault.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from regoal.errors import UsageError
from regoal.system.files import write_bytes_atomically, write_text_atomically

JsonObject = dict[str, object]


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write one JSON object, indented, all of it or nothing."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_text_atomically(path, text + "\n")


def read_json(path: Path) -> JsonObject:
    """Read one JSON object. Raises `UsageError` if the file is missing or holds none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    return _json_object(data, str(path))


def json_line(record: Mapping[str, object]) -> str:
    """One record as a line. Numbers that are not finite are null: JSON has no name for them."""
    return json.dumps(_finite(record), ensure_ascii=False, allow_nan=False) + "\n"


def write_json_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    """Replace a file of records, all of it or nothing."""
    write_text_atomically(path, "".join(map(json_line, records)))


def append_json_line(path: Path, record: Mapping[str, object]) -> None:
    """Append one record as one line, in a single write.

    What a kill left of an unfinished last line is cut first.
    """
    line = json_line(record)
    if path.is_file() and not _ends_with_newline(path):
        write_bytes_atomically(path, _whole_lines(path.read_bytes()))
    try:
        with path.open("ab") as stream:
            stream.write(line.encode("utf-8"))
    except OSError as error:
        error.filename = str(path)  # a failed write does not name its file
        raise


def read_jsonl(path: Path) -> list[JsonObject]:
    """All records of a file, none if it does not exist yet; an unfinished last line is left out.

    Raises `UsageError` with file and line if any other line is not a JSON object.
    """
    if not path.is_file():
        return []
    records = []
    for number, line in enumerate(_whole_lines(path.read_bytes()).splitlines(), start=1):
        records.append(_json_object(line, f"{path}, line {number}"))
    return records


def _json_object(data: bytes, where: str) -> JsonObject:
    """The JSON object in `data`. Raises `UsageError`, beginning with `where`, for anything else."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise UsageError(f"{where} is not JSON: it is nested too deeply.") from None
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{where} must hold a JSON object.")
    return value


def as_float(value: object) -> float:
    """A JSON number as a float, NaN for null and for whatever is no number or too large for one."""
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # JSON has whole numbers of any size
        return math.nan


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as stream:
        if stream.seek(0, os.SEEK_END) == 0:
            return True
        stream.seek(-1, os.SEEK_END)
        return stream.read() == b"\n"


def _whole_lines(data: bytes) -> bytes:
    """The lines that were written to their end: a kill can only have cut the last one.

    A last line that is whole but for its line end, as editors leave it, counts.
    """
    end = data.rfind(b"\n") + 1
    try:
        json.loads(data[end:])
    except (ValueError, RecursionError):
        return data[:end]
    return data + b"\n"


def _finite(value: object) -> object:
    """The value with null for every number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
