"""Half of a comparison, as a file that travels: results of a device by name, in NumPy's format npz.

Results of a dtype are one array, because a file of its own for each of many small results would be larger than the result. Of a
result with many elements some travel, and a digest of all.
"""

import hashlib
import json
import pathlib
from typing import NamedTuple

import numpy as np

WHOLE = 2048  # elements of a result that travels whole


class Thinned(NamedTuple):
    """Result of many elements as it travels."""

    digest: str
    shape: tuple
    sample: np.ndarray

    def holds(self, array):
        """Tells whether an array has the values of the whole result."""
        return array.shape == self.shape and array.dtype == self.sample.dtype and digest_of(array) == self.digest


def thin(array):
    return array.reshape(-1)[::-(-array.size // WHOLE)]


def digest_of(array):
    """Returns twelve digits that are the same for equal values: for zeros of either sign, and for all NaNs."""
    if array.dtype.kind == "f":
        array = array + array.dtype.type(0)
        array[np.isnan(array)] = np.nan
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def write(path, found, mark):
    """Writes {name: array} and a mark, which is plain data; returns the bytes of the file."""
    pieces, index = {}, []
    for name, array in found.items():
        many = array.size > WHOLE
        index.append([name, str(array.dtype), array.shape, digest_of(array) if many else ""])
        pieces.setdefault(str(array.dtype), []).append(thin(array) if many else array.reshape(-1))
    new = pathlib.Path(f"{path}.new")
    with open(new, "wb") as file:
        text = np.frombuffer(json.dumps({**mark, "index": index}).encode(), np.uint8)
        np.savez_compressed(file, mark=text, **{dtype: np.concatenate(arrays) for dtype, arrays in pieces.items()})
    new.replace(path)
    return pathlib.Path(path).stat().st_size


def read(path):
    """Returns ({name: array or Thinned}, mark). Raises OSError, ValueError, KeyError, EOFError or zipfile.BadZipFile for another file."""
    with np.load(path) as file:
        arrays = dict(file)
    mark, found, places = json.loads(arrays["mark"].tobytes()), {}, dict.fromkeys(arrays, 0)
    for name, dtype, shape, digest in mark["index"]:
        size = int(np.prod(shape, dtype=np.int64))
        count = -(-size // -(-size // WHOLE)) if digest else size
        piece = arrays[dtype][places[dtype]:places[dtype] + count]
        places[dtype] += count
        found[name] = Thinned(digest, tuple(shape), piece) if digest else piece.reshape(shape)
    return found, mark
