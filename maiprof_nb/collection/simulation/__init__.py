"""A simulator of one training job: host threads, a device, its memory, on one clock.

It writes what a real run would leave behind (Kineto trace, memory snapshot, two metrics
logs) together with the truth that no real run can state: why the device was idle, how long
each phase took, how much memory leaks. Every file it writes says that it is simulated.
"""

from maiprof_nb.collection.simulation.files import recording_files
from maiprof_nb.collection.simulation.scenarios import CASE_STUDY, LEAK, SCENARIOS, Scenario
from maiprof_nb.collection.simulation.training import Run, simulate

__all__ = ["CASE_STUDY", "LEAK", "SCENARIOS", "Run", "Scenario", "recording_files", "simulate"]
