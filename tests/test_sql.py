"""SQL over a session gives what the tables give."""

from __future__ import annotations

from pathlib import Path

import pytest

import maiprof_nb

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "case_study" / "before"
pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def session() -> maiprof_nb.Session:
    return maiprof_nb.load(SAMPLE)


@pytest.mark.parametrize(
    "table", ["kernels", "operators", "counters", "allocations", "steps", "blocks"]
)
def test_rows_and_times_are_those_of_the_tables(session: maiprof_nb.Session, table: str) -> None:
    frame = session.table(table)
    time = "ts_ns" if "ts_ns" in frame else "size_bytes"
    answer = session.sql(f"select count(*) n, min({time}) lo, max({time}) hi from {table}")
    assert answer.iloc[0].tolist() == [len(frame), frame[time].min(), frame[time].max()]


def test_missing_values_are_nulls(session: maiprof_nb.Session) -> None:
    frame = session.table("allocations")
    living = session.sql("select count(*) n from allocations where end_ns is null")["n"][0]
    assert living == frame["end_ns"].isna().sum() > 0


def test_tables_join_across_recordings(session: maiprof_nb.Session) -> None:
    answer = session.sql(
        "select s.step, count(*) n from kernels k join steps s on k.ts_ns between s.ts_ns and "
        "s.ts_ns + s.dur_ns group by s.step"
    )
    assert len(answer) > 10


def test_a_table_nobody_recorded_is_empty(session: maiprof_nb.Session) -> None:
    assert session.sql("select * from memory_events").empty


@pytest.mark.parametrize(
    "query",
    [
        "select nonsense from kernels",
        "selec",
        "select * from read_csv('/etc/hostname')",
        "copy kernels to '/tmp/stolen.csv'",
        "attach '/tmp/x.db'",
        "set enable_external_access = true",
        "install httpfs",
    ],
)
def test_what_cannot_or_may_not_be_answered_is_one_sentence(
    session: maiprof_nb.Session, query: str
) -> None:
    with pytest.raises(maiprof_nb.UsageError, match="cannot be answered"):
        session.sql(query)
