"""Random streams in a script's variables: get_rng_state, set_rng_state and Generator."""
import struct

from yoke import _yoke
from yoke._named import Named, named


def _pack(place):
    return _yoke.tensor(list(struct.pack("<QQ", *place)), dtype=_yoke.uint8, device="cpu")


def _unpack(state, call):
    if not isinstance(state, _yoke.Tensor) or state.dtype != _yoke.uint8 or state.shape != (16,):
        what = f"a {state.dtype} tensor of shape {list(state.shape)}" if isinstance(state, _yoke.Tensor) else repr(state)
        raise _yoke.ValueError(f"{call}: argument 'state' is {what}; it must be a result of get_rng_state or get_state")
    return struct.unpack("<QQ", bytes(state.tolist()))


@named
def get_rng_state():
    """Returns the state of this thread's random numbers, on every device: a uint8 tensor of 16 bytes."""
    return _pack(_yoke._get_rng_state())


@named
def set_rng_state(state):
    """Sets the state of this thread's random numbers to a result of get_rng_state: the same numbers follow again."""
    _yoke._set_rng_state(*_unpack(state, "set_rng_state"))


class Generator(Named):
    """Separate stream of random numbers.

        g = yoke.Generator(seed=7)
        with g:
            x = yoke.randn(3)

    Inside the block all random numbers of this thread come from g, on every device; afterwards the thread's own stream
    continues. A single op draws from g by `generator`: yoke.randn(3, generator=g). A generator may be entered again, but not during its use. The first numbers are the numbers after
    manual_seed(seed).
    """

    def __init__(self, device=None, seed=0):
        self.device = _yoke.current_device() if device is None else _yoke.device(device)
        self._outer = None
        self._memory = bytearray(16)  # a yoke_generator, where ops with generator= draw
        self.manual_seed(seed)

    @property
    def _stream(self):
        """Returns where an op draws: the generator's memory; None in its block, where the thread's stream is the generator's."""
        return self._memory if self._outer is None else None

    @property
    def _place(self):
        return struct.unpack("=QQ", self._memory)

    @_place.setter
    def _place(self, place):
        struct.pack_into("=QQ", self._memory, 0, *place)

    def manual_seed(self, seed):
        """Starts the stream at `seed`; returns the generator."""
        return self._put((self._checked(seed), 0))

    def get_state(self):
        """Returns the state of the stream, as get_rng_state does."""
        return _pack(self._place if self._outer is None else _yoke._get_rng_state())

    def set_state(self, state):
        """Sets the state of the stream to a result of get_state; returns the generator."""
        return self._put(_unpack(state, "set_state"))

    def state_dict(self):
        """Returns the generator's state: get_state()."""
        return self.get_state()

    def load_state_dict(self, state):
        """Sets the state, as set_state."""
        return self._put(_unpack(state, "load_state_dict"))

    @staticmethod
    def _checked(seed):
        try:
            number = seed.__index__()
        except AttributeError:
            raise _yoke.TypeError(f"Generator: argument 'seed' is {seed!r}; it must be an integer") from None
        if not -(2**63) <= number < 2**64:
            raise _yoke.ValueError(f"Generator: argument 'seed' is {seed!r}; it must fit in 64 bits")
        return number % 2**64

    def _put(self, place):
        if self._outer is None:
            self._place = place
        else:
            _yoke._set_rng_state(*place)
        return self

    def __enter__(self):
        if self._outer is not None:
            raise _yoke.StateError("Generator: this generator is already in use; leave its block first, or make another generator")
        outer = _yoke._get_rng_state()
        _yoke._set_rng_state(*self._place)
        self._outer = outer
        return self

    def __exit__(self, *exception):
        self._place = _yoke._get_rng_state()
        outer, self._outer = self._outer, None
        _yoke._set_rng_state(*outer)

    def __repr__(self):
        return f"Generator(device={self.device}, seed={(self._place if self._outer is None else _yoke._get_rng_state())[0]})"
