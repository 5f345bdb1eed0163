"""install() puts Yoke in the place of PyTorch, and what is not there says what to do."""

import subprocess
import sys

import pytest

from compat_run import errors_of, passes, run

INSTALL = "import yoke.compat.torch\nyoke.compat.torch.install()\n"


def installed(folder, text):
    return passes(folder, INSTALL + text, interpreter=())


def test_install_comes_before_import_torch(tmp_path):
    assert installed(tmp_path, "import torch, yoke\nassert yoke.compat.torch.install() is torch\nassert torch.Tensor is yoke.Tensor\n"
                     "from torch import nn\nassert nn.Linear is yoke.nn.Linear\nprint(torch.__version__ == yoke.compat.torch.__version__)") == "True\n"


def test_import_yoke_is_enough_for_install(tmp_path):
    assert passes(tmp_path, "import yoke\nyoke.compat.torch.install()\nimport torch\nprint(torch.ones(1))", interpreter=()) == "tensor([1.])\n"


def test_install_after_pytorch_is_an_error(tmp_path):
    (tmp_path / "torch.py").write_text("")
    done = run(tmp_path, "import torch\n" + INSTALL, interpreter=())
    assert done.returncode == 1
    assert f"yoke.StateError: install(): PyTorch is loaded already, from {tmp_path / 'torch.py'}; call yoke.compat.torch.install() before" in done.stderr


IMPORTS = """
    import torch
    from torch.nn.modules.utils import _pair
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.conv import Conv2d
    from torch.nn.modules import Linear
    import torch.nn as nn
    from torch import Tensor, nn, optim
    from torch.optim import Adam
    from torch.optim.lr_scheduler import StepLR, _LRScheduler
    from torch.nn.init import xavier_uniform_
    from torch.utils.checkpoint import checkpoint
    from torch.cuda.amp import autocast, GradScaler
    from torch.amp import autocast
    from torch.nn.parameter import Parameter
    from torch.nn.utils import clip_grad_norm_
    from torch.autograd import Variable, Function
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.distributed import init_process_group
    from torch.utils.data.distributed import DistributedSampler
    from torch.distributed.elastic.multiprocessing.errors import record
    import torch.multiprocessing as mp
    import torch.backends.cudnn as cudnn
    import torch.nn.functional as F
    import torch.utils.data
    import torch.version
    assert _pair(3) == (3, 3) and isinstance(nn.BatchNorm2d(3), _BatchNorm) and Conv2d is nn.Conv2d and Linear is nn.Linear
    cudnn.benchmark = True
    assert torch.version.cuda is None and "spawn" in mp.get_all_start_methods()
"""


def test_the_imports_of_scripts_are_there(tmp_path):
    passes(tmp_path, IMPORTS)


def test_import_yoke_does_not_load_it():
    text = "import sys, yoke, yoke.nn, yoke.optim; print([name for name in sys.modules if 'compat' in name or name == 'torch'])"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout == "[]\n"


ERRORS = [
    ("torch.svd", "AttributeError", "module 'torch' has no attribute 'svd': Yoke does not have this part of PyTorch; there is no linear algebra"),
    ("torch.jit.script", "AttributeError", "module 'torch' has no attribute 'jit': Yoke does not have this part of PyTorch"),
    ("torch.never_there", "AttributeError", "module 'torch' has no attribute 'never_there', and PyTorch 2.15.0 does not either"),
    ("torch.nn.LSTM", "AttributeError", "module 'torch.nn' has no attribute 'LSTM': Yoke does not have this part of PyTorch"),
    ("from torch import fft", "ModuleNotFoundError", "No module named 'torch.fft': Yoke does not have this part of PyTorch; there is no Fourier transform"),
    ("from torch.nn import LSTM", "ImportError", "cannot import name 'LSTM' from 'torch.nn': Yoke does not have this part of PyTorch"),
    ("import torch.utils.tensorboard", "ModuleNotFoundError", "No module named 'torch.utils.tensorboard': Yoke does not have this part of PyTorch"),
    ("from torch.utils.data import DataLoader", "ImportError", "cannot import name 'DataLoader' from 'torch.utils.data': Yoke does not have this part of PyTorch; there is no DataLoader"),
    ("from torch import never_there", "ImportError", "cannot import name 'never_there' from 'torch'"),
    ("import torch.never_there", "ModuleNotFoundError", "No module named 'torch.never_there'"),
    ("torch.optim.SGD([torch.ones(1)], lr=1, dampening=0.5)", "UnsupportedError", "SGD(): argument 'dampening' is 0.5; Yoke does not have it"),
    ("torch.ones(1, requires_grad=True).sum().backward(create_graph=True)", "UnsupportedError", "there are no second-order gradients"),
    ("torch.optim.SGD([{'params': [torch.ones(1, requires_grad=True)], 'maximize': True}], lr=1)", "UnsupportedError", "SGD(): argument 'maximize' is True"),
    ("torch.nn.Embedding(3, 2, max_norm=1.0)", "UnsupportedError", "Embedding(): argument 'max_norm' is 1.0; Yoke does not have it"),
    ("torch.set_default_dtype(torch.int64)", "TypeError", "set_default_dtype: argument 'dtype' is int64; it must be float64"),
    ("torch.ones(2, 1).squeeze_()", "UnsupportedError", "squeeze_(): a tensor does not change its shape in Yoke; write x = x.squeeze(…)"),
    ("torch.ones(2).share_memory_()", "UnsupportedError", "processes do not share tensors"),
]


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    return errors_of(tmp_path_factory.mktemp("errors"), {line: line for line, _, _ in ERRORS})


@pytest.mark.parametrize("line, kind, told", ERRORS)
def test_what_is_not_there_is_an_error_with_what_to_do(errors, line, kind, told):
    assert line in errors, "no error"
    assert errors[line][0] == kind and told in errors[line][1]


def test_a_card_that_is_not_there_is_an_error_when_it_is_used(tmp_path):
    text = """
        import torch
        device = torch.device("cuda:1")
        print(repr(device), device.type, device.index, str(torch.device("cuda", 0)), torch.device("cpu") == torch.ones(1).device)
        try:
            torch.ones(1, device=device)
        except RuntimeError as error:
            print(type(error).__name__)
        except Exception as error:
            print(type(error).__name__)
    """
    out = passes(tmp_path, text).splitlines()
    assert out[0] == "device(type='cuda', index=1) cuda 1 cuda:0 True"
    assert out[1] == "DeviceUnavailableError"
