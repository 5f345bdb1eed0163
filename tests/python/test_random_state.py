"""State of random numbers: saved and restored states, generators, and threads."""
import threading

import pytest

import yoke


def drawn(n=5):
    return yoke.rand(n).tolist()


def test_a_state_put_back_gives_the_same_numbers_again():
    yoke.manual_seed(11)
    drawn(7)
    state = yoke.get_rng_state()
    assert state.dtype == yoke.uint8 and state.shape == (16,) and str(state.device) == "cpu"
    first, mask = drawn(), yoke.dropout(yoke.ones(64), 0.5).tolist()
    yoke.manual_seed(12)
    yoke.set_rng_state(state)
    assert drawn() == first and yoke.dropout(yoke.ones(64), 0.5).tolist() == mask


def test_looking_at_a_state_changes_nothing():
    yoke.manual_seed(1)
    want = drawn()
    yoke.manual_seed(1)
    yoke.get_rng_state()
    assert drawn() == want


def test_a_generator_is_the_stream_of_its_seed_and_leaves_the_threads_own_alone():
    yoke.manual_seed(5)
    want = [drawn(), drawn()]
    yoke.manual_seed(99)
    own = [drawn(), drawn()]
    yoke.manual_seed(99)
    generator = yoke.Generator(seed=5)
    with generator as entered:
        assert entered is generator and drawn() == want[0]
    assert drawn() == own[0]
    with generator:
        assert drawn() == want[1]
    assert drawn() == own[1]


def test_a_generator_stands_in_a_state(tmp_path):
    generator = yoke.Generator(seed=5)
    with generator:
        drawn()
    yoke.save(tmp_path / "a", {"rng": generator, "epoch": 1})
    with generator:
        want = drawn()
    other = yoke.Generator(seed=6)
    other.load_state_dict(yoke.load(tmp_path / "a")["rng"])
    with other:
        assert drawn() == want
    with pytest.raises(yoke.ValueError, match="load_state_dict: argument 'state'"):
        other.load_state_dict(yoke.zeros(3))


def test_generators_nest_and_an_error_puts_the_outer_stream_back():
    a, b = yoke.Generator("cpu", 1), yoke.Generator("cpu", 2)
    with a:
        first = drawn()
    with b:
        second = drawn()
    a.manual_seed(1)
    b.manual_seed(2)
    yoke.manual_seed(3)
    third = drawn()
    yoke.manual_seed(3)
    with pytest.raises(KeyError):
        with a:
            with b:
                assert drawn() == second
            assert drawn() == first
            raise KeyError
    assert drawn() == third


def test_a_generators_state_can_be_kept_inside_and_outside_its_block():
    generator = yoke.Generator(seed=-1)
    with generator:
        drawn(3)
        state = generator.get_state()
        want = drawn()
        assert generator.set_state(state) is generator and drawn() == want
    assert generator.get_state().tolist() != state.tolist()
    with generator.set_state(state):
        assert drawn() == want
    assert yoke.Generator(seed=2**64 - 1).get_state().tolist() == yoke.Generator(seed=-1).get_state().tolist()


def test_each_thread_has_a_state_of_its_own():
    yoke.manual_seed(4)
    state, seen = yoke.get_rng_state(), []
    want = drawn()

    def work():
        seen.append(yoke.get_rng_state().tolist() == state.tolist())
        yoke.set_rng_state(state)
        seen.append(drawn())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False, want] and drawn() != want


def test_misuse_is_told_with_the_remedy():
    generator = yoke.Generator(seed=1)
    with generator:
        with pytest.raises(yoke.StateError, match="already in use"):
            generator.__enter__()
    with pytest.raises(yoke.ValueError, match="set_rng_state: argument 'state' is .*get_rng_state"):
        yoke.set_rng_state(yoke.zeros(16))
    with pytest.raises(yoke.ValueError, match=r"set_state: .*\[3\]"):
        generator.set_state(yoke.zeros(3, dtype=yoke.uint8))
    with pytest.raises(yoke.TypeError, match="seed.*1.5.*integer"):
        yoke.Generator(seed=1.5)
    with pytest.raises(yoke.ValueError, match="64 bits"):
        yoke.Generator(seed=2**64)
    with pytest.raises(yoke.ValueError, match="tpu"):
        yoke.Generator("tpu")
