"""The table of what differs: where PyTorch's name is another object than Yoke's of the same name, or than nothing.

    "name": "=other"                   Yoke's object under another name: yoke.other
    "name": "module.object; note"      an object of this package; the note says what differs, for docs/from-pytorch.md

A name that is not here, but in PyTorch's list (_facts.py) and in Yoke's module of the same place, is Yoke's own object. All other
names of PyTorch are not there: an error with the advice of core/ops/foreign_names.def.
"""

from __future__ import annotations

from yoke.compat.torch._facts import FACTS

# Modules that can be imported, and the class of module whose attributes can be set.
MODULES: dict[str, str] = dict.fromkeys("""torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.parallel torch.nn.parameter
    torch.nn.modules torch.nn.modules.module torch.nn.parallel.distributed torch.distributed torch.distributed.run torch.distributed.launch
    torch.distributed.distributed_c10d torch.distributed.elastic torch.distributed.elastic.multiprocessing torch.distributed.elastic.multiprocessing.errors
    torch.multiprocessing torch.optim torch.optim.optimizer torch.optim.lr_scheduler torch.amp torch.cuda
    torch.cuda.amp torch.backends torch.backends.cuda torch.backends.mps torch.backends.mkldnn torch.autograd torch.autograd.function torch.autograd.functional torch.utils
    torch.utils.data torch.utils.data.distributed torch.utils.checkpoint torch.accelerator torch.random torch.version torch.types torch.linalg torch.special torch.serialization""".split(), "")
MODULES.update({f"torch.nn.modules.{name}": "" for name in """activation batchnorm container conv dropout linear loss normalization padding pooling
    sparse utils""".split()})
MODULES["torch.backends.cudnn"] = "settings.Cudnn"

# Modules for `python -m`: the module of this package whose main() runs.
RUN = {"torch.distributed.run": "launch", "torch.distributed.launch": "launch"}

# Yoke's module for a place of PyTorch's names.
YOKE_PLACES = {"torch": "yoke", "nn": "yoke.nn", "nn.functional": "yoke.nn.functional", "nn.init": "yoke.nn.init", "nn.utils": "yoke.nn.utils",
               "nn.parallel": "yoke.nn.parallel", "optim": "yoke.optim", "amp": "yoke.amp", "cuda": "yoke.cuda", "cuda.amp": "yoke.cuda.amp",
               "utils": "yoke.utils", "utils.checkpoint": "yoke.utils.checkpoint", "autograd": "yoke.autograd", "random": "yoke", "special": "yoke",
               "linalg": "yoke", "nn.parameter": "yoke.nn"}


def _of(module: str, names: str) -> dict[str, str]:
    """Returns entries for objects of a module of this package under their own names."""
    return {name: f"{module}.{name}" for name in names.split()}


def _other(pairs: str) -> dict[str, str]:
    """Returns entries "name=other" for Yoke's objects under other names."""
    return {name: f"={other}" for name, other in (pair.split("=") for pair in pairs.split())}


# Other names of ops, as functions and as methods.
_OTHER_NAMES = _other("""absolute=abs negative=neg subtract=sub multiply=mul divide=div true_divide=div greater=gt greater_equal=ge less=lt less_equal=le
    not_equal=ne swapdims=transpose arccos=acos arcsin=asin arctan=atan arctan2=atan2 fix=trunc clip=clamp concat=cat concatenate=cat ger=outer
    vdot=dot""")

# Compositions, as functions and, where PyTorch has the method, as methods.
_FUNCTIONS = {
    **_OTHER_NAMES,
    **_of("functions", """atleast_1d atleast_2d vstack hstack dstack column_stack hsplit vsplit dsplit block_diag cartesian_prod broadcast_to
        broadcast_shapes broadcast_tensors moveaxis fliplr flipud rot90 adjoint diag_embed diagflat argwhere unravel_index take clamp_min clamp_max logit
        sinc signbit heaviside hypot xlogy rsub float_power deg2rad rad2deg asinh acosh atanh isin isposinf isneginf isreal is_complex
        is_nonzero is_same_size is_signed positive fill scalar_tensor vander conj renorm fmax fmin copysign msort
        logaddexp2 logcumsumexp"""),
    "row_stack": "functions.vstack", "sgn": "functions.sign", "arcsinh": "functions.asinh", "arccosh": "functions.acosh", "arctanh": "functions.atanh",
    "sign": "functions.sign; Yoke's sign(NaN) is NaN, PyTorch's is 0",
    **_of("reductions", """nansum nanmean cummax cummin diff dist trapezoid scatter_reduce unique_consecutive tensordot inner addmv addr addbmm kron
        cross matrix_power chain_matmul"""),
    "trapz": "reductions.trapezoid", "norm": "reductions.norm_of; Yoke's p is a number", "round": "functions.round; without decimals",
    **_of("extras", "cov corrcoef combinations"),
    **{name: f"reductions.{name}; Yoke takes keepdim and correction by name alone" for name in ("var", "std", "var_mean", "std_mean")},
}

TABLE: dict[str, dict[str, str]] = {
    "torch": {
        **{name: entry for name, entry in _FUNCTIONS.items() if name in FACTS["torch"]},
        "device": "devices.device; Yoke's device(spec) opens the device at once",
        "set_default_device": "devices.set_default_device; write set_device(device)",
        "get_default_device": "devices.get_default_device; write current_device()",
        "Size": "sizes.Size; a shape is a tuple of ints",
        **_of("options", """contiguous_format preserve_format channels_last channels_last_3d strided memory_format layout finfo iinfo
            is_floating_point result_type promote_types can_cast manual_seed seed initial_seed default_generator set_num_interop_threads
            get_num_interop_threads set_flush_denormal set_warn_always typename"""),
        **_of("storages", "is_storage"),
        "compile": "options.compile; leave it out: torch.compile returns its argument here",
        "set_default_dtype": "options.set_default_dtype; give dtype where another than float32 is needed",
        "get_default_dtype": "options.get_default_dtype; float32 is the default dtype",
        "set_default_tensor_type": "options.set_default_tensor_type; give dtype and device",
        "set_printoptions": "text.set_printoptions; the form of printed tensors is fixed",
        "pi": "constants.pi", "inf": "constants.inf", "nan": "constants.nan", "e": "constants.e", "newaxis": "constants.newaxis",
        "float8_e4m3fn": "=float8_e4m3",
        "is_inference_mode_enabled": "gradients.is_inference_mode_enabled", "set_anomaly_enabled": "=autograd.set_detect_anomaly",
        "is_anomaly_enabled": "=autograd.is_anomaly_enabled", "is_anomaly_check_nan_enabled": "=autograd.is_anomaly_check_nan_enabled",
        "set_grad_enabled": "gradients.set_grad_enabled; Yoke calls its argument `enabled`",
        "use_deterministic_algorithms": "settings.use_deterministic_algorithms; leave warn_only out",
        "set_deterministic_debug_mode": "settings.set_deterministic_debug_mode; write use_deterministic_algorithms",
        "is_autocast_enabled": "settings.is_autocast_enabled; without arguments",
        "get_autocast_dtype": "settings.get_autocast_dtype",
        "select": "=Tensor.select; yoke.select chooses a device", "logspace": "arguments.logspace",
        **{name: f"arguments.{name}; Yoke's is always stable: leave stable out" for name in ("sort", "argsort")},
        "squeeze": "arguments.squeeze; Yoke takes one axis", "tensor_split": "arguments.tensor_split; Yoke takes a list of places, not a tensor",
        "linspace": "arguments.linspace; the ends are numbers",
        "t": "=Tensor.t", "detach": "=Tensor.detach", "zero_": "=Tensor.zero_", "split_with_sizes": "=split", "asarray": "=as_tensor",
        **_of("nets", "pairwise_distance prelu bilinear cosine_similarity"),
        **{name: f"nets.{name}; padding is a number for each axis" for name in ("conv1d", "conv2d")},
        **_of("extras", "celu selu threshold hardshrink"),
        "autocast": "=amp.autocast", "GradScaler": "own_steps.GradScaler; write yoke.amp.GradScaler, for Yoke's optimizers",
        "OutOfMemoryError": "=OutOfMemoryError",
        **{name: f"serialization.{name}; PyTorch's files of tensors and containers: yoke.compat.torch.serialization.{name}" for name in ("save", "load")},
        "Generator": "=Generator",
    },
    "nn": {
        "MultiheadAttention": "attention.MultiheadAttention; Yoke's class is self-attention: (x), a bool mask keeps, weights qkv and out",
        **_of("layers", """ReLU SiLU Dropout Dropout1d Dropout2d LeakyReLU ELU Softplus Hardtanh ReLU6 LogSigmoid Mish Softsign Tanhshrink GLU Softmin
            Hardswish Hardsigmoid Upsample PixelShuffle PixelUnshuffle CosineSimilarity PairwiseDistance Softmax LogSoftmax Embedding MaxPool2d
            ConvTranspose2d Bilinear"""),
        **_of("extras", "PReLU CELU SELU Threshold Hardshrink Softshrink Fold Unfold"),
        **_of("pads", """ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d CircularPad1d CircularPad2d ZeroPad1d ZeroPad2d ConstantPad1d
            ConstantPad2d"""),
        **_of("norms", "InstanceNorm1d InstanceNorm2d InstanceNorm3d"),
        **_of("losses", "CrossEntropyLoss NLLLoss MSELoss L1Loss SmoothL1Loss HuberLoss KLDivLoss BCELoss BCEWithLogitsLoss"),
    },
    "nn.functional": _of("extras", "celu selu threshold hardshrink softshrink fold") | _of("nets", """conv1d conv2d adaptive_avg_pool2d relu silu leaky_relu elu hardtanh relu6 logsigmoid mish softsign tanhshrink hardsigmoid hardswish glu prelu softmax log_softmax
        softmin gumbel_softmax dropout dropout1d dropout2d linear embedding pad batch_norm instance_norm max_pool2d avg_pool2d interpolate normalize
        cosine_similarity pairwise_distance bilinear unfold pixel_shuffle pixel_unshuffle scaled_dot_product_attention cross_entropy nll_loss mse_loss l1_loss
        smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits"""),
    "nn.init": {
        **_of("starts", "eye_ dirac_"), "constant_": "starts.constant_; Yoke calls its argument `value`",
        **{name: f"=nn.init.{name}_" for name in "kaiming_normal kaiming_uniform normal orthogonal uniform xavier_normal xavier_uniform".split()},
        "constant": "starts.constant_; write constant_", "eye": "starts.eye_", "dirac": "starts.dirac_",
    },
    "nn.utils": _of("steps", "clip_grad_norm_ clip_grad_value_"),
    "nn.modules": {"Module": "=nn.Module"},
    "nn.modules.module": {"Module": "=nn.Module"},
    "nn.modules.batchnorm": {"_BatchNorm": "=nn.norm._BatchNorm"},
    "nn.modules.conv": {"_ConvNd": "=nn.conv._Conv"},
    "nn.modules.utils": {"_single": "nets.single", "_pair": "nets.pair", "_triple": "nets.triple"},
    "nn.parallel": _of("parallel", "DistributedDataParallel DataParallel"),
    "nn.parallel.distributed": _of("parallel", "DistributedDataParallel"),
    "distributed": _of("distributed", """ReduceOp Backend GroupMember ProcessGroup group is_available is_initialized is_nccl_available is_gloo_available
        is_mpi_available is_torchelastic_launched init_process_group destroy_process_group get_rank get_world_size get_backend get_node_local_rank
        get_process_group_ranks get_group_rank get_global_rank new_group all_reduce reduce broadcast all_gather all_gather_into_tensor gather scatter
        reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single barrier monitored_barrier send recv isend irecv P2POp batch_isend_irecv all_gather_object
        gather_object broadcast_object_list scatter_object_list default_pg_timeout"""),
    "distributed.run": {"main": "launch.main"},
    "distributed.launch": {"main": "launch.main"},
    "distributed.elastic.multiprocessing.errors": {"record": "launch.record"},
    "multiprocessing": {
        **_of("processes", """spawn ProcessRaisedException ProcessExitedException ProcessException get_all_sharing_strategies get_sharing_strategy
            set_sharing_strategy"""),
        **{name: f"processes.{name}" for name in FACTS["multiprocessing"] if not name.startswith(("get_all_sh", "get_sh", "set_sh"))
           and name not in ("reductions",)},
    },
    "optim": {
        **_of("steps", "SGD Adam AdamW"), **_of("more_steps", "RMSprop Adagrad"),
        "Optimizer": "own_steps.Optimizer; Yoke's optimizers are SGD, Adam and AdamW: a script's own is a class with step()"},
    "optim.optimizer": {"Optimizer": "own_steps.Optimizer; Yoke's optimizers are SGD, Adam and AdamW: a script's own is a class with step()"},
    "optim.lr_scheduler": {
        **_of("rates", """LRScheduler LambdaLR MultiplicativeLR StepLR MultiStepLR ConstantLR LinearLR ExponentialLR PolynomialLR CosineAnnealingLR
            CosineAnnealingWarmRestarts OneCycleLR SequentialLR ReduceLROnPlateau"""),
        "_LRScheduler": "rates.LRScheduler",
    },
    "amp": {**_of("settings", "custom_fwd custom_bwd"), "GradScaler": "own_steps.GradScaler; for Yoke's optimizers"},
    "cuda.amp": {**_of("settings", "custom_fwd custom_bwd"), "GradScaler": "own_steps.CudaGradScaler; for Yoke's optimizers"},
    "cuda": {
        **_of("cards", """set_device current_device device is_current_stream_capturing get_device_name get_device_capability get_device_properties synchronize
            current_stream mem_get_info memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats reset_peak_memory_stats"""),
        "manual_seed": "options.manual_seed", "manual_seed_all": "options.manual_seed",
    },
    "accelerator": {
        "is_available": "=cuda.is_available", "device_count": "=cuda.device_count", "empty_cache": "=empty_cache", "set_stream": "=cuda.set_stream",
        "reset_accumulated_memory_stats": "=reset_accumulated_memory_stats", "get_memory_info": "cards.mem_get_info",
        **dict.fromkeys(("set_device_index", "set_device_idx"), "cards.set_device"),
        **dict.fromkeys(("current_device_index", "current_device_idx"), "cards.current_device"),
        **_of("cards", """current_accelerator synchronize current_stream get_device_capability memory_allocated max_memory_allocated memory_reserved
            max_memory_reserved memory_stats reset_peak_memory_stats"""),
    },
    "backends.cuda": {"matmul": "settings.matmul", "is_built": "settings.is_built", **dict.fromkeys(
        ("enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "enable_cudnn_sdp"), "settings.ways_of_attention")},
    "backends.mps": {"is_available": "settings.no", "is_built": "settings.no"},
    "backends.mkldnn": {"is_available": "settings.yes"},
    "autograd": {
        "grad": "gradients.grad; Yoke's returns a list",
        **_of("gradients", "set_grad_enabled Variable set_multithreading_enabled"),
    },
    "serialization": _of("serialization", "save load"),
    "autograd.functional": _of("gradients", "vjp jacobian"),
    "autograd.function": {"Function": "=autograd.Function", "once_differentiable": "=autograd.function.once_differentiable"},
    "random": {**_of("options", "manual_seed seed initial_seed"), "fork_rng": "extras.fork_rng"},
    "version": {"cuda": "settings.cuda", "hip": "settings.hip", "debug": "settings.debug", "git_version": "settings.git_version", "__version__": "constants.version"},
    "types": {"Device": "constants.Device", "Number": "constants.Number"},
    "linalg": {**_of("reductions", "diagonal norm vector_norm matrix_norm matrix_power cross"), "multi_dot": "reductions.multi_dot", "matmul": "=matmul"},
    "special": {"expit": "=sigmoid", "logit": "functions.logit", "xlogy": "functions.xlogy", "sinc": "functions.sinc"},
    "Tensor": {
        **{name: entry if entry[0] != "=" or "." in entry else f"=Tensor.{entry[1:]}" for name, entry in _FUNCTIONS.items()
           if name in FACTS["Tensor"]},
        **_of("tensor", """view to cuda cpu clone contiguous is_contiguous numpy get_device is_cpu layout name storage_offset share_memory_ detach_
            unsqueeze_ squeeze_ t_ transpose_ swapaxes_ swapdims_ fill_diagonal_ resize_ log_normal_ new sum_to_size"""),
        **{f"{name}_": f"tensor.{name}_" for name in """absolute addbmm addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2 arctanh acosh asinh
            atanh baddbmm clamp_max clamp_min clip copysign cumprod cumsum deg2rad divide eq fix float_power ge greater greater_equal gt heaviside hypot le
            less less_equal logical_and logical_not logical_or logical_xor logit lt multiply ne negative not_equal rad2deg renorm round scatter_reduce sgn
            sign sinc subtract tril triu true_divide xlogy""".split()},
        "split_with_sizes": "=Tensor.split",
        **_of("arguments", "sort argsort squeeze tensor_split where"),
        **{name: f"arguments.to_{name}" for name in "bool byte char double float half int long bfloat16".split()},
        **{name: f"storages.{name}; write storage_id() and storage_nbytes()" for name in ("storage", "untyped_storage")},
        "type": "tensor.type_of; names are torch.FloatTensor and so on",
        "shape": "sizes.shape", "size": "sizes.size", "ndimension": "=Tensor.dim",
        "grad_fn": "text.grad_fn", "map_": "tensor.map_", "apply_": "tensor.map_",
        "is_shared": "tensor.false", **dict.fromkeys("is_sparse is_quantized is_meta is_mkldnn is_mps is_xpu is_nested is_sparse_csr".split(), "tensor.false"),
        "is_floating_point": "options.is_floating_point",
    },
    "nn.Module": {
        **_of("modules", "named_modules to cuda share_memory set_submodule state_dict load_state_dict"), "type": "modules.type_",
    },
    "optim.Optimizer": {},
    "utils.data": {"DistributedSampler": "samplers.DistributedSampler; Yoke's takes the number of examples"},
    "utils.data.distributed": {"DistributedSampler": "samplers.DistributedSampler; Yoke's takes the number of examples"},
    "utils": {},
}
# Entries of classes that are attributes, not methods.
ATTRIBUTES = {("Tensor", name) for name in """shape grad_fn is_cpu layout name is_sparse is_quantized is_meta is_mkldnn is_mps is_xpu is_nested
    is_sparse_csr""".split()}
