"""Every fault at every op, for every victim, when all are idle, wait, or are at calls, over shared memory and TCP: ./dev soak groups."""
import itertools
import os

import cuts
import cycles
import faults
import networks
import pytest
import strangers

WHEN = "idle", "waiting", "amid"


def is_case(name, op, victim, when):
    if when == "amid" and not faults.FAULTS[name].is_sudden:
        return False
    return name != "memory" or op != "barrier"  # barrier has no tensor


def pairs():
    """Returns the cases of a shard, such as YOKE_SHARD=3/8. Most of their time is waiting."""
    shard, shards = map(int, os.environ.get("YOKE_SHARD", "0/1").split("/"))
    all_of_them = [(name, op, victim, when, shared, size) for name, op, when, shared, size in itertools.product(faults.FAULTS, faults.OPS, WHEN, (1, 0), (2, 3, 4))
                   for victim in range(size) if is_case(name, op, victim, when)]
    return all_of_them[shard::shards]


@pytest.mark.parametrize("fault, op, victim, when, shared, size", pairs())
def test_the_rank_that_fails_is_named_on_all_others(fault, op, victim, when, shared, size):
    faults.try_fault(faults.FAULTS[fault], op, victim, when, size=size, shared=shared)


@pytest.mark.parametrize("kind, size, shared", itertools.product(faults.DIFFERENT, (2, 3, 4), (1, 0)))
def test_calls_that_do_not_fit_are_shown_to_all(kind, size, shared):
    for other in range(1, size):
        faults.try_difference(kind, other, size=size, shared=shared)


@pytest.mark.skipif(bool(networks.why_not()), reason=networks.why_not() or "there is a reason")
@pytest.mark.parametrize("how, when, size, by_silence, op",
                         [each for each in itertools.product(cuts.WAYS, ("idle", "amid"), (2, 4), (True, False), ("all_reduce", "all_to_all", "barrier"))]
                         + [(how, "init", 2, True, "") for how in cuts.WAYS])
def test_hosts_that_are_cut_off_from_each_other_both_know_it(how, when, size, by_silence, op):
    cuts.try_cut(how, when, size, by_silence, op)


@pytest.mark.parametrize("shared", [1, 0])
def test_strangers_at_every_port_change_nothing(shared):
    strangers.try_all(seconds=30, shared=shared)


@pytest.mark.parametrize("shared", [1, 0])
def test_fifty_failures_that_are_overcome_leave_nothing(shared, tmp_path):
    cycles.try_cycles(50, tmp_path, shared)
