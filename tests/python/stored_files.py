"""safetensors files, read and written by struct and json alone, from the text of the format: a second opinion on yoke.save and
yoke.load. Nothing here uses yoke but the last part, which tells the bits of tensors.
"""
import dataclasses
import json
import math
import struct

MOST_HEADER = 100_000_000
# Every dtype of the format: bits an element.
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16,
        "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}
# Yoke's names of its dtypes, in the order of tensors in its files.
NAMES = {"I64": "int64", "F64": "float64", "F32": "float32", "I32": "int32", "BF16": "bfloat16", "F16": "float16",
         "F8_E4M3": "float8_e4m3", "F8_E5M2": "float8_e5m2", "I8": "int8", "U8": "uint8", "BOOL": "bool"}
STRANGE = [name for name in BITS if name not in NAMES]


class Broken(Exception):
    """A rule of the format is broken."""


@dataclasses.dataclass(frozen=True)
class Stored:
    dtype: str
    shape: tuple
    data: bytes
    begin: int = 0  # in the file


def bytes_of(dtype, shape):
    bits = BITS[dtype] * math.prod(shape)
    if bits % 8:
        raise Broken(f"{bits} bits")
    return bits // 8


def _once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Broken(f"a key twice among {[key for key, _ in pairs][:20]}")
    return found


def _no_constant(text):
    raise Broken(text)


def _header(file):
    size = file.seek(0, 2)
    file.seek(0)
    if size < 8:
        raise Broken(f"{size} bytes")
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MOST_HEADER or 8 + length > size:
        raise Broken(f"a header of {length} bytes in a file of {size}")
    header = file.read(length).decode("utf-8")
    if not header.startswith("{"):
        raise Broken("no '{' at the beginning")
    return json.loads(header, object_pairs_hook=_once, parse_constant=_no_constant), 8 + length, size


def read(path):
    """({name: Stored}, in the order of their data, {key: string}); Broken where a rule is."""
    with open(path, "rb") as file:
        header, begin, size = _header(file)
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
            raise Broken(f"metadata {metadata}")
        end, tensors = 0, {}
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            name.encode("utf-8")
            first, behind = entry["data_offsets"]
            if not all(type(number) is int and number >= 0 for number in (*entry["shape"], first, behind)):
                raise Broken(f"{name}: {entry}")
            if first != end or behind - first != bytes_of(entry["dtype"], entry["shape"]) or begin + behind > size:
                raise Broken(f"{name}: {entry}, behind {end}")
            file.seek(begin + first)
            tensors[name] = Stored(entry["dtype"], tuple(entry["shape"]), file.read(behind - first), begin + first)
            end = behind
    if begin + end != size:
        raise Broken(f"{begin + end} bytes of {size}")
    return tensors, metadata


def packed(header, data=b"", length=None, pad=0):
    """Returns the bytes of a file: a header, `pad` spaces and data. The header is text, or a value for json."""
    if not isinstance(header, (str, bytes)):
        header = json.dumps(header)
    header = (header.encode("utf-8") if isinstance(header, str) else header) + b" " * pad
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entries(tensors):
    """Returns the header of {name: Stored}, with the data in this order."""
    end, header = 0, {}
    for name, each in tensors.items():
        header[name] = {"dtype": each.dtype, "shape": list(each.shape), "data_offsets": [end, end + len(each.data)]}
        end += len(each.data)
    return header


def write(path, tensors, metadata=None, pad=0):
    header = entries(tensors)
    if metadata is not None:
        header["__metadata__"] = metadata
    with open(path, "wb") as file:
        file.write(packed(header, b"".join(each.data for each in tensors.values()), pad=pad))
    return path


# ---- Tensors of Yoke -------------------------------------------------------------------------------------------------


def tensor_of(stored):
    """A tensor with these bits."""
    import yoke
    dtype = getattr(yoke, NAMES[stored.dtype])
    if not stored.data:
        return yoke.empty(stored.shape, dtype=dtype)
    raw = yoke.tensor(list(stored.data), dtype=yoke.uint8)
    return yoke._yoke._view_storage(raw, dtype, stored.shape, None, 0)


def stored_of(x):
    """The bits of a tensor, row-major."""
    import yoke
    stored = next(name for name, ours in NAMES.items() if ours == x.dtype.name)
    if x.numel == 0:
        return Stored(stored, tuple(x.shape), b"")
    dense = x.detach().cpu().clone().contiguous()
    raw = yoke._yoke._view_storage(dense, yoke.uint8, (x.numel * x.itemsize,), None, yoke._yoke._storage_offset(dense))
    return Stored(stored, tuple(x.shape), raw.numpy().tobytes())


def is_mapped(x, path):
    """Returns whether a tensor lies in pages of a file."""
    return mapping(x, path) is not None


def mapping(x, path):
    """Returns the lines of /proc/self/smaps about the pages of `path` in which a tensor lies; None if there are no such pages."""
    lines, inside = [], False
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            if "-" in words[0] and not words[0].endswith(":"):
                first, behind = (int(word, 16) for word in words[0].split("-"))
                inside = first <= x.data_ptr() < behind and len(words) > 5 and words[5].strip().removesuffix(" (deleted)") == str(path)
            if inside:
                lines.append(line)
    return lines or None


def resident(x, path):
    """Returns the resident bytes of the pages of `path` in which a tensor lies."""
    return sum(int(line.split()[1]) * 1024 for line in mapping(x, path) if line.startswith("Rss:"))
