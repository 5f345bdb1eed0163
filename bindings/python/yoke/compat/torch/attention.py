"""torch.nn.MultiheadAttention, whose arguments, names and results are PyTorch's; Yoke's class of that name is self-attention."""

from __future__ import annotations

from typing import Any

import yoke
from yoke import _yoke, nn
from yoke._yoke import Tensor
from yoke.compat.torch import nets
from yoke.nn.module import Module, Parameter


class MultiheadAttention(Module):
    """Attention of num_heads heads over query, key and value, [length, batch, width] or with batch_first [batch, length, width]."""

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False,
                 kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None) -> None:
        if add_bias_kv or add_zero_attn:
            raise _yoke.UnsupportedError("torch: MultiheadAttention(): argument 'add_bias_kv' or 'add_zero_attn' is True; Yoke does not have it: leave it out (False)")
        if embed_dim % num_heads:
            raise _yoke.ValueError(f"MultiheadAttention(): argument 'embed_dim' is {embed_dim} and 'num_heads' is {num_heads}; 'num_heads' must divide 'embed_dim'")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        new = {"device": device, "dtype": dtype}
        is_one = self.kdim == embed_dim and self.vdim == embed_dim
        shapes = {"in_proj_weight": (3 * embed_dim, embed_dim) if is_one else None, "q_proj_weight": None if is_one else (embed_dim, embed_dim),
                  "k_proj_weight": None if is_one else (embed_dim, self.kdim), "v_proj_weight": None if is_one else (embed_dim, self.vdim)}
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(nn.init.xavier_uniform_(yoke.empty(shape, **new))))
        self.register_parameter("in_proj_bias", Parameter(yoke.zeros((3 * embed_dim,), **new)) if bias else None)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        if bias:
            nn.init.zeros_(self.out_proj.bias)  # type: ignore[type-var]

    def _projected(self, parts: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        """Returns query, key and value as [batch, heads, length, width]."""
        if self.in_proj_weight is not None:
            weights = list(yoke.chunk(self.in_proj_weight, 3, 0))
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None] * 3 if self.in_proj_bias is None else yoke.chunk(self.in_proj_bias, 3, 0)
        made = [yoke.linear(x, weight, bias) for x, weight, bias in zip(parts, weights, biases)]
        return [x.reshape(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2) for x in made]

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Returns the result, and the weights of attention, or None. In bool masks True leaves a place out."""
        if is_causal and attn_mask is None:
            raise _yoke.ValueError("MultiheadAttention(): argument 'is_causal' is True without 'attn_mask'; give the mask, which the argument describes")
        is_alone = query.ndim == 2
        parts = [x.unsqueeze(0) if is_alone else x if self.batch_first else x.transpose(0, 1) for x in (query, key, value)]
        q, k, v = self._projected((parts[0], parts[1], parts[2]))
        mask = self._mask(q, k, attn_mask, key_padding_mask)
        weights = None
        if need_weights:
            scores = yoke.matmul(q, k.transpose(-2, -1)) * self.head_dim**-0.5
            weights = yoke.softmax(scores if mask is None else scores + mask, -1)
            found = yoke.matmul(yoke.dropout(weights, self.dropout, self.training), v)
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            found = nets.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0)
        out = self.out_proj(found.transpose(1, 2).reshape(parts[0].shape[0], parts[0].shape[1], self.embed_dim))
        if is_alone:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _mask(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None) -> Tensor | None:
        """Returns both masks together as numbers to add, [batch or 1, heads or 1, length, length]."""
        added = None if attn_mask is None else _numbers(attn_mask, q)
        if added is not None:
            added = added.reshape(-1, self.num_heads, *added.shape[-2:]) if added.ndim == 3 else added.reshape(1, 1, *added.shape)
        if key_padding_mask is None:
            return added
        padding = _numbers(key_padding_mask, q).reshape(-1, 1, 1, k.shape[-2])
        return padding if added is None else padding + added


def _numbers(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype is not yoke.bool:
        return mask
    return yoke.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, float("-inf"))
