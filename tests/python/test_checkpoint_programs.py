"""Random programs with checkpoint scopes in one another: gradients, outside memory and random numbers as without them.

Values are written in place, masked, drawn and cast between scopes that open and close anywhere, with every kind of policy.
A program that is an error without scopes (a saved value was changed) says nothing; most are none. YOKE_SOAK tries more.
"""
import contextlib
import gc
import os
import random

import pytest

import yoke
from conftest import DEVICE

SIDE = 4
BATCHES = 200 if os.environ.get("YOKE_SOAK") else 1 if "ASAN_OPTIONS" in os.environ else 4
PROGRAMS = 100  # of a batch


BUDGETS = [0.3, 0.6, 1.0, "200B"]


class Program:
    """One run; the seed decides all that it does, with scopes or without. Those of one batch share their budgets."""

    def __init__(self, seed, scoped, budgets):
        self.budgets = budgets
        self.choose, self.scoped, self.open = random.Random(seed), scoped, []
        yoke.manual_seed(seed)
        self.leaves = [self.draw().requires_grad_() for _ in range(3)]
        self.outside = [self.draw() for _ in range(2)]
        self.live = list(self.leaves)

    def draw(self):
        return yoke.randn((SIDE, SIDE))

    def policy(self):
        answers = random.Random(self.choose.random())
        which = self.choose.randrange(len(BUDGETS))
        budget = self.budgets[which] if self.budgets else None
        return self.choose.choice(["full", "matmul", ["mul", "exp"], lambda op: answers.choice(["keep", "recompute", "offload"]), budget, budget])

    def begin(self):
        policy = self.policy()
        offload = self.choose.random() < 0.4 and not isinstance(policy, yoke.MemoryBudget) and policy is not None
        scope = yoke.checkpoint_scope(policy, offload=offload) if self.scoped else contextlib.nullcontext()
        scope.__enter__()
        self.open.append(scope)

    def end(self):
        self.open.pop().__exit__(None, None, None)

    def write(self, change):
        """In place, unless it is a leaf."""
        x = self.choose.choice(self.live)
        if not any(x is leaf for leaf in self.leaves):
            change(x)
        return x

    def from_outside(self, a):
        memory, grows = self.choose.choice(self.outside), self.choose.random() < 0.2
        with yoke.no_grad():
            if grows:
                memory.mul_(0.9)
        return a + memory

    def through_outside(self, a, b):
        memory = self.choose.choice(self.outside)
        with yoke.no_grad():
            memory.copy_(a)
        return b + memory

    def masked(self, a, b):
        with yoke.no_grad():
            mask = yoke.where(a > 0, yoke.ones((SIDE, SIDE)), yoke.rand((SIDE, SIDE)))
        return b * mask

    def in_a_half(self, a, b):
        with yoke.autocast(dtype=yoke.bfloat16):
            return yoke.matmul(a, b).to(dtype=yoke.float32) * 0.2

    def step(self):
        a, b = self.choose.choice(self.live), self.choose.choice(self.live)
        made = self.choose.choice([
            lambda: yoke.matmul(a, b) * 0.3, lambda: a + b, lambda: a * b, lambda: yoke.tanh(a), lambda: yoke.dropout(a, 0.3),
            lambda: a.transpose(0, 1), lambda: yoke.cat([a[:2], b[2:]], 0), lambda: yoke.softmax(a, -1),
            lambda: yoke.linear(a, b, activation="gelu"), lambda: yoke.layer_norm(a, [SIDE]), lambda: self.from_outside(a),
            lambda: self.through_outside(a, b), lambda: self.masked(a, b), lambda: self.in_a_half(a, b),
            lambda: self.write(lambda x: x.mul_(0.5)), lambda: self.write(lambda x: x.add_(b)),
        ])()
        self.live.append(made)
        if len(self.live) > 6:
            self.live.pop(self.choose.randrange(3, len(self.live)))
        if self.open and self.choose.random() < 0.05:
            made.sum().backward(retain_graph=True)

    def run(self):
        try:
            for _ in range(self.choose.randint(5, 25)):
                kind = self.choose.random()
                if kind < 0.12 and len(self.open) < 3:
                    self.begin()
                elif kind < 0.24 and self.open:
                    self.end()
                else:
                    self.step()
        finally:
            while self.open:
                self.end()
        loss = sum((x.sum() for x in self.live), yoke.zeros(()))
        self.live = list(self.leaves)
        for again in (True, False):
            loss.backward(retain_graph=again)
        grads = [leaf.grad.tolist() if leaf.grad is not None else None for leaf in self.leaves]
        return repr((grads, [x.tolist() for x in self.outside], loss.item(), yoke.rand((2,)).tolist()))


class Refused(str):
    """Why a program is none."""


def allocated():
    yoke.synchronize()
    return yoke.memory_allocated(DEVICE)


def outcome(seed, scoped, budgets=()):
    """What a program comes to, or why it is none: it changes what was saved, or a view."""
    try:
        return Program(seed, scoped, budgets).run()
    except (yoke.StateError, yoke.UnsupportedError) as error:
        return Refused(str(error))  # not the error itself, whose frames hold tensors


@pytest.mark.filterwarnings("ignore:a memory budget of .* out of reach")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_give_the_same_in_scopes(batch):
    before, compared = allocated(), 0
    budgets = [yoke.MemoryBudget(amount) for amount in BUDGETS]
    for seed in range(batch * PROGRAMS, (batch + 1) * PROGRAMS):
        plain = outcome(seed, False)
        if isinstance(plain, Refused):
            outcome(seed, True, budgets)  # which leaves the budgets usable
            continue
        for scoped in (outcome(seed, True, budgets) for _ in range(2)):  # which learns, and follows what it has learned
            if isinstance(scoped, Refused):  # what a closed scope had read from outside was changed behind it
                assert "to make it again" in scoped, f"seed {seed}: {scoped}"
                continue
            assert scoped == plain, f"seed {seed}"
            compared += 1
    assert compared > PROGRAMS / 2
    gc.collect()
    assert allocated() == before


class WholeProgram(Program):
    """All of it is one scope of a budget, and nothing changes behind that: then nothing is refused."""

    def __init__(self, seed, budget):
        super().__init__(seed, budget is not None, [budget] * len(BUDGETS))
        self.budget = budget

    def run(self):
        with yoke.checkpoint_scope(self.budget) if self.scoped else contextlib.nullcontext():
            return super().run()


@pytest.mark.filterwarnings("ignore:a memory budget of .* out of reach")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_give_the_same_within_one_budget(batch):
    before, compared = allocated(), 0
    for seed in range(batch * PROGRAMS, (batch + 1) * PROGRAMS):
        budget = yoke.MemoryBudget(BUDGETS[seed % len(BUDGETS)])
        try:
            plain = WholeProgram(seed, None).run()
        except (yoke.StateError, yoke.UnsupportedError):
            continue
        for _ in range(3):
            assert WholeProgram(seed, budget).run() == plain, f"seed {seed}"
        compared += 1
    assert compared > PROGRAMS / 4
    gc.collect()
    assert allocated() == before
