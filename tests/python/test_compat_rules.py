"""Where PyTorch's rule differs from Yoke's, the rule is PyTorch's."""

import pytest

from compat_run import errors_of, passes

PARTS = {
    "a tensor without axes is weak": """
        half = torch.ones(2, dtype=torch.float16)
        assert (half * torch.tensor(2.0)).dtype is torch.float16
        assert (torch.ones(2, dtype=torch.int32) + torch.tensor(3)).dtype is torch.int32
        assert (torch.ones(2, dtype=torch.int64) * torch.tensor(2.5)).dtype is torch.float32
        assert torch.where(torch.tensor([True, False]), half, torch.tensor(1.0)).dtype is torch.float16
        assert torch.lerp(half, half, torch.tensor(0.5)).dtype is torch.float16
        assert torch.addcmul(half, torch.tensor(1.0), half).dtype is torch.float16
        assert torch.clamp(half, torch.tensor(0.0)).dtype is torch.float16
        half *= torch.tensor(3.0)
        w = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        (torch.ones(3) * w).sum().backward()
        assert w.grad.dtype is torch.float64 and w.grad.item() == 3
    """,
    "a convolution's result has views": """
        y = nn.Conv2d(1, 2, 3)(torch.randn(2, 1, 5, 5))
        assert torch.equal(y.view(2, -1), y.reshape(2, -1)) and y.view(2, 2, 9).size() == (2, 2, 9)
        try:
            torch.ones(2, 3)[:, :2].view(-1)
        except Exception as error:
            assert "view" in str(error)
        else:
            raise AssertionError
    """,
    "new tensors are on the CPU": """
        assert torch.ones(1).device == torch.device("cpu") and isinstance(torch.ones(1).device, torch.device)
        assert torch.get_default_device().type == "cpu" and torch.ones(1).get_device() == -1
    """,
    "sizes are torch.Size": """
        x = torch.zeros(2, 3)
        assert isinstance(x.shape, torch.Size) and x.size() == x.shape == (2, 3) and x.size(-1) == 3
        assert str(x.shape) == "torch.Size([2, 3])" and x.shape.numel() == 6 == x.numel() and isinstance(x.shape[:1], torch.Size)
    """,
    "texts": """
        assert str(torch.float32) == repr(torch.float32) == "torch.float32" and torch.ones(1).type() == "torch.FloatTensor"
        assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])" and repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
        assert repr(torch.tensor([[1, 20], [3, 4]])) == "tensor([[ 1, 20],\\n        [ 3,  4]])" and repr(torch.tensor(True)) == "tensor(True)"
        assert repr(torch.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
        assert repr(torch.zeros(2, dtype=torch.float64)) == "tensor([0., 0.], dtype=torch.float64)"
        assert repr(torch.tensor([1e-5, 1.0])) == "tensor([1.0000e-05, 1.0000e+00])" and repr(torch.zeros(2, 0)) == "tensor([], size=(2, 0))"
        assert repr(torch.tensor([float("nan"), -1.5])) == "tensor([    nan, -1.5000])"
        assert repr(nn.Parameter(torch.zeros(1))) == "Parameter containing:\\ntensor([0.], requires_grad=True)"
        assert "grad_fn=<" in repr(torch.ones(1, requires_grad=True) * 2)
    """,
    "ops": """
        assert torch.sign(torch.tensor([float("nan"), -2.0])).tolist() == [0.0, -1.0] == torch.tensor([float("nan"), -2.0]).sign().tolist()
        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
        assert x.var(0, False).tolist() == [1.0, 2.25] and x.std(1, True).shape == (2,) and x.var(unbiased=False).shape == ()
        assert torch.norm(x, p="fro").shape == () and torch.round(torch.tensor(1.26), decimals=1).item() > 1.25
        assert torch.ones(2, dtype=float).dtype is torch.float64 and x.to(int).dtype is torch.int64 and x.double().type("torch.FloatTensor").dtype is torch.float32
        assert torch.vstack([x, x]).shape == (4, 2) and torch.hstack([x, x]).shape == (2, 4) and x.clip(0, 1).max() == 1
        assert torch.cummax(torch.tensor([1, 3, 2]), 0).values.tolist() == [1, 3, 3] and torch.isin(torch.tensor([1, 2]), torch.tensor([2])).tolist() == [False, True]
        assert torch.diag_embed(torch.tensor([1.0, 2.0])).tolist() == [[1, 0], [0, 2]] and torch.diag_embed(torch.ones(2), 1).shape == (3, 3)
        y = torch.ones(2, 2)
        assert y.tril_() is y and y.tolist() == [[1, 0], [1, 1]] and y.fill_diagonal_(0).sum() == 1
    """,
    "modules": """
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Dropout(0.5, inplace=False), nn.BatchNorm1d(3))
        state = net.state_dict()
        assert type(state).__name__ == "OrderedDict" and "" in state._metadata
        told = net.load_state_dict({}, strict=False)
        assert told.missing_keys[0] == "0.weight" and told.unexpected_keys == []
        assert str(net.load_state_dict(state)) == "<All keys matched successfully>"
        try:
            net.load_state_dict({"a": torch.ones(1)})
        except RuntimeError as error:
            assert "Error(s) in loading state_dict for Sequential" in str(error)
        assert nn.CrossEntropyLoss(torch.tensor([1.0, 2.0]))(torch.zeros(1, 2), torch.tensor([1])).item() > 0.69
        assert [name for name, _ in net.named_parameters(prefix="p")][0] == "p.0.weight"
        assert nn.Softmax(dim=1)(torch.zeros(1, 2)).tolist() == [[0.5, 0.5]] and nn.Softmax()(torch.zeros(1, 2)).tolist() == [[0.5, 0.5]]
    """,
    "optimizers": """
        w = nn.Parameter(torch.tensor([1.0]))
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
            assert len(kind([{"params": torch.ones(2, 2)}, {"params": w, "lr": 1e-2}], lr=1.0).param_groups) == 2
            optimizer = kind([{"params": [w], "lr": 0.1}], lr=1.0)
            def closure():
                optimizer.zero_grad()
                loss = (w * w).sum()
                loss.backward()
                return loss
            before = w.item()
            assert abs(optimizer.step(closure).item() - before**2) < 1e-6 and w.item() < before
            assert isinstance(optimizer, torch.optim.Optimizer) and "lr: 0.1" in repr(optimizer)
        for make, wanted in ((lambda p: torch.optim.RMSprop(p, lr=0.1, alpha=0.75), 1 - 0.1 / 0.5), (lambda p: torch.optim.Adagrad(p, lr=0.1), 0.9)):
            v = nn.Parameter(torch.tensor([1.0]))
            v.grad = torch.tensor([3.0])
            make([v]).step()
            assert abs(v.item() - wanted) < 1e-5
        named = torch.optim.SGD([{"params": [("w", w)], "name": "all", "dampening": 0}], lr=1.0)
        assert named.param_groups[0]["name"] == "all" and named.param_groups[0]["params"][0] is w
        assert torch.nn.utils.clip_grad_norm_([w], 1e-3, error_if_nonfinite=True).item() > 0
    """,
    "optimizers leave out what requires no grad": """
        net = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 1))
        net[0].weight.requires_grad = False
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        kept, before = net[0].weight.clone(), net[1].weight.detach().clone()
        net(torch.tensor([0, 2])).sum().backward()
        optimizer.step()
        assert torch.equal(net[0].weight, kept) and not torch.equal(net[1].weight, before)
    """,
    "reductions of old scripts": """
        F, x, y = nn.functional, torch.tensor([1.0, 3.0]), torch.zeros(2)
        assert F.mse_loss(x, y, size_average=False).item() == 10 == nn.MSELoss(size_average=False)(x, y).item()
        assert F.mse_loss(x, y, size_average=True).item() == 5 == nn.MSELoss(False, True)(x, y).item() / 2
        assert F.l1_loss(x, y, reduce=False).tolist() == [1, 3] == nn.L1Loss(reduce=False)(x, y).tolist()
        logits, target = torch.zeros(2, 4), torch.tensor([0, 1])
        for call in (F.cross_entropy, lambda z, t, **k: F.nll_loss(F.log_softmax(z, 1), t, **k)):
            assert abs(call(logits, target, size_average=False).item() - 2 * call(logits, target).item()) < 1e-6
        assert abs(nn.BCELoss(size_average=False)(torch.full((2,), 0.5), y).item() - 2 * nn.BCELoss()(torch.full((2,), 0.5), y).item()) < 1e-6
    """,
    "accelerator": """
        assert torch.accelerator.is_available() == torch.cuda.is_available() and torch.accelerator.device_count() == torch.cuda.device_count()
        if torch.accelerator.is_available():
            assert torch.accelerator.current_accelerator() == torch.device("cuda")
            torch.accelerator.set_device_index(0)
            assert torch.accelerator.current_device_index() == 0 == torch.accelerator.current_device_idx()
            torch.accelerator.synchronize()
            assert torch.accelerator.memory_allocated() >= 0 and len(torch.accelerator.get_memory_info()) == 2
        else:
            assert torch.accelerator.current_accelerator() is None
    """,
    "pads and norms of instances": """
        x = torch.arange(9, dtype=torch.float32).reshape(1, 1, 3, 3)
        assert torch.equal(nn.ReflectionPad2d(1)(x), nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")) and nn.ZeroPad2d((1, 0, 2, 0))(x).shape == (1, 1, 5, 4)
        assert nn.ReflectionPad1d(2)(x[0]).tolist()[0][0] == [2, 1, 0, 1, 2, 1, 0] and nn.ReplicationPad2d(1)(x)[0, 0, 0].tolist() == [0, 0, 1, 2, 2]
        assert nn.ConstantPad2d(1, 7.0)(x)[0, 0, 0].tolist() == [7] * 5 and nn.ConstantPad1d((0, 1), 3)(x)[0, 0, 0].tolist() == [0, 1, 2, 3]
        assert str(nn.ReflectionPad2d(1)) == "ReflectionPad2d((1, 1, 1, 1))"
        y = torch.randn(2, 3, 4, 4) * 5 + 2
        z = nn.InstanceNorm2d(3)(y)
        assert z.mean((2, 3)).abs().max() < 1e-5 and (z.var((2, 3), unbiased=False) - 1).abs().max() < 1e-4
        assert list(nn.InstanceNorm2d(3).state_dict()) == [] and list(nn.InstanceNorm2d(3, affine=True).state_dict()) == ["weight", "bias"]
        assert torch.allclose(nn.InstanceNorm2d(3)(y[0]), z[0], atol=1e-6) and nn.InstanceNorm1d(3)(y[0]).shape == (3, 4, 4)
        try:
            nn.InstanceNorm2d(3, track_running_stats=True)
        except Exception as error:
            assert "track_running_stats" in str(error)
        else:
            raise AssertionError
    """,
    "layers draw their values again": """
        layers = [nn.Linear(3, 2), nn.Conv2d(1, 2, 3), nn.ConvTranspose2d(1, 2, 3), nn.Conv1d(2, 2, 1, bias=False), nn.Embedding(4, 2, padding_idx=1)]
        for layer in layers:
            before = layer.weight.clone()
            layer.reset_parameters()
            assert not torch.equal(layer.weight, before) and layer.weight.requires_grad and layer.weight.abs().max() < 5
        assert layers[-1].weight[1].tolist() == [0, 0] and layers[0].bias.abs().max() <= 3**-0.5
        norm = nn.BatchNorm2d(2)
        norm(torch.randn(4, 2, 3, 3) + 5)
        norm.weight.data.fill_(3.0)
        norm.reset_parameters()
        assert norm.weight.tolist() == [1, 1] == norm.running_var.tolist() and norm.running_mean.tolist() == [0, 0] and norm.num_batches_tracked == 0
        nn.LayerNorm(2).reset_parameters(), nn.GroupNorm(1, 2, affine=False).reset_parameters()

        class Zero(nn.Linear):
            def reset_parameters(self):
                nn.init.zeros_(self.weight)
                super().reset_parameters() if self.bias is None else nn.init.ones_(self.bias)

        assert Zero(2, 2).weight.abs().sum() == 0 and Zero(2, 2).bias.tolist() == [1, 1] and Zero(2, 2, bias=False).weight.abs().sum() > 0
    """,
    "storages": """
        x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        row = x[1].requires_grad_()
        kept = row.storage()
        assert kept.tolist() == [0, 1, 2, 3, 4, 5] == list(kept) and len(kept) == kept.size() == 6 and kept[4] == 4 and kept[2:4].tolist() == [2, 3]
        kept[0] = 9.0
        assert x[0, 0] == 9 and kept.data_ptr() == x.data_ptr() == x.untyped_storage().data_ptr() and kept.dtype is torch.float32
        assert x.untyped_storage().nbytes() == len(kept.untyped()) == 24 and kept.element_size() == 4 and torch.is_storage(kept)
        assert "of size 6]" in repr(kept) and kept.device == torch.device("cpu") and torch.zeros(0).storage().tolist() == []
    """,
    "optimizers of scripts": """
        class Sign(torch.optim.Optimizer):
            def __init__(self, params, lr=0.1):
                super().__init__(params, dict(lr=lr))
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is None:
                            continue
                        state = self.state[p]
                        state["steps"] = state.get("steps", 0) + 1
                        state["before"] = p.detach().clone()
                        p.add_(p.grad.sign(), alpha=-group["lr"])
        w = nn.Parameter(torch.tensor([1.0, -2.0]))
        optimizer = Sign([{"params": [w], "lr": 0.5}])
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        scaler.scale((w * w).sum()).backward()
        scaler.unscale_(optimizer), scaler.step(optimizer), scaler.update(), schedule.step()
        assert w.tolist() == [0.5, -1.5] and abs(optimizer.param_groups[0]["lr"] - 0.05) < 1e-9
        other = Sign([w])
        other.load_state_dict(optimizer.state_dict())
        assert other.state[w]["steps"] == 1 and other.state[w]["before"].tolist() == [1, -2] and other.param_groups[0]["lr"] < 0.06
        optimizer.zero_grad()
        assert w.grad is None and "Parameter Group 0" in repr(optimizer) and isinstance(torch.optim.SGD([w], lr=1), torch.optim.Optimizer)
        assert not isinstance(torch.optim.SGD([w], lr=1), Sign)
        for wrong in ([], [w * 2], [3], [{"params": [w]}, {"params": [w]}]):
            try:
                Sign(wrong)
            except (ValueError, TypeError):
                continue
            raise AssertionError(wrong)
    """,
    "compile warns once": """
        import warnings
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            f = torch.compile(lambda x: x)
            @torch.compile(mode="max-autotune")
            def g(x):
                return x
        assert len(told) == 1 and "torch.compile" in str(told[0].message) and g(3) == 3
    """,
    "copies": """
        import copy, pickle
        x = torch.arange(3)
        assert torch.equal(pickle.loads(pickle.dumps(x)), x) and torch.equal(copy.deepcopy(x), x)
        for each in (torch.float16, torch.device("cuda:1"), torch.ones(2).shape):
            assert pickle.loads(pickle.dumps(each)) == each == copy.deepcopy(each)
        net = copy.deepcopy(nn.Linear(1, 1))
        assert isinstance(pickle.loads(pickle.dumps(net)), nn.Linear)
    """,
    "settings": """
        torch.backends.cudnn.benchmark = True
        import yoke
        assert yoke.backends.cudnn.benchmark and torch.backends.cudnn.benchmark
        torch.backends.cuda.matmul.allow_tf32 = True
        assert yoke.backends.allow_tf32 and not torch.backends.mps.is_available()
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.finfo(torch.float32).eps == 2.0**-23 and torch.iinfo(torch.uint8).max == 255
        assert torch.manual_seed(3) is torch.default_generator and torch.initial_seed() == 3
        assert torch.get_default_dtype() is torch.float32 and torch.result_type(torch.ones(1, dtype=torch.int32), 2.0) is torch.float32
    """,
    "the default dtype": """
        torch.set_default_dtype(torch.float64)
        for each in (torch.tensor([1.5]), torch.zeros(2), torch.randn(2), torch.rand(2), torch.full((2,), 1.5), torch.arange(0.0, 1.0, 0.5), torch.linspace(0, 1, 3),
                     torch.eye(2), torch.tensor([1]) / 2, torch.tensor([1]) * 1.5, torch.exp(torch.tensor([1])), torch.empty(1), nn.Linear(1, 1).weight):
            assert each.dtype is torch.float64 is torch.get_default_dtype(), each
        assert repr(torch.zeros(1)) == "tensor([0.])" and torch.ones(1, dtype=torch.float32).dtype is torch.float32 and torch.tensor(1).dtype is torch.int64
        torch.set_default_tensor_type("torch.FloatTensor")
        assert torch.zeros(1).dtype is torch.float32
    """,
    "hooks and functions": """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 2
        x = torch.ones(2, requires_grad=True)
        seen = []
        y = Double.apply(x)
        y.retain_grad()
        handle = y.register_hook(lambda g: seen.append(g.tolist()))
        y.sum().backward()
        assert x.grad.tolist() == [2, 2] and y.grad.tolist() == [1, 1] == seen[0]
        handle.remove()
        net = nn.Linear(2, 1)
        net.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
        with torch.inference_mode():
            assert net(x).requires_grad is False and torch.is_inference_mode_enabled()
        assert seen[-1] == (1,)
        torch.set_float32_matmul_precision("high")
        with torch.autograd.detect_anomaly(check_nan=True):
            pass
    """,
    "attention": """
        attention = nn.MultiheadAttention(8, 2, batch_first=True)
        assert list(attention.state_dict()) == ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
        x = torch.randn(2, 3, 8)
        later = torch.triu(torch.ones(3, 3), 1).bool()
        out, weights = attention(x, x, x, attn_mask=later)
        assert out.shape == (2, 3, 8) and torch.allclose(weights.sum(-1), torch.ones(2, 3)) and weights[:, 0, 1:].abs().sum() == 0
        fast, none = attention(x, x, x, attn_mask=later, need_weights=False)
        assert none is None and torch.allclose(out, fast, atol=1e-6)
        last = torch.tensor([[False, False, True]] * 2)
        assert attention(x, x, x, key_padding_mask=last)[1][:, :, 2].abs().sum() == 0
        assert nn.MultiheadAttention(8, 2, kdim=4, vdim=6)(x, torch.ones(5, 3, 4), torch.ones(5, 3, 6))[0].shape == (2, 3, 8)
    """,
    "initial values": """
        assert nn.init.constant_(torch.empty(2), val=3).tolist() == [3, 3] and nn.init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
        weight, x = nn.init.dirac_(torch.empty(4, 2, 3), groups=2), torch.randn(1, 4, 5)
        assert torch.equal(nn.functional.conv1d(x, weight, padding=1, groups=2), x)
    """,
    "gradients": """
        x = torch.ones(2, requires_grad=True)
        (g,) = torch.autograd.grad((x * 3).sum(), x)
        assert g.tolist() == [3, 3] and torch.autograd.grad((x * 3).sum(), [x, torch.ones(1, requires_grad=True)], allow_unused=True)[1] is None
        (x * 2).sum().backward(inputs=[x])
        assert x.grad.tolist() == [2, 2]
        with torch.set_grad_enabled(mode=False):
            assert not (x * 2).requires_grad
        value, product = torch.autograd.functional.vjp(lambda a, b: a * b, (torch.tensor([2.0]), torch.tensor([5.0])), torch.tensor([3.0]))
        assert value.tolist() == [10] and [each.item() for each in product] == [15, 6]
        assert torch.autograd.functional.jacobian(lambda a: a.pow(2), torch.tensor([1.0, 3.0])).tolist() == [[2, 0], [0, 6]]
        torch.autograd.backward([(x * 2).sum(), (x * 3).sum()])
        old = torch.autograd.Variable(x)
        assert x.grad.tolist() == [7, 7] and not old.requires_grad and old.data_ptr() == x.data_ptr() and isinstance(x, torch.autograd.Variable)
    """,
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    return errors_of(tmp_path_factory.mktemp("rules"), PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_pytorchs_rule_holds(errors, name):
    assert name not in errors, errors[name][2]


SCHEDULES = {  # rates as PyTorch's documentation gives them
    "LambdaLR(o, lambda e: 0.5**e)": [1, 0.5, 0.25, 0.125],
    "StepLR(o, 2, 0.1)": [1, 1, 0.1, 0.1, 0.01],
    "MultiStepLR(o, [1, 3], 0.1)": [1, 0.1, 0.1, 0.01],
    "ExponentialLR(o, 0.5)": [1, 0.5, 0.25],
    "ConstantLR(o, 0.5, 2)": [0.5, 0.5, 1, 1],
    "LinearLR(o, 0.5, 1.0, 2)": [0.5, 0.75, 1, 1],
    "PolynomialLR(o, 4, 1.0)": [1, 0.75, 0.5, 0.25, 0],
    "CosineAnnealingLR(o, 2)": [1, 0.5, 0, 0.5, 1],
    "CosineAnnealingWarmRestarts(o, 2)": [1, 0.5, 1, 0.5],
    "SequentialLR(o, [ConstantLR(o, 0.5, 9), ExponentialLR(o, 0.5)], [2])": [0.5, 0.5, 1, 0.5],
}


def test_schedules_give_pytorchs_rates(tmp_path):
    text = f"""
        import torch
        from torch.optim.lr_scheduler import LambdaLR, StepLR, MultiStepLR, ExponentialLR, ConstantLR, LinearLR, PolynomialLR, CosineAnnealingLR
        from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, SequentialLR, ReduceLROnPlateau, OneCycleLR
        for call, wanted in {SCHEDULES!r}.items():
            o = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
            schedule, rates = eval(call), []
            for _ in wanted:
                rates.append(schedule.get_last_lr()[0])
                o.step()
                schedule.step()
            assert all(abs(x - y) < 1e-9 for x, y in zip(rates, wanted)), (call, rates)
            schedule.load_state_dict(schedule.state_dict())
        o = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        plateau = ReduceLROnPlateau(o, patience=1, factor=0.1)
        for loss in (1.0, 1.0, torch.tensor(1.0), 1.0, 1.0):
            plateau.step(loss)
        assert abs(o.param_groups[0]["lr"] - 0.01) < 1e-9 or abs(o.param_groups[0]["lr"] - 0.1) < 1e-9
        o = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
        cycle = OneCycleLR(o, 1.0, total_steps=10)
        for _ in range(9):
            o.step(); cycle.step()
        assert abs(o.param_groups[0]["lr"] - 4e-6) < 1e-9 and o.param_groups[0]["momentum"] == 0.95
    """
    passes(tmp_path, text)
