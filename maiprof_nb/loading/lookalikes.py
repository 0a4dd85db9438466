"""Files that are often taken for a recording: what each is, and what to give instead."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from maiprof_nb.loading import memory_timeline, speedscope
from maiprof_nb.loading.metric_formats import METRICS

HEAD_BYTES = 64 * 2**10
JSON_HEAD_BYTES = 512 * 2**10  # metadata before the events reaches tens of kB

_UTF8_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\0"
_GIVE_TRACE = "Give the trace that torch.profiler's export_chrome_trace or Kineto wrote"
_GIVE_SNAPSHOT = "Give the pickle that torch.cuda.memory._dump_snapshot wrote"
_GIVE_QUERY = (
    "Record with nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw "
    "--format=csv -l 1"
)
_GIVE_METRICS = (
    "Metrics are read from nvidia-smi, DCGM, Prometheus, rocm-smi, amd-smi and other samplers, "
    "as a course over time"
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is not read.

    Parameters
    ----------
    problem : str
        What the file is, as the end of a sentence that begins with its name.
    remedy : str
        What to give instead.
    """

    problem: str
    remedy: str


_MAGIC = (  # bytes at a position
    (0, b"version https://git-lfs.github.com/spec/", Refusal(
        "is a Git LFS pointer: the file itself was not downloaded", "Fetch it with git lfs pull")),
    (0, b"PK\x03\x04", Refusal(
        "is a zip archive (perhaps a torch.save checkpoint)",
        "Unpack it, and give the trace or snapshot inside")),
    (257, b"ustar", Refusal("is a tar archive", "Unpack it, and give the files inside")),
    (0, b"\x28\xb5\x2f\xfd", Refusal("is compressed with zstd", "Unpack it with zstd -d first")),
    (0, b"\xfd7zXZ\0", Refusal("is compressed with xz", "Unpack it with xz -d first")),
    (0, b"BZh", Refusal("is compressed with bzip2", "Unpack it with bzip2 -d first")),
    (0, b"SQLite format 3\0", Refusal(
        "is an SQLite database (perhaps of Nsight Systems)", _GIVE_TRACE)),
)  # fmt: skip

_HTML = re.compile(
    rb"\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype html|html)\b", re.IGNORECASE | re.DOTALL
)

_TEXTS = (  # a pattern near the beginning of a text file
    (re.compile(rb"\A(?!timestamp,)[\w,]{0,2000}(?:gpu_energy_kwh|total_co2_kg)\b"), Refusal(
        "is a summary of energy and emissions without any time", _GIVE_METRICS)),
    (re.compile(rb"^-[- ]+$[^\n]*\n.*\bSelf CPU %", re.MULTILINE), Refusal(
        "is the printed table of torch.profiler's key_averages()", _GIVE_TRACE)),
)  # fmt: skip

_SMI_TABLE = re.compile(rb"^\| NVIDIA-SMI \d", re.MULTILINE)
_SMI_ROW = re.compile(
    rb"^(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, "
    rb"|(?:[^,\n]*, )*\d+(?:\.\d+)? (?:MiB|W|MHz|%)(?:, |$))",
    re.MULTILINE,
)

_TRACE_KEYS = frozenset({"traceEvents", "schemaVersion", "deviceProperties", "distributedInfo"})
_OBJECTS = (  # keys at the top of a JSON object
    (frozenset({"schema", "nodes"}), Refusal(
        "is a PyTorch execution trace (operators and their data, without times)",
        f"{_GIVE_TRACE} of the same run")),
    (frozenset({"workload_graph"}), Refusal(
        "is a Chakra execution trace in JSON", f"{_GIVE_TRACE} of the same run")),
    (frozenset({"status", "data"}), Refusal(
        "is an answer of the Prometheus API that holds no samples (perhaps a list of labels)",
        "Ask /api/v1/query_range for the metrics of the time of the job")),
    (frozenset({"_runtime", "_timestamp"}), Refusal(
        "is a Weights & Biases log of training metrics, without system metrics",
        "Give wandb-events.jsonl, whose keys begin with system.")),
)  # fmt: skip


def reason(data: bytes) -> Refusal | None:
    """Say what the file is if it is a known look-alike; None if a reader may try.

    Looks at the beginning only; a JSON object of unknown make is searched for ``traceEvents``.
    """
    if not data[:HEAD_BYTES].strip(_BLANK) and not data.strip(_BLANK):
        return Refusal("is empty", "Record again; the program may have ended before it was written")
    for at, mark, refusal in _MAGIC:
        if data.startswith(mark, at):
            return refusal
    head = data[:HEAD_BYTES].removeprefix(_UTF8_MARK)
    start = head.lstrip()[:1]
    if any(known.sniff(head) for known in METRICS):
        return None
    if start in _JSON:
        return _JSON[start](data)
    return _page(head) if _HTML.match(head) else _text(head)


def _page(head: bytes) -> Refusal:
    if b"Memory Timeline" in head:
        return Refusal(
            "is the page of export_memory_timeline, which holds a picture and no numbers",
            f"{_GIVE_SNAPSHOT}, or export the timeline again to a path that ends in .raw.json.gz",
        )
    return Refusal("is a web page", _GIVE_TRACE)


def _text(head: bytes) -> Refusal | None:
    for pattern, refusal in _TEXTS:
        if pattern.search(head):
            return refusal
    if _SMI_TABLE.search(head):
        return Refusal("is the table that nvidia-smi prints, one moment as a picture", _GIVE_QUERY)
    if _SMI_ROW.match(head):
        return Refusal(
            "is an nvidia-smi query log without its header line, so its columns have no names",
            f"{_GIVE_QUERY} (not noheader), or put the header line back",
        )
    return None


def _object(data: bytes) -> Refusal | None:
    keys, whole = _top_keys(_json_head(data))
    if keys & _TRACE_KEYS or speedscope.sniff(data):
        return None
    for signature, refusal in _OBJECTS:
        if signature <= keys:
            return refusal
    if whole and not keys:
        return Refusal("is an empty JSON object", _GIVE_TRACE)
    if b'"traceEvents"' in data:
        return None
    shown = ", ".join(sorted(keys)[:4])
    held = f" (it has {shown})" if shown else ""
    return Refusal(f"is a JSON object without traceEvents{held}", _GIVE_TRACE)


def _list(data: bytes) -> Refusal | None:
    if memory_timeline.sniff(data):
        return None
    head = _json_head(data).lstrip()[1:].lstrip()
    if head.startswith("["):
        return Refusal("is a JSON list of lists of no known make", _GIVE_TRACE)
    try:
        first, _ = json.JSONDecoder().raw_decode(head)
    except (ValueError, RecursionError):
        return None  # an empty list, or damage: the trace reader says which
    if not isinstance(first, dict):
        return Refusal("is a JSON list of plain values", _GIVE_TRACE)
    if "ph" in first:
        return None
    return Refusal("is a JSON list of objects that are no trace events", _GIVE_TRACE)


def _json_head(data: bytes) -> str:
    return data[:JSON_HEAD_BYTES].removeprefix(_UTF8_MARK).decode("utf-8", "replace")


def _top_keys(text: str) -> tuple[set[str], bool]:
    """Keys of the outermost object as far as they can be read, and whether it was read whole."""
    decoder = json.JSONDecoder()
    keys: set[str] = set()
    at = text.index("{") + 1
    try:
        while True:
            at = _skip_blank(text, at)
            if text[at] == "}":
                return keys, True
            key, at = decoder.raw_decode(text, at)
            at = _skip_blank(text, at)
            if not isinstance(key, str) or text[at] != ":":
                return keys, False
            keys.add(key)
            if key in _TRACE_KEYS:
                return keys, False
            _, at = decoder.raw_decode(text, _skip_blank(text, at + 1))
            at = _skip_blank(text, at)
            at += text[at] == ","
    except (ValueError, IndexError, RecursionError):
        return keys, False


def _skip_blank(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


_JSON = {b"{": _object, b"[": _list}  # by the first character
