"""Sets of safetensors files as HuggingFace's libraries lay them out, written with json and struct alone."""
import json
import os
import struct

import numpy

NAMES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8", "int16": "I16", "float16": "F16"}


def file_bytes(tensors, metadata=None):
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        array = numpy.asarray(array)
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def arrays_of(path):
    """Returns the content of a plain safetensors file by an independent reader: (arrays by name, metadata)."""
    content = open(path, "rb").read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    dtypes = {stored: name for name, stored in NAMES.items()}
    arrays = {}
    for name, one in header.items():
        begin, end = (8 + length + offset for offset in one["data_offsets"])
        arrays[name] = numpy.frombuffer(content[begin:end], dtypes[one["dtype"]]).reshape(one["shape"])
    return arrays, metadata


def write_set(folder, shards, name="model", metadata=None, index=None):
    """Shards as a list of dicts of arrays; the path of the index. `index` changes what the index says."""
    os.makedirs(folder, exist_ok=True)
    weight_map = {}
    for i, tensors in enumerate(shards):
        file = f"{name}-{i + 1:05}-of-{len(shards):05}.safetensors"
        with open(os.path.join(folder, file), "wb") as out:
            out.write(file_bytes(tensors, {"format": "pt"}))
        weight_map |= {one: file for one in tensors}
    total = sum(numpy.asarray(array).nbytes for tensors in shards for array in tensors.values())
    content = {"metadata": {"total_size": total} | (metadata or {}), "weight_map": weight_map}
    if index:
        index(content)
    path = os.path.join(folder, f"{name}.safetensors.index.json")
    with open(path, "w") as out:
        json.dump(content, out, indent=2, sort_keys=True)
    return path


def write_cache(root, shards):
    """Writes the layout of HuggingFace's cache: files by their hashes in blobs/, links to them in snapshots/REVISION/."""
    plain = os.path.join(root, "plain")
    write_set(plain, shards)
    blobs, snapshot = os.path.join(root, "blobs"), os.path.join(root, "snapshots", "0a1b2c")
    os.makedirs(blobs)
    os.makedirs(snapshot)
    for i, name in enumerate(sorted(os.listdir(plain))):
        os.rename(os.path.join(plain, name), os.path.join(blobs, f"{i:040x}"))
        os.symlink(f"../../blobs/{i:040x}", os.path.join(snapshot, name))
    os.rmdir(plain)
    return snapshot
