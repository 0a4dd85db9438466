"""Python pickles read as plain data: nothing in the file can name, import or call anything."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from maiprof_nb.errors import LoadError

_INT_BITS = 64
_REMEDY = "Give the file that torch.cuda.memory._dump_snapshot wrote"
_NO_CODE = "Snapshots are plain data; do not trust a file that brings code with it"

# What one look takes in: opcodes without text of a stated length, and tuples of plain integers.
# Refused is a memo index from 2**26 on: the unpickler fills its memo up to the largest index, so
# that a file of 20 bytes could ask for 64 GiB. Odd are, because of what they do as a dict's key,
# - integers of more than 64 bits: they can be chosen to collide;
# - tuples of anything else: a tuple in a tuple in a tuple ... is hashed by recursion in C, which
#   ends the process, or takes for ever where each holds the one before many times.
# No snapshot seen has any. A file with odd values is read by Python's slow unpickler, which lets
# us look at each key.
_INTEGER = rb"(?:K.|M..|J.{4}|I-?[0-9]{1,20}\n)"
_SHORT_TUPLE = rb"(?:\x85|" + _INTEGER + rb"(?:\x86|" + _INTEGER + rb"\x87))?"
_FIXED = re.compile(  # the commonest first
    rb"(?:h.|j.{4}|[)012NQRab}de\]losu\x81\x88\x89\x8f-\x94\x97\x98]++"
    rb"|\x8a(?:\x06.{6}|\x00|\x01.|\x02.{2}|\x03.{3}|\x04.{4}|\x05.{5}"
    rb"|\x07.{7}|\x08.{8}|\x09.{9})"
    rb"|J.{4}" + _SHORT_TUPLE + rb"|M.." + _SHORT_TUPLE + rb"|K." + _SHORT_TUPLE + rb"|\((?:"
    + _INTEGER + rb"*+t)?|[q\x80\x82].|\x83..|r...[\x00-\x03]|[G\x95].{8}"
    rb"|[IL]-?[0-9]{1,20}L?\n|[FSVgP][^\n]*\n|p[0-9]{1,7}\n|[ci][^\n]*\n[^\n]*\n)*+",
    re.DOTALL,
)  # fmt: skip
_STOP = b"."
_LONG_TEXT = b"L"
_ODD = frozenset((b"t", b"\x85", b"\x86", b"\x87", b"\x8a", b"\x8b", b"L"))
_LENGTH_BYTES = {  # opcodes followed by a length of so many bytes, and then that much text
    **dict.fromkeys((b"t", b"\x85", b"\x86", b"\x87"), 0),
    **dict.fromkeys((b"\x8c", b"U", b"C", b"\x8a"), 1),
    **dict.fromkeys((b"X", b"T", b"B", b"\x8b"), 4),
    **dict.fromkeys((b"\x8d", b"\x8e", b"\x96"), 8),
}


class _Refusals:
    """Refuses every name and every persistent object."""

    where = ""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise LoadError(
            f"the pickle asks for {module}.{name}, and nothing is imported from a recording",
            where=self.where,
            remedy=_NO_CODE,
        )

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002 - pickle gives it
        raise LoadError(
            "the pickle refers to objects outside of itself",
            where=self.where,
            remedy=_REMEDY,
        )


class _Fast(_Refusals, pickle.Unpickler):
    """The unpickler written in C."""


_SLOW: dict[int, Any] = dict(pickle._Unpickler.dispatch)  # noqa: SLF001


class _Careful(_Refusals, pickle._Unpickler):  # noqa: SLF001 - documented as the one in Python
    """The unpickler written in Python, which takes plain keys only; 40 times slower."""

    dispatch: ClassVar[dict[int, Any]] = dict(_SLOW)
    stack: list[Any]

    def _one_item(self) -> None:
        _check_keys(self.stack[-2:-1])
        _SLOW[ord("s")](self)

    def _items(self) -> None:
        _check_keys(self.stack[::2])
        _SLOW[ord("u")](self)

    def _dict(self) -> None:
        _check_keys(self.stack[::2])
        _SLOW[ord("d")](self)

    def _set(self) -> NoReturn:
        raise ValueError("it holds a set")

    dispatch[ord("s")] = _one_item
    dispatch[ord("u")] = _items
    dispatch[ord("d")] = _dict
    dispatch[0x90] = dispatch[0x91] = _set


def _check_keys(keys: Sequence[Any]) -> None:
    for key in keys:
        plain = key is None or isinstance(key, str | bytes | float)
        if not plain and not (isinstance(key, int) and key.bit_length() <= _INT_BITS):
            raise ValueError(f"a key is of type {type(key).__name__} or out of range")


def plain_data(data: bytes, where: str) -> Any:
    """Unpickle dicts, lists, tuples, text and numbers; anything else is refused.

    Raises
    ------
    LoadError
        If the pickle names a class or function, is damaged or cut, or would exhaust memory,
        the processor or the stack.
    """
    unpickler = (_Careful if _odd_values(data, where) else _Fast)(io.BytesIO(data))
    unpickler.where = where
    try:
        return unpickler.load()
    except LoadError:
        raise
    except Exception as problem:  # a damaged pickle can raise nearly anything
        raise _damaged(where, f"{type(problem).__name__}: {problem}") from problem


def _odd_values(data: bytes, where: str) -> int:
    """Walk over the opcodes without running them (about 70 MB a second)."""
    at = odd = 0
    while at < len(data):
        found = _FIXED.match(data, at)
        at = found.end() if found else at
        opcode = data[at : at + 1]
        if opcode == _STOP:
            return odd
        odd += opcode in _ODD
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
