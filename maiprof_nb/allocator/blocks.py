"""Segments and the chain of blocks that tiles each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from maiprof_nb.allocator.rules import DEFAULT_POOL

PoolKey = tuple[int, bool, str]


@dataclass(slots=True, eq=False)
class Block:
    """A piece of a segment: in use, free, or (expandable segments) not mapped."""

    address: int
    size_bytes: int
    segment: Segment = field(repr=False)
    requested_bytes: int = 0
    allocated: bool = False
    frames: Any = field(default_factory=list)
    mapped: bool = True
    before: Block | None = field(default=None, repr=False)
    after: Block | None = field(default=None, repr=False)

    @property
    def free(self) -> bool:
        """Mapped, and not in use."""
        return self.mapped and not self.allocated


@dataclass(slots=True, eq=False)
class Segment:
    """Memory taken from the device; its blocks tile it in address order."""

    address: int
    size_bytes: int
    stream: int
    small: bool
    frames: Any = field(default_factory=list)
    pool_id: str = DEFAULT_POOL
    expandable: bool = False
    first: Block = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.first = Block(self.address, self.size_bytes, self)

    @property
    def blocks(self) -> list[Block]:
        """Its blocks in address order."""
        return list(self._chain())

    @property
    def key(self) -> PoolKey:
        """Where its free blocks are kept."""
        return self.stream, self.small, self.pool_id

    @property
    def wholly_free(self) -> bool:
        """Nothing in it is in use."""
        return not self.expandable and self.first.after is None and self.first.free

    def _chain(self) -> Iterator[Block]:
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.after


def cut(block: Block, size_bytes: int) -> Block:
    """Keep the first `size_bytes`; the rest as a new block behind."""
    rest = Block(
        block.address + size_bytes, block.size_bytes - size_bytes, block.segment,
        before=block, after=block.after,
    )  # fmt: skip
    if rest.after is not None:
        rest.after.before = rest
    block.size_bytes, block.after = size_bytes, rest
    return rest


def joined(block: Block, alike: Callable[[Block], bool]) -> Block:
    """The block with those beside it that are alike: the first of them, grown."""
    after, before = block.after, block.before
    if after is not None and alike(after):
        _absorb(block, after)
    if before is not None and alike(before):
        _absorb(before, block)
        return before
    return block


def _absorb(block: Block, after: Block) -> None:
    block.size_bytes += after.size_bytes
    block.after = after.after
    if block.after is not None:
        block.after.before = block


def room(block: Block) -> int:
    """Its bytes, and those not yet mapped right behind it."""
    after = block.after
    return block.size_bytes + (after.size_bytes if after is not None and not after.mapped else 0)


def stretch(block: Block | None, wanted: int) -> int:
    """Bytes from here on that are not in use, as far as they matter."""
    total = 0
    while block is not None and not block.allocated and total < wanted:
        total += block.size_bytes
        block = block.after
    return total
