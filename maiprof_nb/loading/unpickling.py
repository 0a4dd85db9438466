"""Python pickles read as plain data: nothing in the file can name, import or call anything."""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

from maiprof_nb.errors import LoadError

_REMEDY = "Give the file that torch.cuda.memory._dump_snapshot wrote"
_NO_CODE = "Snapshots are plain data; do not trust a file that brings code with it"

MAX_ODD = 1_000  # values of kinds that no snapshot has

# What one look takes in: opcodes without text of a stated length, and tuples of plain integers.
# Refused is a memo index from 2**26 on: the unpickler fills its memo up to the largest index, so
# that a file of 20 bytes could ask for 64 GiB. Counted as odd are
# - integers of more than 64 bits: as keys of a dict they can be chosen to collide;
# - tuples of anything else: as a key of a dict, a tuple in a tuple in a tuple ... is hashed by
#   recursion in C, which ends the process at some 100 000 levels.
_INTEGER = rb"(?:K.|M..|J.{4}|I-?[0-9]{1,20}\n)"
_SHORT_TUPLE = rb"(?:\x85|" + _INTEGER + rb"(?:\x86|" + _INTEGER + rb"\x87))?"
_FIXED = re.compile(
    rb"(?:[)012NQRab}de\]losu\x81\x88\x89\x8f-\x94\x97\x98]"
    rb"|h.|K." + _SHORT_TUPLE + rb"|\((?:" + _INTEGER + rb"*+t)?"
    rb"|[q\x80\x82].|M.." + _SHORT_TUPLE + rb"|\x83..|J.{4}" + _SHORT_TUPLE + rb"|j.{4}"
    rb"|r...[\x00-\x03]|[G\x95].{8}|\x8a(?:\x00|\x01.|\x02.{2}|\x03.{3}|\x04.{4}|\x05.{5}"
    rb"|\x06.{6}|\x07.{7}|\x08.{8}|\x09.{9})"
    rb"|[IL]-?[0-9]{1,20}L?\n|[FSVgP][^\n]*\n|p[0-9]{1,7}\n|[ci][^\n]*\n[^\n]*\n)*+",
    re.DOTALL,
)
_STOP = b"."
_LONG_TEXT = b"L"
_ODD = frozenset((b"t", b"\x85", b"\x86", b"\x87", b"\x8a", b"\x8b", b"L"))
_LENGTH_BYTES = {  # opcodes followed by a length of so many bytes, and then that much text
    **dict.fromkeys((b"t", b"\x85", b"\x86", b"\x87"), 0),
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
        If the pickle names a class or function, is damaged or cut, or would exhaust memory,
        the processor or the stack.
    """
    _check_opcodes(data, where)
    try:
        return _PlainUnpickler(data, where).load()
    except LoadError:
        raise
    except Exception as problem:  # a damaged pickle can raise nearly anything
        raise _damaged(where, f"{type(problem).__name__}: {problem}") from problem


def _check_opcodes(data: bytes, where: str) -> None:
    """Walk over the opcodes without running them (about 70 MB a second)."""
    at = odd = 0
    while at < len(data):
        found = _FIXED.match(data, at)
        at = found.end() if found else at
        opcode = data[at : at + 1]
        if opcode == _STOP:
            return
        if opcode in _ODD:
            odd += 1
            if odd > MAX_ODD:
                raise _damaged(where, f"more than {MAX_ODD} nested tuples or very large numbers")
        if opcode == _LONG_TEXT:
            at = data.find(b"\n", at) + 1 or len(data)
            continue
        width = _LENGTH_BYTES.get(opcode)
        if width is None:
            break
        at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
    detail = "it ends early" if at >= len(data) else f"byte {data[at]:#04x} at position {at}"
    raise _damaged(where, detail)


def _damaged(where: str, detail: str) -> LoadError:
    return LoadError(f"is not a readable pickle ({detail})", where=where, remedy=_REMEDY)
