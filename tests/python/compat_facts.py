"""Writes the list of PyTorch's public names, by module: PYTHON_WITH_PYTORCH tests/python/compat_facts.py > bindings/python/yoke/compat/torch/_facts.py

Names alone, without internal ops and without what a module has only imported.
"""

import importlib
import re
import textwrap
import types

import torch

MODULES = """torch nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrizations nn.parallel nn.parameter optim optim.lr_scheduler
    optim.swa_utils amp accelerator cuda cuda.amp backends backends.cuda backends.cudnn backends.mps autograd autograd.functional utils utils.data
    utils.data.distributed utils.checkpoint utils.tensorboard distributed distributed.fsdp distributed.run multiprocessing random special
    linalg fft version distributions jit func onnx profiler sparse hub types serialization""".split()
CLASSES = {"Tensor": torch.Tensor, "nn.Module": torch.nn.Module, "optim.Optimizer": torch.optim.Optimizer}

# Names that PyTorch lists, but scripts do not write.
INTERNAL = re.compile(r"""(cudnn|mkldnn|miopen|quantized|fbgemm|sym|fake_quantize|sparse|import_ir|parse|native|batch_norm|choose|fused|is_vulkan|q|int[1-7]$|uint[1-7]$|
    bits?\d*$|merge_type|unify|prepare_|profiler_allow|init_num_threads|autocast_(de|in)crement|(set|get|is)_autocast_(cpu|gpu|ipu|xla|enabled|cache))[a-z_\d]*|
    .*(_copy|_inverse|_with_counts|_helper|qparams_optimized|_symint)$|cuda_device.*|.*(Type|Storage|StorageBase|Context|FileReader|FileWriter)$""", re.VERBOSE)
KEPT = ("batch_norm", "quantile", "qr", "sparse", "profiler", "is_autocast_enabled", "index_copy", "index_copy_")
CLASSES_OF_TORCH = """BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor Generator GradScaler HalfTensor IntTensor LongTensor
    OutOfMemoryError ShortTensor Size Storage Stream Event Tensor TypedStorage UntypedStorage SymInt""".split()
OTHERS = {"typing", "collections", "abc", "functools", "contextlib", "warnings", "os", "sys", "enum", "typing_extensions", "threading", "math",
          "itertools", "dataclasses", "types", "importlib", "numpy", "copy", "inspect", "traceback", "platform", "_thread", "logging", "builtins"}


def is_public(place, module, name):
    if name.startswith("_") or INTERNAL.fullmatch(name) and name not in KEPT:
        return False
    value = getattr(module, name)
    listed = getattr(module, "__all__", None)
    if isinstance(value, types.ModuleType):
        return value.__name__ == module.__name__ + "." + name
    if place == "torch" and name[0].isupper():
        return name in CLASSES_OF_TORCH
    if listed is not None and name in listed:
        return True
    source = (getattr(value, "__module__", None) or "").partition(".")[0]
    if source in OTHERS or place not in ("torch", "cuda", "nn.init", "optim", "distributed", "version") and listed is not None:
        return False
    return callable(value) or isinstance(value, (torch.dtype, torch.layout, torch.memory_format, float)) or place == "version"


def main():
    facts = {}
    for place in MODULES:
        try:
            module = importlib.import_module("torch" if place == "torch" else f"torch.{place}")
        except ImportError:
            facts[place] = []
            continue
        facts[place] = sorted(name for name in dir(module) if is_public(place, module, name))
    for name, kind in CLASSES.items():
        facts[name] = sorted(each for each in dir(kind) if each[0] != "_" and not INTERNAL.fullmatch(each) or each in KEPT)
    version = torch.__version__.partition("+")[0]
    print(f'"""Public names of PyTorch {version}, by module. tests/python/compat_facts.py writes this file."""\n\n_NAMES = {{')
    for place, names in facts.items():
        lines = textwrap.wrap(" ".join(names), 132) or [""]
        print(f'    "{place}": """' + "\n        ".join(lines) + '""",')
    print('}\nFACTS = {place: frozenset(names.split()) for place, names in _NAMES.items()}')


if __name__ == "__main__":
    main()
