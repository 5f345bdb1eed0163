"""Attention and the transformer block."""

from __future__ import annotations

from typing import Literal, overload

import yoke
from yoke import _yoke
from yoke._check import whole
from yoke._yoke import Device, Tensor, dtype as DType
from yoke.nn.layers import Dropout, Linear
from yoke.nn.module import Module
from yoke.nn.norm import LayerNorm

Pair = tuple[Tensor, Tensor]  # two summands


def _check_places(x: Tensor, width: int, call: str, name: str) -> None:
    if x.ndim != 3 or x.shape[2] != width:
        raise _yoke.ValueError(f"{call}: argument 'x' has shape {list(x.shape)}; it must be [N, length, {name}] with {name} {width}; write x.unsqueeze(0) for a batch of one sequence")


class MultiheadAttention(Module):
    """Self-attention over x [N, length, embed_dim] (A. Vaswani et al., "Attention Is All You Need").

    One product with `qkv` gives queries, keys and values, heads of queries first. With num_kv_heads below num_heads several heads
    of queries share a head of keys and values (J. Ainslie et al., "GQA"). In a causal layer each place sees itself and earlier
    places.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, num_kv_heads: int | None = None, bias: bool = True,
                 dropout: float = 0.0, causal: bool = False, device: Device | str | int | None = None,
                 dtype: DType | None = None) -> None:
        call = "MultiheadAttention"
        embed_dim, num_heads = whole(call, "embed_dim", embed_dim, 1), whole(call, "num_heads", num_heads, 1)
        kv_heads = num_heads if num_kv_heads is None else whole(call, "num_kv_heads", num_kv_heads, 1)
        if embed_dim % num_heads:
            raise _yoke.ValueError(f"MultiheadAttention(): argument 'embed_dim' is {embed_dim} and 'num_heads' is {num_heads}; 'num_heads' must divide 'embed_dim' evenly")
        if num_heads % kv_heads:
            raise _yoke.ValueError(f"MultiheadAttention(): argument 'num_kv_heads' is {kv_heads} and 'num_heads' is {num_heads}; 'num_kv_heads' must divide 'num_heads' evenly")
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, kv_heads
        self.head_dim = embed_dim // num_heads
        self.dropout, self.causal = dropout, causal
        self.qkv = Linear(embed_dim, (num_heads + 2 * kv_heads) * self.head_dim, bias, device, dtype)
        self.out = Linear(embed_dim, embed_dim, bias, device, dtype)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Computes attention. `mask` is [length, length], or has axes for N and heads before: a bool mask keeps true places, a floating
        mask is added.
        """
        _check_places(x, self.embed_dim, "MultiheadAttention", "embed_dim")
        n, length, _ = x.shape
        q, kv = self.num_heads, self.num_kv_heads
        heads = self.qkv(x).reshape((n, length, q + 2 * kv, self.head_dim))
        queries, keys, values = (part.transpose(1, 2) for part in heads.split((q, kv, kv), axis=2))
        y = yoke.scaled_dot_product_attention(queries, keys, values, mask, self.dropout if self.training else 0.0,
                                              self.causal, None, q != kv)
        return self.out(y.transpose(1, 2).reshape((n, length, self.embed_dim)))

    def extra_repr(self) -> str:
        return (f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}, causal={self.causal}")


class TransformerBlock(Module):
    """x + attention(norm(x)), then x + mlp(norm(x)), on x [N, length, width].

    Each addition runs in one pass with the following norm. With hand_on=True the last addition is left to the next layer: the
    result is the pair of summands. The next block takes the pair for x, or a LayerNorm does at the end.

    The MLP is `hidden` wide (4 · width if not given), with its activation in the product: see yoke.linear. (Norms come first: R.
    Xiong et al., "On Layer Normalization in the Transformer Architecture".)
    """

    def __init__(self, width: int, num_heads: int, num_kv_heads: int | None = None, hidden: int | None = None,
                 dropout: float = 0.0, causal: bool = False, activation: str = "gelu",
                 device: Device | str | int | None = None, dtype: DType | None = None) -> None:
        width = whole("TransformerBlock", "width", width, 1)
        hidden = 4 * width if hidden is None else whole("TransformerBlock", "hidden", hidden, 1)
        self.activation = activation
        self.norm1 = LayerNorm(width, device=device, dtype=dtype)
        self.attention = MultiheadAttention(width, num_heads, num_kv_heads=num_kv_heads, dropout=dropout, causal=causal,
                                            device=device, dtype=dtype)
        self.norm2 = LayerNorm(width, device=device, dtype=dtype)
        self.up = Linear(width, hidden, True, device, dtype)
        self.down = Linear(hidden, width, True, device, dtype)
        self.dropout = Dropout(dropout)

    @overload
    def forward(self, x: Tensor | Pair, mask: Tensor | None = None, hand_on: Literal[False] = False) -> Tensor: ...
    @overload
    def forward(self, x: Tensor | Pair, mask: Tensor | None = None, *, hand_on: Literal[True]) -> Pair: ...

    def forward(self, x: Tensor | Pair, mask: Tensor | None = None, hand_on: bool = False) -> Tensor | Pair:
        for part in x if isinstance(x, tuple) else (x,):
            _check_places(part, self.attention.embed_dim, "TransformerBlock", "width")
        stream, y = self.norm1(*x) if isinstance(x, tuple) else (x, self.norm1(x))
        stream, y = self.norm2(self.dropout(self.attention(y, mask)), stream)
        y = self.dropout(self.down(yoke.linear(y, self.up.weight, self.up.bias, self.activation)))
        return (y, stream) if hand_on else stream + y
