"""Zip archives in PyTorch's form: entries without compression, with data from multiples of 64 bytes on."""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Callable
from typing import Any, NamedTuple

ALIGNMENT = 64
LARGE = 0xFFFFFFFF  # sizes and places from here on stand in fields of zip64, and _ELSEWHERE in the old field
_ELSEWHERE = 0xFFFFFFFF
_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
_END64, _LOCATOR = struct.Struct("<4sQ2H2I4Q"), struct.Struct("<4sIQI")
_IS_UTF8, _IS_ENCRYPTED = 0x0800, 0x0001
_LINK, _KIND_OF_FILE = 0o120000, 0o170000


class Entry(NamedTuple):
    """File in an archive: place of the local header, bytes of data, why the data cannot be read or "", and limit of the data."""

    name: str
    place: int
    size: int
    problem: str
    limit: int


class Archive:
    """Entries of an archive in a file with seek(). `damaged` makes the error of a broken rule.

    Reads the list of entries, as long as the file says, and after this the wanted entries alone.
    """

    def __init__(self, file: Any, damaged: Callable[[str], Exception]) -> None:
        self._file, self._damaged = file, damaged
        self._size = file.seek(0, 2)
        self.entries = self._listed(*self._end())

    def start(self, entry: Entry) -> int:
        """Returns where the data of an entry begins; checks the local header."""
        self._check(not entry.problem, f"entry '{entry.name}' {entry.problem}")
        signature, _, flags, method, _, _, _, _, _, length, extra = _LOCAL.unpack(self.at(entry.place, _LOCAL.size))
        start: int = entry.place + _LOCAL.size + length + extra
        self._check(signature == b"PK\3\4" and start + entry.size <= entry.limit,
                    f"entry '{entry.name}' of {entry.size} bytes overlaps what stands behind it")
        name = self.at(entry.place + _LOCAL.size, length)
        self._check(name == entry.name.encode() and method == 0 and not flags & _IS_ENCRYPTED, f"entry '{entry.name}' has two different headers")
        return start

    def read(self, entry: Entry) -> bytes:
        """Returns the data of an entry."""
        return self.at(self.start(entry), entry.size)

    def read_into(self, entry: Entry, memory: memoryview) -> None:
        """Reads the data of an entry into memory of the same size."""
        self._file.seek(self.start(entry))
        done = 0
        while done < len(memory):
            if hasattr(self._file, "readinto"):
                count = self._file.readinto(memory[done:])
            else:
                piece = self._file.read(min(len(memory) - done, 1 << 24))
                count = len(piece)
                memory[done:done + count] = piece
            self._check(count, f"the file ends within entry '{entry.name}'")
            done += count

    def at(self, place: int, size: int) -> bytes:
        """Returns bytes of the file."""
        self._check(0 <= place and place + size <= self._size, f"bytes {place} to {place + size} are named, but the file has {self._size}")
        self._file.seek(place)
        data: bytes = self._file.read(size)
        self._check(len(data) == size, f"the file ends within bytes {place} to {place + size}")
        return data

    def _check(self, is_right: object, rule: str) -> None:
        if not is_right:
            raise self._damaged(rule)

    def _end(self) -> tuple[int, int, int]:
        """Returns the count of entries, and place and size of the list of entries, from the end of the file."""
        before = max(0, self._size - _END.size - 0xFFFF)
        tail = self.at(before, self._size - before)
        found = tail.rfind(b"PK\5\6")
        self._check(0 <= found <= len(tail) - _END.size, "the file has no list of its entries at the end; it may be cut off")
        _, disk, first, _, count, size, place, comment = _END.unpack_from(tail, found)
        self._check(disk == first == 0 and found + _END.size + comment == len(tail), "the end of the zip archive is damaged")
        end = before + found
        if found >= _LOCATOR.size and tail[found - _LOCATOR.size:found - _LOCATOR.size + 4] == b"PK\6\7":
            end = _LOCATOR.unpack_from(tail, found - _LOCATOR.size)[2]
            signature, *_, count, size, place = _END64.unpack(self.at(end, _END64.size))
            self._check(signature == b"PK\6\6", "the zip64 end of the archive is damaged")
        self._check(place + size <= end, f"the list of entries, {size} bytes from byte {place} on, passes its end at byte {end}")
        return count, place, size

    def _listed(self, count: int, place: int, size: int) -> dict[str, Entry]:
        data, at, found = self.at(place, size), 0, []
        for _ in range(count):
            self._check(at + _CENTRAL.size <= size, f"the list has fewer than its {count} entries")
            length, extra, comment = struct.unpack_from("<3H", data, at + 28)
            end = at + _CENTRAL.size + length + extra + comment
            self._check(end <= size, f"the list has fewer than its {count} entries")
            found.append(self._entry(data[at:end]))
            at = end
        self._check(at == size, f"the list of {count} entries has {size - at} bytes too many")
        return self._apart(found, place)

    def _entry(self, header: bytes) -> Entry:
        """Returns the entry of a header in the list; refuses forms without a use in PyTorch's files."""
        (signature, _, _, flags, method, _, _, _, packed, size, length, extra, _, _, _, attributes, place) = _CENTRAL.unpack_from(header)
        self._check(signature == b"PK\1\2", "the list of entries is damaged")
        try:
            name = header[_CENTRAL.size:_CENTRAL.size + length].decode()
        except UnicodeDecodeError:
            raise self._damaged("the name of an entry is not UTF-8") from None
        parts = name.split("/")
        self._check(name and ".." not in parts and "" not in parts[:-1] and "\\" not in name and "\0" not in name,
                    f"the name of entry {name[:80]!r} leads out of the archive")
        self._check((attributes >> 16) & _KIND_OF_FILE != _LINK, f"entry '{name}' is a link")
        packed, size, place = self._wide(header[_CENTRAL.size + length:_CENTRAL.size + length + extra], size, packed, place)
        problem = "is encrypted" if flags & _IS_ENCRYPTED else \
            f"is compressed (method {method}); pack the archive without compression: zip -0" if method else \
            f"has {packed} bytes in the archive, but {size} bytes of data" if packed != size else ""
        return Entry(name, place, packed, problem, 0)

    def _wide(self, extra: bytes, size: int, packed: int, place: int) -> tuple[int, int, int]:
        """Returns sizes and place; large numbers come from the field of zip64."""
        wide: list[int] = []
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<2H", extra, at)
            if kind == 1:
                field = extra[at + 4:at + 4 + length]
                wide = [number for number, in struct.iter_unpack("<Q", field[:len(field) // 8 * 8])]
                break
            at += 4 + length
        found = []
        for number in (size, packed, place):
            self._check(number != _ELSEWHERE or wide, "an entry has no zip64 field")
            found.append(wide.pop(0) if number == _ELSEWHERE else number)
        return found[1], found[0], found[2]

    def _apart(self, entries: list[Entry], end: int) -> dict[str, Entry]:
        """Returns the entries by name, with limits: no entry has bytes of another entry."""
        by_name: dict[str, Entry] = {}
        ordered = sorted(entries, key=lambda entry: entry.place)
        for entry, limit in zip(ordered, [*(each.place for each in ordered[1:]), end]):
            self._check(entry.name not in by_name, f"entry '{entry.name}' is there twice")
            self._check(entry.place + _LOCAL.size + len(entry.name.encode()) + entry.size <= limit,
                        f"entry '{entry.name}' of {entry.size} bytes overlaps what stands behind it")
            by_name[entry.name] = entry._replace(limit=limit)
        return by_name


class Writer:
    """New archive in a file, entry after entry from the file's present place on."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._place = 0
        self._listed: list[bytes] = []

    def add(self, name: str, data: Any) -> None:
        """Writes an entry of these bytes."""
        told, view = name.encode(), memoryview(data)
        crc, size, place = crc32(view), len(view), self._place
        extra = _zip64(*([size] * 2 if size >= LARGE else []))
        begin = place + _LOCAL.size + len(told) + len(extra) + 4
        fill = -begin % ALIGNMENT
        extra += struct.pack("<2sH", b"FB", fill) + b"Z" * fill
        short = _short(size)
        self._put(_LOCAL.pack(b"PK\3\4", 45, _IS_UTF8, 0, 0, 33, crc, short, short, len(told), len(extra)), told, extra, view)
        wide = _zip64(*([size] * 2 if size >= LARGE else []), *([place] if place >= LARGE else []))
        self._listed.append(_CENTRAL.pack(b"PK\1\2", 45, 45, _IS_UTF8, 0, 0, 33, crc, short, short, len(told), len(wide), 0, 0, 0, 0,
                                          _short(place)) + told + wide)

    def close(self) -> None:
        """Writes the list of the entries."""
        place, count, size = self._place, len(self._listed), sum(map(len, self._listed))
        self._put(*self._listed)
        end = self._place
        self._put(_END64.pack(b"PK\6\6", _END64.size - 12, 45, 45, 0, 0, count, count, size, place), _LOCATOR.pack(b"PK\6\7", 0, end, 1))
        short = min(count, 0xFFFF)
        self._put(_END.pack(b"PK\5\6", 0, 0, short, short, _short(size), _short(place), 0))

    def _put(self, *pieces: Any) -> None:
        for piece in pieces:
            self._file.write(piece)
            self._place += len(piece)


def _short(number: int) -> int:
    return _ELSEWHERE if number >= LARGE else number


def _zip64(*numbers: int) -> bytes:
    return struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
