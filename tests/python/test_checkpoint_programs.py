"""Random programs with nested checkpoint scopes: gradients, outside memory and random numbers are the same as without scopes.

Values are written in place, masked, drawn and cast between scopes that open and close anywhere, with every kind of policy. A
program that fails without scopes (a saved value was changed) proves no defect; most programs do not fail. YOKE_SOAK tries more.
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
PROGRAMS = 100  # in a batch


BUDGETS = [0.3, 0.6, 1.0, "200B"]


class Program:
    """A run: the seed decides all calls, with scopes or without. Programs of a batch share their budgets."""

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
        """Changes a random tensor in place, unless the tensor is a leaf."""
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
    """Reason why a program is not valid."""


def allocated():
    yoke.synchronize()
    return yoke.memory_allocated(DEVICE)


def outcome(seed, scoped, budgets=()):
    """Returns the result of a program, or why the program is not valid: it changes a saved value, or a view."""
    try:
        return Program(seed, scoped, budgets).run()
    except (yoke.StateError, yoke.UnsupportedError) as error:
        return Refused(str(error))  # not the error, because its frames hold tensors


@pytest.mark.filterwarnings("ignore:a memory budget of .* is too small")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_give_the_same_in_scopes(batch):
    before, compared = allocated(), 0
    budgets = [yoke.MemoryBudget(amount) for amount in BUDGETS]
    for seed in range(batch * PROGRAMS, (batch + 1) * PROGRAMS):
        plain = outcome(seed, False)
        if isinstance(plain, Refused):
            outcome(seed, True, budgets)  # must leave the budgets usable
            continue
        for scoped in (outcome(seed, True, budgets) for _ in range(2)):  # the first run measures, the second follows its plan
            if isinstance(scoped, Refused):  # the program changed outside memory that a closed scope had read
                assert "to recompute it" in scoped, f"seed {seed}: {scoped}"
                continue
            assert scoped == plain, f"seed {seed}"
            compared += 1
    assert compared > PROGRAMS / 2
    gc.collect()
    assert allocated() == before


class WholeProgram(Program):
    """Program within a single scope of a budget. No later write follows the scope, so no program is refused."""

    def __init__(self, seed, budget):
        super().__init__(seed, budget is not None, [budget] * len(BUDGETS))
        self.budget = budget

    def run(self):
        with yoke.checkpoint_scope(self.budget) if self.scoped else contextlib.nullcontext():
            return super().run()


@pytest.mark.filterwarnings("ignore:a memory budget of .* is too small")
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
