"""Python pickles read as plain data: nothing in the file can name, import or call anything."""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

from maiprof_nb.errors import LoadError

_REMEDY = "Give the file that torch.cuda.memory._dump_snapshot wrote"
_NO_CODE = "Snapshots are plain data; do not trust a file that brings code with it"

# Opcodes without text of a stated length. Memo indices stay below 2**26 because the unpickler
# fills its memo up to the largest index: a file of 20 bytes could ask for 64 GiB.
_FIXED = re.compile(
    rb"(?:[()012NQRab}de\]lostu\x81\x85-\x89\x8f-\x94\x97\x98]"
    rb"|[Khq\x80\x82].|[M\x83]..|[Jj\x84]....|r...[\x00-\x03]|[G\x95].{8}"
    rb"|[IFLSVgP][^\n]*\n|p[0-9]{1,7}\n|[ci][^\n]*\n[^\n]*\n)*+",
    re.DOTALL,
)
_STOP = b"."
_LENGTH_BYTES = {  # opcodes followed by a length of so many bytes, and then that much text
    **dict.fromkeys((b"\x8c", b"U", b"C", b"\x8a"), 1),
    **dict.fromkeys((b"X", b"T", b"B", b"\x8b"), 4),
    **dict.fromkeys((b"\x8d", b"\x8e", b"\x96"), 8),
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that refuses every name and every persistent object."""

    def __init__(self, data: bytes, where: str) -> None:
        super().__init__(io.BytesIO(data))
        self._where = where

    def find_class(self, module: str, name: str) -> NoReturn:
        raise LoadError(
            f"the pickle asks for {module}.{name}, and nothing is imported from a recording",
            where=self._where,
            remedy=_NO_CODE,
        )

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002 - pickle gives it
        raise LoadError(
            "the pickle refers to objects outside of itself",
            where=self._where,
            remedy=_REMEDY,
        )


def plain_data(data: bytes, where: str) -> Any:
    """Unpickle dicts, lists, tuples, text and numbers; anything else is refused.

    Raises
    ------
    LoadError
        If the pickle names a class or function, is damaged or cut, or would exhaust memory.
    """
    _check_opcodes(data, where)
    try:
        return _PlainUnpickler(data, where).load()
    except LoadError:
        raise
    except Exception as problem:  # a damaged pickle can raise nearly anything
        raise _damaged(where, f"{type(problem).__name__}: {problem}") from problem


def _check_opcodes(data: bytes, where: str) -> None:
    """Walk over the opcodes without running them (about 60 MB a second)."""
    at = 0
    while at < len(data):
        found = _FIXED.match(data, at)
        at = found.end() if found else at
        opcode = data[at : at + 1]
        if opcode == _STOP:
            return
        width = _LENGTH_BYTES.get(opcode)
        if width is None:
            break
        at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
    detail = "it ends early" if at >= len(data) else f"byte {data[at]:#04x} at position {at}"
    raise _damaged(where, detail)


def _damaged(where: str, detail: str) -> LoadError:
    return LoadError(f"is not a readable pickle ({detail})", where=where, remedy=_REMEDY)
