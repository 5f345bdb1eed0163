"""Cards in scripts written for PyTorch: new tensors are on the CPU, and the current card is a number of its own."""

import os

import pytest

from compat_run import passes

pytestmark = pytest.mark.skipif("YOKE_TEST_DEVICE" not in os.environ, reason="needs a CUDA device")

PLACES = """
    import torch
    from torch import nn
    assert torch.cuda.is_available() and torch.ones(1).device.type == "cpu"
    device = torch.device("cuda")
    x = torch.ones(2, device=device)
    assert repr(x.device) == "device(type='cuda', index=0)" and x.device == torch.device("cuda:0") and x.is_cuda and x.type() == "torch.cuda.FloatTensor"
    assert "device='cuda:0'" in repr(x)
    net = nn.Linear(2, 2).to(device)
    net(x).sum().backward()
    assert net.weight.grad.is_cuda
    for each in (torch.ones(2).cuda(), torch.ones(2).to(0), torch.ones(2, device=0), torch.ones(2).to("cuda"), nn.Linear(1, 1).cuda().weight):
        assert each.get_device() == 0
    torch.cuda.set_device(0)
    assert torch.cuda.current_device() == 0 and torch.cuda.memory_allocated() > 0 and torch.ones(1).get_device() == -1
    with torch.device("cuda"):
        assert torch.zeros(1).is_cuda
    torch.set_default_device("cuda")
    assert torch.zeros(1).is_cuda
    torch.set_default_device(None)
    assert not torch.zeros(1).is_cuda
"""
MIXED = """
    import torch
    net = torch.nn.Linear(2, 2).cuda()
    optimizer, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
    with torch.amp.autocast("cuda", dtype=torch.float16):
        y = net(torch.ones(2, 2, device="cuda"))
    assert y.dtype is torch.float16
    scaler.scale(y.float().sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.ones(1, device="cuda")
    torch.cuda.Event(enable_timing=True).record()
    assert torch.cuda.FloatTensor([1.0]).is_cuda and torch.cuda.get_device_properties(0).name == torch.cuda.get_device_name()
"""
SEVERAL = """
    import threading
    import torch
    assert torch.cuda.device_count() == 2
    torch.cuda.set_device(1)
    for each in (torch.ones(1, device="cuda"), torch.ones(1).cuda(), torch.ones(1, device=torch.device("cuda"))):
        assert each.get_device() == 1
    with torch.cuda.device(0):
        assert torch.ones(1).cuda().get_device() == 0
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.ones(1, device="cuda").get_device()))
    thread.start(), thread.join()
    assert torch.ones(1).cuda().get_device() == 1 and seen == [0]
"""


def test_a_card_is_where_a_script_says(tmp_path):
    passes(tmp_path, PLACES)


def test_mixed_precision_and_streams(tmp_path):
    passes(tmp_path, MIXED)


@pytest.mark.skipif("YOKE_CUDA_LIB_PATH" not in os.environ, reason="needs the emulated device")
def test_each_thread_has_its_current_card(tmp_path):
    passes(tmp_path, SEVERAL, env={**os.environ, "FAKE_CUDA_DEVICES": "9.0,9.0"})
