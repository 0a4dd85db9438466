"""The feature table: sub-datasets on disk, decoded row by row by a pool of threads."""

from __future__ import annotations

from contextlib import ExitStack

from maiprof_nb.collection.simulation.machine import Machine, Thread
from maiprof_nb.collection.simulation.scenarios import Scenario

CATEGORICAL_COLUMNS = 12
_FIRST_TID = 4101
_TABLE = "recommender/table.py"
_LOADER = "torch/utils/data/dataloader.py"
_PLAN_NS = 18_000_000  # whatever the size of the batch
_DECODE_NS_PER_ROW = 2_249  # on one thread
_SERIAL_NS_PER_ROW = 26  # putting the shards together
_READ_NS_PER_ROW = 8_900  # of a sub-dataset, on one thread: disk and decompression
_CHUNKS = 3


class WorkerPool:
    """The threads of ``sharded_iterrows(..., num_worker_threads=N)``."""

    def __init__(self, machine: Machine, scenario: Scenario, now_ns: int) -> None:
        self.scenario = scenario
        self.threads = [
            Thread(machine, _FIRST_TID + number, f"thread {_FIRST_TID + number} (python)", now_ns)
            for number in range(scenario.num_worker_threads)
        ]
        self._open = ExitStack()
        for thread in self.threads:
            self._open.enter_context(thread.frame("threading.py", 1014, "_bootstrap"))
            self._open.enter_context(thread.frame("threading.py", 1057, "_bootstrap_inner"))
            self._open.enter_context(thread.frame("threading.py", 994, "run"))
            self._open.enter_context(thread.frame("concurrent/futures/thread.py", 69, "_worker"))

    def close(self, now_ns: int) -> None:
        """End the threads."""
        for thread in self.threads:
            thread.now_ns = now_ns
        self._open.close()

    def begin_epoch(self, main: Thread) -> None:
        """What ``iter(loader)`` does: a new iterator over the sub-dataset."""
        with (
            main.machine.because("input/rows", main),
            main.frame(_LOADER, 492, "__iter__"),
            main.frame(_LOADER, 433, "_get_iterator"),
            main.frame(_LOADER, 758, "__init__"),
            main.frame(_LOADER, 627, "__init__"),
        ):
            main.work(46_000)

    def next_batch(self, main: Thread, *, read: bool) -> None:
        """What ``next(loader)`` does on the main thread while the pool decodes a batch."""
        with (
            main.frame(_LOADER, 720, "__next__"),
            main.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            main.frame(_LOADER, 783, "_next_data"),
            main.frame("torch/utils/data/_utils/fetch.py", 32, "fetch"),
            main.frame(_TABLE, 58, "sharded_iterrows", 71) as frame,
        ):
            if read:
                with main.machine.because("input/sub-dataset", main):
                    self._read(main)
            with main.machine.because("input/rows", main):
                frame.line = 75
                with (
                    main.frame(_TABLE, 14, "plan_shards", 18),
                    main.builtin("<built-in method permutation>"),
                ):
                    main.work(_PLAN_NS)
                frame.line = 77
                self._decode(main)

    def _read(self, main: Thread) -> None:
        share = self.scenario.rows_per_sub_dataset * _READ_NS_PER_ROW // len(self.threads)
        with main.frame(_TABLE, 31, "read_sub_dataset", 39):
            for thread in self.threads:
                thread.now_ns = main.now_ns
                with (
                    thread.frame("concurrent/futures/thread.py", 53, "run"),
                    thread.frame(_TABLE, 22, "read_shard", 26),
                    thread.frame("numpy/lib/_npyio_impl.py", 312, "load"),
                    thread.builtin("<built-in function fromfile>"),
                ):
                    thread.work(share)
            self._join(main)

    def _decode(self, main: Thread) -> None:
        rows = self.scenario.rows_per_batch
        share = rows * _DECODE_NS_PER_ROW // len(self.threads)
        for thread in self.threads:
            thread.now_ns = main.now_ns
            with (
                thread.frame("concurrent/futures/thread.py", 53, "run"),
                thread.frame(_TABLE, 44, "iterate_shard", 50),
            ):
                for _ in range(_CHUNKS):
                    with thread.frame(_TABLE, 84, "decode_row", 90):
                        thread.work(share // _CHUNKS)
        self._join(main)
        with main.builtin("<built-in function concatenate>"):
            main.work(rows * _SERIAL_NS_PER_ROW)

    def _join(self, main: Thread) -> None:
        with (
            main.frame("concurrent/futures/_base.py", 428, "result"),
            main.frame("threading.py", 337, "wait"),
            main.builtin("<method 'acquire' of '_thread.lock' objects>"),
        ):
            main.now_ns = max(main.now_ns, *(thread.now_ns for thread in self.threads))
            main.work(24_000)
