"""Even teeth, teeth that are most of the peak, and curves without any."""

from __future__ import annotations

from maiprof_nb.analysis.active_memory import memory_log
from maiprof_nb.analysis.kv_cache import cache_growth
from tests.findings.asking import finding
from tests.findings.tiny_memory import KIB, MIB, Job, training

RULE = "memory-sawtooth"


def test_teeth_lower_than_the_floor_are_healthy() -> None:
    found = finding(training(20).session(), RULE)  # 100 MiB stay, 4 x 16 + 1 come and go
    assert found.outcome == "passed"
    # 15 events a step, one each microsecond
    assert "one every 15.0 µs, 65.0 MiB high over a floor of 100 MiB" in found.title
    assert "the peak of 165 MiB lies in phase forward" not in found.title  # made by train()
    assert "39.4 % of the peak" in found.title  # 65 / 165


def test_teeth_above_the_floor_are_a_statement() -> None:
    found = finding(training(20, tooth=400).session(), RULE)
    assert (found.outcome, found.severity) == ("found", "low")
    assert found.size_bytes == 401 * MIB
    assert "80.0 % of the peak comes and goes" in found.title  # 401 / 501
    assert found.evidence[0]["line"] == "forward (/job/model.py:10)"
    assert (found.evidence[0]["blocks"], found.evidence[0]["size_bytes"]) == (4, 400 * MIB)


def test_a_rising_floor_is_left_to_the_leak() -> None:
    found = finding(training(20, left=3).session(), RULE)
    assert found.outcome == "passed"
    assert "see memory-leak" in found.title


def test_a_cache_made_anew_for_every_token() -> None:
    job = Job()
    job.take(100 * MIB, "__init__ (/job/model.py:5)")
    for _ in range(8):  # generations of 10 tokens; 4 tensors grow by 32 KiB a token each
        cache = [job.take(32 * KIB, "update (/job/kv_cache.py:7)") for _ in range(4)]
        for token in range(2, 11):
            for i in range(4):
                made = job.take(token * 32 * KIB, "update (/job/kv_cache.py:7)")
                job.give(cache[i])
                cache[i] = made
        job.give(*cache)
    found = finding(job.session(), RULE)
    assert found.outcome == "passed"
    assert "holds 128 KiB a token x 10 tokens = 1.25 MiB" in found.title


def test_bytes_a_token_times_tokens_are_the_height_of_a_tooth() -> None:
    """131 072 B x 2 000 tokens = 262 144 000 B: keys and values of 64 KiB a token each."""
    job = Job()
    job.take(100 * MIB, "__init__ (/job/model.py:5)")
    cache = [job.take(64 * KIB, "update (/job/kv_cache.py:7)") for _ in range(2)]
    for tokens in range(2, 2_001):
        for i in range(2):
            made = job.take(tokens * 64 * KIB, "update (/job/kv_cache.py:7)")
            job.give(cache[i])
            cache[i] = made
    job.give(*cache)
    growth = cache_growth(memory_log(job.session()))
    assert growth is not None
    assert (growth.bytes_per_token, growth.tokens, growth.size_bytes) == (
        131_072, 2_000, 262_144_000,
    )  # fmt: skip


def test_a_peak_in_the_optimizer_is_said() -> None:
    job = training(20)
    job.give(job.take(200 * MIB, "step (/torch/optim/adamw.py:99)"))
    assert "lies in the optimizer's step" in finding(job.session(), RULE).title


def test_without_cycles_it_does_not_apply() -> None:
    assert finding(training(2).session(), RULE).outcome == "not-applicable"
