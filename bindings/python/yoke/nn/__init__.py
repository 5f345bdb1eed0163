"""Layers of neural networks in plain Python: a Module holds Parameters, buffers and Modules as attributes.

Initial values are PyTorch's, drawn with yoke.rand and yoke.randn. Lua and C programs draw in the same order. So one
seed gives the same network everywhere. nn.init has other ways to fill a tensor.
"""

from yoke.nn import init
from yoke.nn.activation import GELU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from yoke.nn.attention import MultiheadAttention, TransformerBlock
from yoke.nn.containers import ModuleDict, ModuleList, Sequential
from yoke.nn.conv import Conv1d, Conv2d, ConvTranspose2d
from yoke.nn.layers import Dropout, Embedding, Flatten, Identity, Linear, Unflatten
from yoke.nn.loss import (BCEWithLogitsLoss, CrossEntropyLoss, KLDivLoss, L1Loss, MSELoss, NLLLoss,
                          SmoothL1Loss)
from yoke.nn.module import LoadResult, Module, Parameter
from yoke.nn.norm import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm
from yoke.nn.parameters import ParameterDict, ParameterList
from yoke.nn.pool import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d

__all__ = ["AdaptiveAvgPool2d", "AvgPool2d", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d",
           "ConvTranspose2d", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "GELU", "GroupNorm",
           "Identity", "KLDivLoss", "L1Loss", "LayerNorm", "Linear", "LoadResult", "LogSoftmax", "MSELoss",
           "MaxPool2d", "Module", "ModuleDict", "ModuleList", "MultiheadAttention", "NLLLoss", "Parameter",
           "ParameterDict", "ParameterList", "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
           "Softmax", "Tanh", "TransformerBlock", "Unflatten", "init"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yoke.nn import functional, parallel, utils


def __getattr__(name: str) -> object:
    if name in ("functional", "parallel", "utils"):  # read at the first use
        __import__(f"yoke.nn.{name}")
        return globals()[name]
    import sys

    from yoke._unknown import unknown_name

    raise unknown_name(sys.modules[__name__], name)
