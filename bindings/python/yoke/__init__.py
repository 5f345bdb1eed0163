"""Yoke: tensors, gradients and devices for any script, over one C library.

    import yoke
    x = yoke.randn((64, 784))
    y = yoke.softmax(yoke.matmul(x, yoke.randn((784, 10))), axis=-1)

Names are PyTorch's, indexing and broadcasting NumPy's. Every op is a function here and, where its first
argument is a tensor, a method of it; all are listed in docs/ops.md. Calls raise yoke.Error.
"""

# The names include builtins (sum, bool, ValueError, …): code below may not rely on them.
from yoke import _log, _yoke  # noqa: F401 (a warning may come where no file can be opened)

_yoke._require_main_interpreter()

from yoke._yoke import *  # noqa: E402
from yoke._yoke import __version__  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:  # found by _later
    from yoke import amp, autograd, comm, compat, cuda, data, nn, optim, utils
    from yoke._amp import autocast
    from yoke._backends import backends, get_float32_matmul_precision, set_float32_matmul_precision
    from yoke._checkpoint import BudgetReport, MemoryBudget, checkpoint, checkpoint_scope, checkpoint_sequential
    from yoke._checkpoints import CheckpointManager
    from yoke._devices import Explanation, Lease, Sample, Verdict, disabled, explain, select
    from yoke._doctor import doctor, doctor_record
    from yoke._grad import enable_grad, grad, inference_mode, no_grad, saved_tensors, set_grad_enabled
    from yoke._graph import Graph
    from yoke._inventory import catalog, catalog_find, inventory, topology
    from yoke._memory import on_out_of_memory
    from yoke._parallel import DistributedDataParallel
    from yoke._preempt import on_preempt
    from yoke._random import Generator, get_rng_state, set_rng_state
    from yoke._scaler import GradScaler
    from yoke._spawn import spawn
    from yoke._state import load, load_info, save
    from yoke._stream import stream
    from yoke._timer import Measurement, Timer
    from yoke._types import (BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor,
                             LongTensor, as_tensor, from_numpy, is_tensor, numel)
    double, float, half, int, long = _yoke.float64, _yoke.float32, _yoke.float16, _yoke.int32, _yoke.int64
    from yoke.optim import clip_grad_norm_
else:  # a type checker would take it to have every name
    from yoke._later import load as __getattr__, names as __dir__, public as _public

    del TYPE_CHECKING
    __all__ = _public()  # `from yoke import *` reads them all
