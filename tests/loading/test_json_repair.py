"""What damaged traces lose, and that every repair is said with its count."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import maiprof_nb
from maiprof_nb.errors import LoadError
from maiprof_nb.loading import kineto

CORPUS = Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
BROKEN = CORPUS / "kineto" / "derived-broken"
NEEDS_CORPUS = pytest.mark.skipif(
    not BROKEN.is_dir(), reason=f"no corpus at {CORPUS}: set MAIPROF_CORPUS"
)
# Events, kernels of category `kernel`, steps: as the corpus's own table counts them, where it
# does; notes: what was done to the file, in the words of the table's last column.
READABLE = {
    "alexnet.gz-cut-at-60pct.json.gz": (837, 14, 0, {"gzip-cut": 1, "cut": 1}),
    "alexnet.negative-null-missing-dur.json.gz": (
        1408,
        79,
        0,
        {"negative-duration": 2, "duration-missing": 2},
    ),
    "bert.json-cut-mid-event.json.gz": (841, 0, 1, {"cut": 1}),
    "bert.unescaped-quote-in-name.json.gz": (2550, 60, 1, {"event-lost": 1}),
    "event-sync.NaN.json.gz": (149, 3, 0, {"not-a-number": 3}),
    "event-sync.bare-inf.json.gz": (149, 3, 0, {"bare-number": 3}),
    "gp100.double-gzip.json.gz": (1344, 130, 0, {"gzip-twice": 1}),
    "gp100.plain-json-named-gz.json.gz": (1344, 130, 0, {}),
    "mi250.bom-crlf.json.gz": (220, 14, 2, {"byte-order-mark": 1}),
    "mi250.trailing-comma.json.gz": (220, 14, 2, {"trailing-comma": 1}),
    "no-events.json": (0, 0, 0, {"no-events": 1}),
    "triton.bad-utf8-in-name.json.gz": (246, 12, 0, {"bad-utf8": 2}),
    "triton.raw-control-char.json.gz": (246, 12, 0, {"control-characters": 1}),
    "zoology.gzip-without-extension.json": (1784, 0, 0, {}),
    "zoology.unquoted-NA.json.gz": (1784, 0, 0, {"bare-number": 1}),
}
REFUSED = {"empty-file.json": "is empty", "empty-object.json": "is an empty JSON object"}
QUIET = {"rank-unknown", "rank-from-name", "read-with-repairs"}


@NEEDS_CORPUS
def test_every_broken_file_is_tested():
    assert {path.name for path in BROKEN.iterdir()} == set(READABLE) | set(REFUSED)


@NEEDS_CORPUS
@pytest.mark.parametrize("name", READABLE)
def test_what_can_be_read_of_a_broken_file_is_read(name):
    events, kernels, steps, notes = READABLE[name]
    (recording,) = maiprof_nb.load(BROKEN / name).recordings
    assert sum(recording.events.values()) == events
    assert recording.events.get("X/kernel", 0) == kernels
    assert len(recording.table("steps")) == steps
    found = {note.code: note.count for note in recording.notes if note.code not in QUIET}
    assert found == notes


@NEEDS_CORPUS
@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_nothing_is_refused(name):
    with pytest.raises(LoadError, match=REFUSED[name]) as refusal:
        maiprof_nb.load(BROKEN / name)
    assert name in refusal.value.sentence


def event(number: int, more: str = "") -> str:
    return f'{{"ph": "X", "cat": "cpu_op", "name": "op{number}", "ts": {number}, "dur": 1{more}}}'


GOOD = [event(number) for number in range(4)]


def read(text: str | bytes):
    """Names of the operators, notes by code, and the recording."""
    data = text.encode() if isinstance(text, str) else text
    found = kineto.read(data, "trace.json")
    notes = {note.code: note.count for note in found.notes if note.code not in QUIET}
    return found.table("operators")["name"].tolist(), notes, found


def whole(*events: str, before: str = "", after: str = "") -> str:
    return f'{{{before}"traceEvents": [{", ".join(events)}]{after}}}'


def test_well_formed_needs_no_repair():
    names, notes, found = read(whole(*GOOD))
    assert names == ["op0", "op1", "op2", "op3"]
    assert notes == {}
    assert "read-with-repairs" not in {note.code for note in found.notes}


@pytest.mark.parametrize("place", range(1, 5))
def test_cut_between_events(place):
    names, notes, _ = read(whole(*GOOD[:place])[:-2])
    assert names == [f"op{number}" for number in range(place)]
    assert notes == {"cut": 1}


def test_cut_anywhere_keeps_all_events_before():
    text = whole(*GOOD)
    ends = [text.index(one) + len(one) for one in GOOD]
    for length in sorted({*range(len('{"traceEvents": ['), len(text) - 1, 5), *ends}):
        names, notes, _ = read(text[:length])
        assert len(names) == sum(end <= length for end in ends), length
        assert "cut" in notes, length


def test_cut_before_the_events():
    names, notes, _ = read('{"schemaVersion": 1, "traceEvents"')
    assert names == []
    assert notes == {"no-events": 1}


@pytest.mark.parametrize("end", [", ]}", ",]}", ",\n\n]}", ", , ]}"])
def test_trailing_comma(end):
    names, notes, _ = read('{"traceEvents": [' + ", ".join(GOOD) + end)
    assert len(names) == 4
    assert notes == {"trailing-comma": 1}


def test_a_list_without_its_end_is_legal_for_chrome():
    names, notes, _ = read("[" + ",\n".join(GOOD) + ",\n")
    assert len(names) == 4
    assert notes == {"cut": 1}


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_python_writes(token):
    odd = event(9, f', "args": {{"bandwidth": {token}}}')
    names, notes, _ = read(whole(GOOD[0], odd, GOOD[1]))
    assert names == ["op0", "op9", "op1"]
    assert notes == {"not-a-number": 1}


@pytest.mark.parametrize("token", ["inf", "-inf", "nan", "-nan", "N/A", "None", "undefined"])
def test_tokens_that_are_no_json(token):
    odd = event(9, f', "args": {{"bandwidth": {token}, "x": [{token}, 1]}}')
    names, notes, _ = read(whole(GOOD[0], odd, GOOD[1]))
    assert names == ["op0", "op9", "op1"]
    assert notes == {"bare-number": 2}


def test_a_token_inside_a_text_is_no_token():
    odd = event(9, ', "args": {"note": "a: NaN, inf, N/A]", "x": inf}')
    _, notes, _ = read(whole(odd))
    assert notes["bare-number"] == 1


def test_a_token_in_the_metadata():
    before = '"deviceProperties": [{"id": 0, "sharedMem": N/A}], '
    names, notes, found = read(whole(*GOOD, before=before))
    assert len(names) == 4
    assert notes == {"bare-number": 1}
    assert found.meta["deviceProperties"] == [{"id": 0, "sharedMem": None}]


def test_backslashes_of_windows_paths():
    odd = GOOD[0].replace("op0", r"C:\Users\x\new.py(3): f")
    names, notes, _ = read(whole(odd, GOOD[1]))
    assert names == [r"C:\Users\x\new.py(3): f", "op1"]
    assert notes == {"bad-escape": 2}  # \U and \x; then \n is none either


def test_control_characters_are_kept():
    names, notes, _ = read(whole(GOOD[0].replace("op0", "a\x01b\x1fc"), GOOD[1]))
    assert names == ["a\x01b\x1fc", "op1"]
    assert notes == {"control-characters": 2}


def test_bytes_that_are_no_text():
    data = whole(*GOOD).encode().replace(b"op1", b"o\xff\xc3(1")
    names, notes, _ = read(data)
    assert names[1] == "o\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}(1"
    assert notes == {"bad-utf8": 2}


def test_halves_of_surrogate_pairs():
    pair = r"\ud83d\ude00"
    odd = [GOOD[0].replace("op0", text) for text in (r"\ud800 x", r"y\udc00", pair, r"\\ud800")]
    names, notes, _ = read(whole(*odd))
    mark = "\N{REPLACEMENT CHARACTER}"
    assert names == [f"{mark} x", f"y{mark}", "\N{GRINNING FACE}", r"\ud800"]
    assert notes == {"half-character": 2}


@pytest.mark.parametrize("place", range(4))
def test_an_unescaped_quote_loses_exactly_its_event(place):
    """As kineto pull request 1459 mends it in the writer."""
    events = list(GOOD)
    events[place] = events[place].replace("op", 'a "quoted" name')
    names, notes, found = read(whole(*events))
    assert names == [f"op{number}" for number in range(4) if number != place]
    assert notes in ({"event-lost": 1}, {"cut": 1})
    said = next(note.text for note in found.notes if note.code in notes)
    assert '"X", "cat"' in said  # the loss is shown, to be found again


def test_an_unescaped_quote_in_the_args_loses_exactly_its_event():
    odd = event(9, ', "args": {"f": "say "hi"", "g": {"ph": "no event"}}')
    names, notes, _ = read(whole(GOOD[0], odd, *GOOD[1:]))
    assert names == ["op0", "op1", "op2", "op3"]
    assert notes == {"event-lost": 1}


def test_metadata_behind_a_broken_event_counts():
    odd = GOOD[1].replace("op1", 'a "b')
    _, _, found = read(whole(GOOD[0], odd, GOOD[2], after=', "distributedInfo": {"rank": 5}'))
    assert found.meta == {"distributedInfo": {"rank": 5}}


def test_something_else_in_the_list_is_noted():
    names, notes, _ = read(whole(GOOD[0], "17", GOOD[1], '"text"', GOOD[2]))
    assert names == ["op0", "op1", "op2"]
    assert notes == {"event-lost": 2}


def test_an_event_without_phase_is_kept_in_a_damaged_file_too():
    _, _, found = read(whole('{"name": "no phase"}', event(9, ', "args": {"x": inf}')))
    assert found.events == {"/": 1, "X/cpu_op": 1}


def test_times_stay_exact_in_a_damaged_file():
    """Absolute microseconds with decimals, as in hta-ns-resolution, and a token to repair."""
    odd = '{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1712195524123456.001, "dur": 1}'
    last = odd.replace("456.001", "456.458").replace('"dur": 1', '"dur": 1, "args": {"x": inf}')
    _, notes, found = read(whole(odd, last))
    assert notes == {"bare-number": 1}
    assert found.table("operators")["ts_ns"].tolist() == [0, 457]
    assert found.clock.epoch_ns == 1_712_195_524_123_456_001


def test_a_byte_order_mark_before_a_damaged_list():
    names, notes, _ = read(b"\xef\xbb\xbf[" + ",".join(GOOD).encode())
    assert len(names) == 4
    assert notes == {"byte-order-mark": 1, "cut": 1}


def test_types_that_do_not_fit_are_no_end():
    odd = '{"ph": 5, "cat": ["x"], "name": {"a": 1}, "ts": [1], "dur": {}, "pid": null}'
    names, _, found = read(whole(GOOD[0], odd))
    assert names == ["op0"]
    assert sum(found.events.values()) == 2


def test_deep_nesting_is_no_crash():
    deep = "[" * 100_000 + "]" * 100_000
    names, notes, _ = read(whole(GOOD[0], event(9, f', "args": {deep}'), GOOD[1]))
    assert names[0] == "op0"
    assert set(notes) <= {"event-lost", "cut", "metadata-lost"}
