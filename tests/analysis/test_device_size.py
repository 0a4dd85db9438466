"""How much memory a device has, by each source that says so."""

from __future__ import annotations

from maiprof_nb import Session
from maiprof_nb.analysis.active_memory import memory_devices
from maiprof_nb.analysis.device_size import DeviceSize, device_size
from tests.findings.tiny_memory import FORWARD, GIB, MIB, Job
from tests.shipped_samples import loaded, truth
from tests.tiny_traces import kernel, session


def size_of(given: Session) -> DeviceSize | None:
    return device_size(given, memory_devices(given)[0])


def test_a_snapshot_alone_does_not_say() -> None:
    job = Job()
    job.take(GIB, FORWARD)
    assert size_of(job.session()) is None


def test_the_trace_beside_it_says() -> None:
    job = Job()
    job.take(GIB, FORWARD)
    trace = session(
        kernel(1000, 5), deviceProperties=[{"id": 0, "name": "GPU", "totalGlobalMem": 10 * GIB}]
    )
    found = size_of(Session([*trace.recordings, *job.session().recordings]))
    assert found is not None
    assert found.size_bytes == 10 * GIB


def test_a_failed_request_says_what_the_job_could_have_had() -> None:
    job = Job()
    job.take(GIB, FORWARD)
    job.oom(300 * MIB, 50 * MIB)
    found = size_of(job.session())
    assert found is not None
    assert found.size_bytes == GIB + 50 * MIB
    known = size_of(loaded("oom"))
    assert known is not None
    assert known.size_bytes == truth("oom")["device_bytes"]


def test_the_sampler_of_the_sample_says() -> None:
    found = size_of(loaded("leak"))
    assert found is not None
    assert found.size_bytes == truth("leak")["metrics"]["memory_total_mib"] * MIB
