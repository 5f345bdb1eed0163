"""Replaces the random numbers of a module `torch` by a stream of NumPy's, so that PyTorch and its stand-in draw the same numbers.

The same code serves both sides: replace(torch) changes the module, the class Tensor, nn.init, and the layers with weights. The stream
fills the weights of new layers by one rule. Dropout does nothing.
"""
import contextlib
import functools
import math

import numpy as np

FLOATS, INTS = "float32", "int64"
LAYERS = ("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "Embedding")
DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")


class Stream:
    """Random numbers of NumPy's first generator: all versions of NumPy draw the same numbers."""

    def __init__(self):
        self.numbers = np.random.RandomState(0)

    def seed(self, seed):
        self.numbers = np.random.RandomState(int(seed) % 2**32)

    @contextlib.contextmanager
    def apart(self):
        """Gives the draws of a block to another stream, because the sides draw differently there."""
        kept, self.numbers = self.numbers, np.random.RandomState(0)
        try:
            yield
        finally:
            self.numbers = kept

    def normal(self, shape, mean=0.0, std=1.0):
        return self.numbers.standard_normal(shape) * std + mean

    def uniform(self, shape, low=0.0, high=1.0):
        return self.numbers.random_sample(shape) * (high - low) + low

    def exponential(self, shape, rate=1.0):
        return -np.log1p(-self.numbers.random_sample(shape)) / rate

    def integers(self, shape, low, high):
        return np.floor(self.uniform(shape, low, high)).astype(np.int64)

    def truncated(self, shape, mean, std, low, high):
        return np.clip(self.normal(shape, mean, std), low, high)

    def orthogonal(self, rows, columns, gain):
        drawn = self.normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diag(r))
        return gain * (q if rows >= columns else q.T)

    def choices(self, weights, count, replacement):
        """Returns the drawn places of the last axis of `weights`."""
        rows = np.atleast_2d(weights).astype(np.float64)
        if replacement:
            ends = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
            drawn = np.stack([np.searchsorted(row, self.uniform(count), side="right") for row in ends])
            drawn = np.minimum(drawn, rows.shape[1] - 1)
        else:
            with np.errstate(divide="ignore"):
                drawn = np.argsort(self.exponential(rows.shape) / rows, axis=1, kind="stable")[:, :count]
        return drawn[0] if weights.ndim == 1 else drawn


def _shape(sizes):
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        sizes = tuple(sizes[0])
    return tuple(int(size) for size in sizes)


def _array(tensor):
    return tensor.detach().cpu().numpy()


class Replaced:
    """Functions in place of the functions of `torch`."""

    def __init__(self, torch, stream):
        self.torch, self.stream = torch, stream

    def tensor(self, array, like=None, dtype=None, device=None, requires_grad=False):
        """Returns a tensor of an array's numbers."""
        torch = self.torch
        if dtype is None:
            dtype = like.dtype if like is not None else torch.int64 if array.dtype == np.int64 else torch.get_default_dtype()
        made = torch.from_numpy(np.array(array, dtype=INTS if array.dtype == np.int64 else FLOATS, order="C")).to(dtype)
        made = made.to(device if device is not None else like.device if like is not None else "cpu")
        return made.requires_grad_() if requires_grad else made

    def fill(self, tensor, array):
        """Writes an array into a tensor, as the functions whose names end in _ do."""
        with self.torch.no_grad():
            tensor.copy_(self.tensor(np.asarray(array), like=tensor).reshape(tensor.shape))
        return tensor

    # ---- Functions of torch ----------------------------------------------------------------------------------

    def rand(self, *size, generator=None, out=None, layout=None, pin_memory=False, **keywords):
        return self.tensor(self.stream.uniform(_shape(size or (keywords.pop("size"),))), **keywords)

    def randn(self, *size, generator=None, out=None, layout=None, pin_memory=False, **keywords):
        return self.tensor(self.stream.normal(_shape(size or (keywords.pop("size"),))), **keywords)

    def randint(self, low=0, high=None, size=None, *, generator=None, out=None, layout=None, **keywords):
        if size is None:
            low, high, size = 0, low, high
        elif high is None:
            low, high = 0, low
        return self.tensor(self.stream.integers(_shape((size,)), int(low), int(high)), **keywords)

    def randperm(self, n, *, generator=None, out=None, layout=None, **keywords):
        return self.tensor(np.argsort(self.stream.uniform(int(n)), kind="stable").astype(np.int64), **keywords)

    def rand_like(self, input, **keywords):
        return self.tensor(self.stream.uniform(tuple(input.shape)), like=input, **keywords)

    def randn_like(self, input, **keywords):
        return self.tensor(self.stream.normal(tuple(input.shape)), like=input, **keywords)

    def randint_like(self, input, low, high=None, **keywords):
        low, high = (0, low) if high is None else (low, high)
        return self.tensor(self.stream.integers(tuple(input.shape), low, high), like=input, **keywords)

    def normal(self, mean=0.0, std=1.0, size=None, *, generator=None, out=None, **keywords):
        tensors = [each for each in (mean, std) if isinstance(each, self.torch.Tensor)]
        shape = np.broadcast_shapes(*(tuple(each.shape) for each in tensors)) if tensors else _shape((size,))
        return self.tensor(self.stream.normal(shape), like=tensors[0] if tensors else None, **keywords) * std + mean

    def bernoulli(self, input, p=None, *, generator=None, out=None):
        chances = _array(input) if p is None else p
        return self.tensor((self.stream.uniform(tuple(input.shape)) < chances).astype(FLOATS), like=input)

    def multinomial(self, input, num_samples, replacement=False, *, generator=None, out=None):
        return self.tensor(self.stream.choices(_array(input), num_samples, replacement).astype(np.int64), device=input.device)

    def dropout(self, input, p=0.5, training=True, inplace=False):
        return input

    # ---- Methods of a tensor ---------------------------------------------------------------------------------

    def normal_(self, tensor, mean=0.0, std=1.0, *, generator=None):
        return self.fill(tensor, self.stream.normal(tuple(tensor.shape), mean, std))

    def uniform_(self, tensor, a=0.0, b=1.0, *, generator=None, **ends):
        a, b = ends.get("from", a), ends.get("to", b)
        return self.fill(tensor, self.stream.uniform(tuple(tensor.shape), a, b))

    def bernoulli_(self, tensor, p=0.5, *, generator=None):
        chances = _array(p) if isinstance(p, self.torch.Tensor) else p
        return self.fill(tensor, (self.stream.uniform(tuple(tensor.shape)) < chances).astype(FLOATS))

    def random_(self, tensor, low=0, high=None, *, generator=None):
        low, high = (0, low) if high is None else (low, high)
        return self.fill(tensor, self.stream.integers(tuple(tensor.shape), low, high or 2**24))

    def exponential_(self, tensor, lambd=1.0, *, generator=None):
        return self.fill(tensor, self.stream.exponential(tuple(tensor.shape), lambd))

    # ---- nn.init ---------------------------------------------------------------------------------------------

    def trunc_normal_(self, tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
        return self.fill(tensor, self.stream.truncated(tuple(tensor.shape), mean, std, a, b))

    def xavier_uniform_(self, tensor, gain=1.0, generator=None):
        bound = gain * math.sqrt(6 / sum(_fans(tensor)))
        return self.uniform_(tensor, -bound, bound)

    def xavier_normal_(self, tensor, gain=1.0, generator=None):
        return self.normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))

    def _kaiming(self, tensor, a, mode, nonlinearity):
        gain = self.torch.nn.init.calculate_gain(nonlinearity, a)
        return gain / math.sqrt(_fans(tensor)[mode == "fan_out"])

    def kaiming_uniform_(self, tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
        bound = math.sqrt(3) * self._kaiming(tensor, a, mode, nonlinearity)
        return self.uniform_(tensor, -bound, bound)

    def kaiming_normal_(self, tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
        return self.normal_(tensor, 0.0, self._kaiming(tensor, a, mode, nonlinearity))

    def orthogonal_(self, tensor, gain=1, generator=None):
        rows = tensor.shape[0]
        return self.fill(tensor, self.stream.orthogonal(rows, math.prod(tensor.shape[1:]), gain))


def _fans(tensor):
    """Returns the inputs and the outputs of a weight."""
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _replace_layer(kind, replaced):
    """Makes the class fill new layers from the stream."""
    own = kind.__init__

    @functools.wraps(own)
    def start(self, *args, **keywords):
        with replaced.stream.apart():
            own(self, *args, **keywords)
        if kind.__name__ == "Embedding":
            replaced.normal_(self.weight)
            return
        bound = 1 / math.sqrt(_fans(self.weight)[0])
        replaced.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            replaced.uniform_(self.bias, -bound, bound)

    kind.__init__ = start


def _replace_dropout(kind):
    own = kind.__init__

    @functools.wraps(own)
    def start(self, p=0.5, inplace=False):
        own(self, 0.0)

    kind.__init__ = start


def _replace_attention(functional):
    own = functional.scaled_dot_product_attention

    @functools.wraps(own)
    def attention(*args, **keywords):
        keywords.pop("dropout_p", None)
        return own(*args, **keywords)

    functional.scaled_dot_product_attention = attention


def replace(torch):
    """Replaces the random functions of the module; returns the stream."""
    stream = Stream()
    replaced = Replaced(torch, stream)

    def manual_seed(seed):
        stream.seed(seed)
        return torch.default_generator if hasattr(torch, "default_generator") else None

    torch.manual_seed = manual_seed
    for name in ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli", "multinomial",
                 "dropout"):
        setattr(torch, name, getattr(replaced, name))
    for name in ("normal_", "uniform_", "bernoulli_", "random_", "exponential_", "bernoulli", "multinomial"):
        method = getattr(replaced, name)
        setattr(torch.Tensor, name, lambda self, *args, method=method, **keywords: method(self, *args, **keywords))
    for name in ("normal_", "uniform_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
                 "orthogonal_"):
        setattr(torch.nn.init, name, getattr(replaced, name))
    for name in ("dropout", "dropout2d"):
        setattr(torch.nn.functional, name, replaced.dropout)
    for names, change in ((LAYERS, lambda kind: _replace_layer(kind, replaced)), (DROPOUTS, _replace_dropout)):
        for name in names:
            if hasattr(torch.nn, name):
                change(getattr(torch.nn, name))
    _replace_attention(torch.nn.functional)
    return stream
