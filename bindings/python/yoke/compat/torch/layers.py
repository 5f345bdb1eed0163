"""Layers with PyTorch's arguments where Yoke's layer has others, and small layers over a single op."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke, nn
from yoke._yoke import Tensor
from yoke.compat.torch import nets
from yoke.compat.torch.options import refused
from yoke.nn.module import Module


class ReLU(nn.ReLU):
    """x where x > 0, else 0."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return nets.relu(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class SiLU(nn.SiLU):
    """x · sigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return nets.silu(input, self.inplace)


class Dropout(nn.Dropout):
    """Zeroes elements with probability p while training."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__(p)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return nets.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class _Channels(Dropout):
    """Zeroes whole channels with probability p while training."""

    _axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return nets.dropout_channels(input, self.p, self.training, self._axes)


class Dropout1d(_Channels):
    """Zeroes channels of [N, C, L] with probability p while training."""

    _axes = 1


class Dropout2d(_Channels):
    """Zeroes channels of [N, C, H, W] with probability p while training."""


class _Op(Module):
    """Layer over a single function of torch.nn.functional, whose arguments are the layer's."""

    _function: str
    _arguments: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(self._arguments)
        if len(args) > len(names):
            raise _yoke.TypeError(f"{type(self).__name__}(): takes at most {len(names)} arguments but {len(args)} were given")
        given = {**dict(zip(names, args)), **kwargs}
        for name in given:
            if name not in names:
                raise _yoke.TypeError(f"{type(self).__name__}(): there is no argument '{name}'; the arguments are {', '.join(names) or 'none'}")
        for name, value in {**self._arguments, **given}.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = getattr(nets, self._function)(input, **{name: getattr(self, name) for name in self._arguments})
        return result

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._arguments if name != "inplace" or getattr(self, name))


def _layer(name: str, function: str, **arguments: Any) -> Any:
    return type(name, (_Op,), {"_function": function, "_arguments": arguments, "__module__": __name__, "__doc__": f"torch.nn.functional.{function} as a layer."})


LeakyReLU = _layer("LeakyReLU", "leaky_relu", negative_slope=0.01, inplace=False)
ELU = _layer("ELU", "elu", alpha=1.0, inplace=False)
Softplus = _layer("Softplus", "softplus", beta=1.0, threshold=20.0)
Hardtanh = _layer("Hardtanh", "hardtanh", min_val=-1.0, max_val=1.0, inplace=False)
ReLU6 = _layer("ReLU6", "relu6", inplace=False)
LogSigmoid = _layer("LogSigmoid", "logsigmoid")
Mish = _layer("Mish", "mish", inplace=False)
Softsign = _layer("Softsign", "softsign")
Tanhshrink = _layer("Tanhshrink", "tanhshrink")
GLU = _layer("GLU", "glu", dim=-1)
Softmin = _layer("Softmin", "softmin", dim=-1)
Hardswish = _layer("Hardswish", "hardswish", inplace=False)
Hardsigmoid = _layer("Hardsigmoid", "hardsigmoid", inplace=False)
Upsample = _layer("Upsample", "interpolate", size=None, scale_factor=None, mode="nearest", align_corners=None)
PixelShuffle = _layer("PixelShuffle", "pixel_shuffle", upscale_factor=2)
PixelUnshuffle = _layer("PixelUnshuffle", "pixel_unshuffle", downscale_factor=2)
CosineSimilarity = _layer("CosineSimilarity", "cosine_similarity", dim=1, eps=1e-8)
CosineSimilarity.forward = lambda self, x1, x2: nets.cosine_similarity(x1, x2, self.dim, self.eps)
PairwiseDistance = _layer("PairwiseDistance", "pairwise_distance", p=2.0, eps=1e-6, keepdim=False)
PairwiseDistance.forward = lambda self, x1, x2: nets.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)


class Softmax(nn.Softmax):
    """Softmax along one axis; without dim the axis that PyTorch chooses."""

    def __init__(self, dim: int | None = None) -> None:
        self.dim = self.axis = dim  # type: ignore[assignment]

    def forward(self, input: Tensor) -> Tensor:
        return nets.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(nn.LogSoftmax):
    """Logarithm of softmax along one axis; without dim the axis that PyTorch chooses."""

    def __init__(self, dim: int | None = None) -> None:
        self.dim = self.axis = dim  # type: ignore[assignment]

    def forward(self, input: Tensor) -> Tensor:
        return nets.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Embedding(nn.Embedding):
    """A row of weight for each index."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        refused("Embedding", max_norm=(max_norm, None), scale_grad_by_freq=(scale_grad_by_freq, False), sparse=(sparse, False))
        super().__init__(num_embeddings, embedding_dim, padding_idx, device=device, dtype=dtype)
        if _weight is not None:
            self.weight = yoke.nn.Parameter(_weight, not _freeze)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **others: Any) -> Embedding:
        """Returns a layer whose weight is a tensor; it is not trained if `freeze` is True."""
        rows, width = embeddings.shape
        return cls(rows, width, padding_idx, _weight=embeddings, _freeze=freeze, **others)


class MaxPool2d(nn.MaxPool2d):
    """Takes the largest of each window."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        refused("MaxPool2d", return_indices=(return_indices, False))
        super().__init__(kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)


class ConvTranspose2d(nn.ConvTranspose2d):
    """Gradient of Conv2d by its input, as a layer."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        refused("ConvTranspose2d", padding_mode=(padding_mode, "zeros"))
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, device=device, dtype=dtype)


class Bilinear(Module):
    """y = x1ᵀ W x2 + b."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        bound = in1_features**-0.5
        self.weight = nn.Parameter(yoke.rand((out_features, in1_features, in2_features), dtype=dtype, device=device) * (2 * bound) - bound)
        self.register_parameter("bias", nn.Parameter(yoke.rand((out_features,), dtype=dtype, device=device) * (2 * bound) - bound) if bias else None)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        found = yoke.einsum("ni,oij,nj->no", [input1.reshape(-1, input1.shape[-1]), self.weight, input2.reshape(-1, input2.shape[-1])])
        found = found.reshape(*input1.shape[:-1], -1)
        return found if self.bias is None else found + self.bias
