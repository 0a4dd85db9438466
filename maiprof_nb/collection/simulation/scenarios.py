"""The states of the case study's job: before, and after each fix on top of the earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scenario:
    """One state of the simulated job.

    Parameters
    ----------
    name : str
        Short name, also the name of its folder.
    change : str
        The edit that made it out of the state before.
    seed : int
        Seed of the jitter; nothing else in a run is random.
    rows_per_batch : int
        Rows of the feature table in one step.
    steps_per_epoch : int
        Steps for one pass over the sub-dataset in memory.
    first_step, steps : int
        The recorded steps: ``ProfilerStep#first_step`` and so many of them.
    num_worker_threads : int
        Threads that decode the rows of a batch.
    numeric_columns : int
        Columns of the table that are numbers.
    blocks : int
        Hidden blocks of the model.
    pretrained_items : int
        Rows of the frozen embedding table, which takes half of the memory in use.
    mixed_precision : bool
        Whether autocast and a gradient scaler are used.
    multi_tensor : bool
        Whether the optimizer updates all parameters with a few kernels (``foreach``).
    pinned : bool
        Whether batches come from pinned memory, and are copied while the host goes on.
    sends : int
        How often a step copies its batch to the device.
    checks : bool
        Whether a value of every layer's output is read back.
    leak : bool
        Whether every step's last hidden activations are kept in a list.
    """

    name: str
    change: str
    seed: int
    rows_per_batch: int = 393_216
    steps_per_epoch: int = 2
    first_step: int = 4
    steps: int = 48
    num_worker_threads: int = 2
    numeric_columns: int = 256
    blocks: int = 6
    pretrained_items: int = 38_800_000
    mixed_precision: bool = False
    multi_tensor: bool = False
    pinned: bool = False
    sends: int = 1
    checks: bool = False
    leak: bool = False

    @property
    def steps_per_sub_dataset(self) -> int:
        """After so many steps the next sub-dataset is read from disk (10 epochs)."""
        return 10 * self.steps_per_epoch

    @property
    def rows_per_sub_dataset(self) -> int:
        """Rows of one sub-dataset."""
        return self.rows_per_batch * self.steps_per_epoch


_before = Scenario("before", "the job as it was found", seed=20_240_501)
_workers = replace(
    _before, name="workers", change="num_worker_threads=16, the host's cores", num_worker_threads=16
)
_batch = replace(
    _workers,
    name="batch",
    change="batch size doubled",
    rows_per_batch=2 * _before.rows_per_batch,
    steps_per_epoch=1,
    first_step=2,
    steps=24,
)
_amp = replace(_batch, name="amp", change="autocast and GradScaler", mixed_precision=True)
_optimizer = replace(_amp, name="optimizer", change="AdamW(foreach=True)", multi_tensor=True)

CASE_STUDY = (_before, _workers, _batch, _amp, _optimizer)

LEAK = Scenario(
    "leak",
    "every step's last hidden activations are appended to a list",
    seed=20_240_502,
    rows_per_batch=98_304,
    pretrained_items=400_000,
    steps=36,
    num_worker_threads=16,
    blocks=2,
    multi_tensor=True,
    leak=True,
)

SCENARIOS = {scenario.name: scenario for scenario in (*CASE_STUDY, LEAK)}
