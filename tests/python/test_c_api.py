"""Every function of the public headers, called with NULLs and zeros, names the missing argument and returns."""
import ctypes
import pathlib
import re

import pytest

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "capi" / "include" / "yoke"
PROTOTYPE = re.compile(r"YOKE_API\s+([^;()]*?)(yoke_\w+)\(([^;]*?)\);")
NUMBERS = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
           "uint64_t": ctypes.c_uint64, "double": ctypes.c_double, "yoke_dtype": ctypes.c_int32,
           "yoke_status": ctypes.c_int32}
POINTER = object()
OK, E_VALUE = 0, 1


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("status", ctypes.c_int32), ("message", ctypes.c_char_p),
                ("device", ctypes.c_char_p), ("call", ctypes.c_char_p)]


def ctype(text):
    """POINTER, or the ctypes number of a parameter or result as it is written in a header."""
    if "*" in text or text.split()[0] in ("yoke_drop_fn", "yoke_log_fn", "yoke_stack_fn", "yoke_interrupt_fn", "yoke_relief_fn"):
        return POINTER
    return NUMBERS[text.removeprefix("const ").split()[0]]


def prototypes():
    """{name: (result, [(type, name, text)])} of all functions."""
    found = {}
    for header in sorted(INCLUDE.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        for result, name, params in PROTOTYPE.findall(text):
            texts = [] if params.strip() == "void" else [" ".join(p.split()) for p in params.split(",")]
            found[name] = (result.strip(), [(ctype(p), p.split()[-1].lstrip("*"), p) for p in texts])
    return found


FUNCTIONS = prototypes()
# Functions that accept NULL: the call succeeds.
TAKES_NULL = {"yoke_free", "yoke_set_caching", "yoke_empty_cache", "yoke_reset_peak_memory_stats", "yoke_reset_accumulated_memory_stats",
              "yoke_log_set_callback", "yoke_set_stack_provider", "yoke_set_interrupt_hook", "yoke_device_synchronize", "yoke_set_num_threads",
              "yoke_shutdown", "yoke_manual_seed", "yoke_set_rng_state", "yoke_set_allow_tf32", "yoke_preempt_watch", "yoke_comm_finalize",
              "yoke_comm_note_raised", "yoke_cudnn_set", "yoke_use_deterministic_algorithms", "yoke_set_weak_zero_dim",
              "yoke_set_default_dtype"}


@pytest.fixture(scope="module")
def library():
    loaded = ctypes.CDLL("libyoke.so.0")
    loaded.yoke_last_error.restype = ctypes.POINTER(Error)
    return loaded


@pytest.fixture(autouse=True)
def what_zeros_switch_off_is_switched_on_again(library):
    yield
    library.yoke_set_grad_enabled(1)
    library.yoke_set_caching(1)
    library.yoke_preempt_unwatch(ctypes.c_int64(0))


def call(library, name, outs):
    """Calls with zeros and NULLs; `outs` says whether outputs are given. (status, output slots)."""
    result, params = FUNCTIONS[name]
    function = getattr(library, name)
    function.restype = ctypes.c_int32
    slots, values = [], []
    for kind, param, text in params:
        if kind is POINTER and outs and is_output(text):
            slots.append(ctypes.c_void_p(0x5A5A))
            values.append(ctypes.byref(slots[-1]))
        else:
            values.append(ctypes.c_void_p(None) if kind is POINTER else kind(0))
    return function(*values), slots


def is_output(text):
    return re.search(r"\*\*\s*(out\d*|value)$", text) is not None


def statuses():
    """Returns the names of functions with a status; the two ends of a scope take no arguments."""
    return sorted(name for name, (result, params) in FUNCTIONS.items() if result == "yoke_status" and not name.startswith("yoke_comm_coalesce"))


def test_the_headers_were_read():
    assert len(FUNCTIONS) > 120 and "yoke_softmax" in FUNCTIONS and "yoke_get_api" in FUNCTIONS


@pytest.mark.parametrize("name", statuses())
def test_nulls_and_zeros_are_refused_by_name(library, name):
    status, _ = call(library, name, outs=False)
    error = library.yoke_last_error().contents
    if name in TAKES_NULL:
        assert status == OK
    else:
        assert (status, error.call.decode()) == (E_VALUE, name)
        assert error.message


@pytest.mark.parametrize("name", [n for n in statuses() if any(is_output(t) for _, _, t in FUNCTIONS[n][1])])
def test_a_failed_call_leaves_null_in_its_output(library, name):
    status, slots = call(library, name, outs=True)
    assert status == OK or all(slot.value is None for slot in slots)
    release = {handle: getattr(library, handle + "_release")
               for handle in ("yoke_tensor", "yoke_optimizer", "yoke_stream", "yoke_event")}
    handles = [text.split()[0] for _, _, text in FUNCTIONS[name][1] if is_output(text)]
    for handle, slot in zip(handles, slots):
        if status == OK and handle in release:
            release[handle](slot)


@pytest.mark.parametrize("name", sorted(n for n, (r, p) in FUNCTIONS.items() if r != "yoke_status" and p))
def test_functions_that_return_directly_survive_null(library, name):
    call(library, name, outs=False)
