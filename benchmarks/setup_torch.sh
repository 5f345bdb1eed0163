#!/bin/sh
# Makes an environment with the newest PyTorch, torchvision, safetensors and what PyTorch's samples need, without the
# parts for a GPU: setup_torch.sh FOLDER [PYTHON]
#
# The wheel from PyPI is linked with CUDA's libraries, so even an import needs these. The omitted libraries are loaded
# later, or never on a CPU.
set -eu
folder=$1
python=${2:-/usr/bin/python3}
"$python" -m venv "$folder"
"$folder/bin/pip" install --quiet --dry-run --report "$folder/resolved.json" numpy torch torchvision safetensors expecttest
"$folder/bin/python" - "$folder/resolved.json" > "$folder/wheels.txt" <<'SCRIPT'
import json
import sys

UNUSED = ("triton", "cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-cusolver", "nvidia-nvtx", "nvidia-cuda-cccl")
for entry in json.load(open(sys.argv[1]))["install"]:
    name = entry["metadata"]["name"].lower().replace("_", "-")
    if not name.startswith(UNUSED):
        print(f"{name}=={entry['metadata']['version']}")
SCRIPT
"$folder/bin/pip" install --quiet --no-cache-dir --no-deps --requirement "$folder/wheels.txt"
if ! "$folder/bin/python" -c 'import torch' 2>"$folder/import.log"; then
    # A later PyTorch may need what was left out.
    "$folder/bin/pip" install --quiet --no-cache-dir numpy torch torchvision safetensors expecttest
    "$folder/bin/python" -c 'import torch'
fi
touch "$folder/complete"
