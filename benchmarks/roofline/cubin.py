"""Kernels of a CUDA module for an architecture: instructions and resources, by cuobjdump and nvdisasm.

Both tools are part of the CUDA toolkit, and on PyPI (nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm).
"""
import dataclasses
import functools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sysconfig
import tempfile


class Missing(Exception):
    """A tool that is not on this machine."""


@functools.cache
def tool(name):
    """Returns the path of a tool of the toolkit: on PATH, beside nvcc, or from NVIDIA's wheels in this Python."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    wheels = pathlib.Path(sysconfig.get_paths()["purelib"], "nvidia").glob("cu*/bin")
    folders = [None, pathlib.Path(nvcc).parent, *sorted(wheels, reverse=True)]
    for folder in folders:
        found = shutil.which(name, path=folder and str(folder))
        if found:
            return found
    raise Missing(f"{name} is not here; it is part of the CUDA toolkit, and of PyPI's nvidia-cuda-{name}")


def missing(name):
    """Returns the message about a missing tool; "" if the tool is present."""
    try:
        return "" if tool(name) else name
    except Missing as told:
        return str(told)


def run(*command, **options):
    """Runs a foreign program, without the sanitizer's variables, and returns its output."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, **options)
    return done.stdout + done.stderr


@dataclasses.dataclass
class Instruction:
    address: int
    guard: str  # "P0", "!UP2"; "" where there is none
    name: str  # "LDG.E.128"
    operands: list

    @functools.cached_property
    def opcode(self):
        return self.name.split(".", 1)[0]

    @functools.cached_property
    def modifiers(self):
        return self.name.split(".")[1:]


@dataclasses.dataclass
class Kernel:
    name: str
    arch: int  # 90
    registers: int = 0
    stack: int = 0
    shared: int = 0  # bytes of static arrays
    most_threads: int = 1024
    is_bounded: bool = False  # bounded by its launch bounds
    parameters_at: int = 0x210  # where constant bank 0 holds them
    code: list = dataclasses.field(default_factory=list)
    labels: dict = dataclasses.field(default_factory=dict)  # to an index of code
    constants: dict = dataclasses.field(default_factory=dict)  # number of the bank to its bytes


LINE = re.compile(r"\s+/\*([0-9a-f]+)\*/\s+(?:@(!?U?P[0-9T]) +)?([A-Z][\w.]*) *([^;(]*)")
LABEL = re.compile(r"^([.$\w]+):\s*$")


def split_operands(text):
    """Splits operands at the commas; "`(label)" is an operand."""
    return [part.strip() for part in text.split(",") if part.strip()]


def read_code(text, arch):
    """Returns {name: Kernel} from the output of nvdisasm."""
    kernels, current, pending = {}, None, []
    for line in text.splitlines():
        if line.startswith("\t.section\t"):
            section = re.search(r"\.text\.([\w$]+)", line)
            current = kernels.setdefault(section[1], Kernel(section[1], arch)) if section else None
            continue
        if current is None:
            continue
        label = LABEL.match(line)
        if label:
            pending.append(label[1])
            continue
        target = re.search(r"`\(([^)]*)\)", line)
        found = LINE.match(line.replace(target[0], target[1]) if target else line)
        if found:
            for name in pending:
                current.labels[name] = len(current.code)
            pending.clear()
            current.code.append(Instruction(int(found[1], 16), found[2] or "", found[3], split_operands(found[4])))
    return kernels


def sections(data):
    """Returns {name: bytes} of the sections of an ELF file."""
    at, size, count, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
    text = headers[names][4]
    result = {}
    for header in headers:
        end = data.index(b"\0", text + header[0])
        result[data[text + header[0]:end].decode()] = data[header[4]:header[4] + header[5]] if header[1] != 8 else b""
    return result


PARAM_CBANK, MAX_THREADS = 0x0A, 0x05
SIZED, HALF = 0x04, 0x03


def attributes(data):
    """Yields (number, value) of a section .nv.info."""
    at = 0
    while at + 4 <= len(data):
        form, number, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == SIZED:
            yield number, data[at:at + value]
            at += value
        else:
            yield number, value


def read_tables(kernels, data):
    """Adds what the sections say of each kernel: launch bounds, parameters, constant banks, static shared memory."""
    for section, content in sections(data).items():
        kind, _, name = section[1:].partition("._Z")
        kernel = kernels.get("_Z" + name)
        if not kernel:
            continue
        if kind == "nv.info":
            for number, value in attributes(content):
                if number == MAX_THREADS and len(value) >= 4:
                    kernel.most_threads, kernel.is_bounded = struct.unpack_from("<I", value)[0], True
                elif number == PARAM_CBANK and len(value) >= 8:
                    kernel.parameters_at = struct.unpack_from("<IH", value)[1]
        elif kind.startswith("nv.constant"):
            kernel.constants[int(kind[len("nv.constant"):])] = content


USAGE = re.compile(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+)")


def resources(cubin, arch):
    """Returns {name: Kernel} of a cubin, without its instructions."""
    kernels = {name: Kernel(name, arch, int(registers), int(stack), int(shared))
               for name, registers, stack, shared in USAGE.findall(run(tool("cuobjdump"), "-res-usage", cubin))}
    read_tables(kernels, cubin.read_bytes())
    return kernels


def of_every_cubin(module, arch, read):
    """Returns the merged results of `read` for each file of machine code for an architecture in a shared library or object."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        run(tool("cuobjdump"), "-xelf", f"sm_{arch}", pathlib.Path(module).resolve(), cwd=folder)
        for cubin in sorted(pathlib.Path(folder).glob(f"*.sm_{arch}*.cubin")):
            found |= read(cubin, arch)
    return found


def resources_of(module, arch):
    """Returns {name: Kernel} of a shared library or object for an architecture, without the instructions; only cuobjdump is needed."""
    return of_every_cubin(module, arch, resources)


def symbol_numbers(data, names):
    """Returns the numbers of the symbols of these names in an ELF file."""
    found = sections(data)
    texts = found[".strtab"]
    for number, (at, *_) in enumerate(struct.iter_unpack("<IBBHQQ", found[".symtab"])):
        if texts[at:texts.index(b"\0", at)].decode() in names:
            yield number


def disassembled(cubin, arch, wanted):
    kernels = resources(cubin, arch)
    names = kernels.keys() if wanted is None else wanted & kernels.keys()
    if missing("nvdisasm") or not names:
        return kernels
    numbers = [str(number) for number in symbol_numbers(cubin.read_bytes(), names)]
    for name, read in read_code(run(tool("nvdisasm"), "-c", "-fun", ",".join(numbers), cubin), arch).items():
        kernel = kernels.setdefault(name, read)
        kernel.code, kernel.labels = read.code, read.labels
    return kernels


def kernels_of(module, arch, wanted=None):
    """Returns {name: Kernel} of a shared library or object for an architecture, with the instructions of kernels in `wanted`, or of
    all.

    Without nvdisasm no kernel has instructions.
    """
    return of_every_cubin(module, arch, lambda cubin, arch: disassembled(cubin, arch, wanted))
