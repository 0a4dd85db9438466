"""What a trace says about its devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maiprof_nb.analysis.device_peaks import Peaks, has_tensor_cores, peaks_of
from maiprof_nb.session import Session


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Properties of one device as its trace states them; None where it does not."""

    recording: int
    device: int | None
    name: str
    memory_bytes: int | None
    multiprocessors: int | None
    compute_major: int | None

    @property
    def peaks(self) -> Peaks | None:
        """Peak rates, if the kind of device is known."""
        return peaks_of(self.name, self.memory_bytes)

    @property
    def tensor_cores(self) -> bool | None:
        """Whether it has tensor cores, if that can be told."""
        return has_tensor_cores(self.name, self.compute_major)


def device_facts(session: Session, recording: int, device: int | None) -> DeviceFacts:
    """Facts of one device of one recording; unknown ones are None or an empty name."""
    meta = session.recordings[recording].meta
    listed = meta.get("deviceProperties") or meta.get("computeProperties") or []
    entry = _entry([one for one in listed if isinstance(one, dict)], device)
    return DeviceFacts(
        recording=recording,
        device=device,
        name=str(entry.get("name") or ""),
        memory_bytes=_whole(entry.get("totalGlobalMem")),
        multiprocessors=_whole(entry.get("numSms", entry.get("multiProcessorCount"))),
        compute_major=_whole(entry.get("computeMajor", entry.get("major"))),
    )


def _entry(listed: list[dict[str, Any]], device: int | None) -> dict[str, Any]:
    """The entry of the device; one with no number of its own stands for all alike."""
    by_id = [one for one in listed if one.get("id") == device and device is not None]
    if by_id:
        return by_id[0]
    names = {one.get("name") for one in listed}
    return listed[0] if len(names) == 1 else {}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
