"""Train a click model on a feature table that does not fit in memory.

The table lies on disk as sub-datasets. One is in memory at a time; `sharded_iterrows` works
through it with `num_worker_threads` threads, and after every few epochs the next one is read.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

NUMERIC, CATEGORICAL, IDS = 24, 4, 500
LOW, HIGH = -3.0, 3.0
COLUMNS = NUMERIC + CATEGORICAL + 1  # the last one is the label


def write_table(folder: Path, sub_datasets: int, rows: int) -> None:
    """Write the feature table, one file a sub-dataset."""
    random = np.random.default_rng(0)
    for number in range(sub_datasets):
        table = random.normal(size=(rows, COLUMNS)).astype(np.float32)
        table[:, NUMERIC:-1] = random.integers(0, IDS, (rows, CATEGORICAL))
        table[:, -1] = table[:, :4].sum(axis=1) > 0
        np.save(folder / f"part_{number}.npy", table)


def read_sub_dataset(folder: Path, number: int) -> np.ndarray:
    """Read one sub-dataset from disk and bring it into the order of training."""
    table = np.load(folder / f"part_{number}.npy")
    order = np.lexsort((table[:, 1], table[:, 0]))  # part of what makes a read slow
    return np.ascontiguousarray(table[order])


def decode_row(row: list[float]) -> list[float]:
    """Turn one row of the table into features: outliers clipped, ids and label as they are."""
    numeric = [
        LOW if value < LOW else HIGH if value > HIGH else value  # noqa: FURB136 - no call a value
        for value in row[:NUMERIC]
    ]
    return numeric + row[NUMERIC:]


def iterate_shard(shard: np.ndarray) -> list[list[float]]:
    """Decode the rows of one worker."""
    return [decode_row(row) for row in shard.tolist()]


def sharded_iterrows(
    table: np.ndarray, batch: int, pool: ThreadPoolExecutor, num_worker_threads: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Work through the table with `num_worker_threads` workers; yield one batch at a time."""
    for start in range(0, len(table) - batch + 1, batch):
        shards = np.array_split(table[start : start + batch], num_worker_threads)
        rows = [row for shard in pool.map(iterate_shard, shards) for row in shard]
        decoded = torch.from_numpy(np.array(rows, dtype=np.float32))
        yield decoded[:, :NUMERIC], decoded[:, NUMERIC:-1].long(), decoded[:, -1]


class ClickModel(nn.Module):
    """Embeddings beside the numeric columns, then a few dense layers."""

    def __init__(self, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(IDS, 8) for _ in range(CATEGORICAL))
        layers: list[nn.Module] = []
        inner = NUMERIC + 8 * CATEGORICAL
        for _ in range(depth):
            layers += [nn.Linear(inner, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.1)]
            inner = width
        self.dense = nn.Sequential(*layers, nn.Linear(inner, 1))

    def forward(self, numeric: Tensor, ids: Tensor) -> Tensor:
        """Logits of a batch."""
        found = [table(ids[:, column]) for column, table in enumerate(self.tables)]
        return self.dense(torch.cat([numeric, *found], dim=1)).squeeze(1)


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[Tensor, Tensor, Tensor]
) -> float:
    """One update of the weights."""
    numeric, ids, labels = batch
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(numeric, ids), labels)
    loss.backward()
    value = loss.item()
    if math.isfinite(value):
        optimizer.step()
    return value


def train(options: argparse.Namespace, folder: Path) -> None:
    """Read sub-dataset after sub-dataset, with several epochs on each."""
    torch.manual_seed(0)
    model = ClickModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    with ThreadPoolExecutor(options.num_worker_threads) as pool:
        for number in range(options.sub_datasets):
            table = read_sub_dataset(folder, number)
            for _ in range(options.epochs):
                batches = sharded_iterrows(table, options.batch, pool, options.num_worker_threads)
                for batch in islice(batches, options.batches):
                    loss = train_step(model, optimizer, batch)
            print(f"sub-dataset {number}: loss {loss:.4f}")


def main() -> None:
    """Write the table to a temporary folder and train on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="rows of a sub-dataset")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--batches", type=int, help="of an epoch; by default all")
    parser.add_argument("--epochs", type=int, default=10, help="epochs on each sub-dataset")
    parser.add_argument("--sub-datasets", type=int, default=3)
    parser.add_argument("--num-worker-threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_table(Path(name), options.sub_datasets, options.rows)
        train(options, Path(name))


if __name__ == "__main__":
    main()
