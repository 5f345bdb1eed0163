#!/usr/bin/env python3
"""The callers of random_calls, from the prototypes of the public headers: `generate.py ROOT OUT`.

Each function becomes an entry of a table: the name, the rarity of calls, and a lambda. The lambda draws every argument by type
and name (draw.h). Functions for which this is impossible are written by hand in special.cpp. An unknown type ends the build, so
that no function of the API is missing unnoticed.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True

# Functions written by hand: memory whose size the call trusts, callbacks, lists that depend on each other.
SPECIAL = {
    "yoke_tensor_from_memory", "yoke_tensor_from_data", "yoke_tensor_copy_to_host", "yoke_tensor_copy_from_host",
    "yoke_tensor_to_dlpack", "yoke_tensor_from_dlpack", "yoke_alloc", "yoke_free", "yoke_log_set_callback", "yoke_log_add_callback",
    "yoke_log_remove_callback", "yoke_on_out_of_memory", "yoke_remove_on_out_of_memory",
    "yoke_add_garbage_collector", "yoke_oom_details", "yoke_remove_garbage_collector", "yoke_meant_word", "yoke_tensor_view_storage", "yoke_op_invoke",
    "yoke_op_invoke_list", "yoke_grad", "yoke_grad_v2", "yoke_backward_v2", "yoke_tensor_add_hook", "yoke_function_record", "yoke_autocast_swap",
    "yoke_checkpoint_begin", "yoke_checkpoint_swap", "yoke_select", "yoke_last_error", "yoke_op_info",
    "yoke_tensor_shape", "yoke_tensor_strides", "yoke_get_api", "yoke_state_set_string", "yoke_state_put", "yoke_save",
    "yoke_load", "yoke_preempt_watch", "yoke_preempt_add", "yoke_preempt_signal", "yoke_preempt_resume", "yoke_preempt_clear",
    "yoke_preempt_unwatch", "yoke_comm_init", "yoke_comm_init_threads", "yoke_comm_init_devices", "yoke_run", "yoke_comm_hang", "yoke_set_stack_provider",
    "yoke_set_interrupt_hook", "yoke_reducer_create", "yoke_sampler_create", "yoke_sampler_get_state", "yoke_sampler_load",
}
# Rarity of functions that look at the whole machine or change state of the process: a single call of so many drawn
# calls is made.
RARE = {
    "yoke_doctor": 4000, "yoke_doctor_record": 8000, "yoke_doctor_record_v2": 8000, "yoke_inventory_take": 300, "yoke_explain": 300,
    "yoke_select": 300, "yoke_device_sample": 100, "yoke_device_lease": 300, "yoke_lease_holder": 300, "yoke_shutdown": 500,
    "yoke_empty_cache": 20, "yoke_set_alloc_conf": 5, "yoke_set_caching": 20, "yoke_comm_init": 20, "yoke_comm_init_threads": 4, "yoke_run": 50, "yoke_comm_hang": 10, "yoke_group_dump": 10, "yoke_group_split": 4,
    "yoke_group_shrink": 4, "yoke_set_num_threads": 20, "yoke_disable": 50, "yoke_enable": 50,
    "yoke_device_open": 20, "yoke_device_memory": 10, "yoke_config_set": 10, "yoke_read_idx": 10, "yoke_save": 10, "yoke_load": 4,
    "yoke_checkpoint_manager_save": 10, "yoke_checkpoint_manager_load": 4, "yoke_is_available": 10,
    "yoke_why_unavailable": 10, "yoke_device_count": 10, "yoke_device_get": 10, "yoke_device_synchronize": 4,
    "yoke_device_supports": 4, "yoke_set_device": 4, "yoke_graph_begin": 3,
}
# Often enough that a capture, or a scope, once begun, ends.
OFTEN = {"yoke_graph_end": 4, "yoke_graph_abort": 4, "yoke_graph_replay": 3, "yoke_checkpoint_end": 6,
         "yoke_comm_coalesce_end": 4, "yoke_comm_coalesce_drop": 2}
HANDLES = {"tensor", "device", "stream", "event", "graph", "optimizer", "grad_scaler", "ema", "autocast", "checkpoint", "memory_budget", "inventory",
           "explanation", "report", "state", "work", "checkpoint_manager", "group", "reducer", "sampler", "hook"}
SHAPES = {"shape", "normalized_shape", "reps", "size"}
WORDS = {"spec", "kind", "name", "key", "value", "path", "folder", "uuid", "feature", "equation", "mode", "reduction",
         "approximate", "activation", "amount", "settings", "reduce", "indexing", "interpolation", "compute_mode"}
NUMBERS = {"int32_t": "d.int32()", "int64_t": "d.int64()", "uint32_t": "d.uint32()", "uint64_t": "d.bits()",
           "double": "d.real()", "yoke_dtype": "d.dtype()", "yoke_status": "d.int32()"}
STRUCTS_IN = {"yoke_sgd_options", "yoke_adam_options", "yoke_grad_scaler_options"}


def split(param):
    """Returns (type, name) of a parameter from a header."""
    found = re.match(r"(.*?)(\w+)$", param)
    return found[1].strip(), found[2]


def draw(function, params, i):
    """Returns the C++ expression that draws parameter `i`."""
    kind, name = params[i]
    after = params[i + 1][1] if i + 1 < len(params) else ""
    before = params[i - 1][0] if i else ""
    single = re.fullmatch(r"yoke_(\w+) \*", kind)
    double = re.fullmatch(r"yoke_(\w+) \*\*", kind)
    if single and single[1] in HANDLES:
        return f"d.handle<yoke_{single[1]}>()"
    if double and name == "outs":
        has_capacity = any(each == "capacity" for _, each in params)
        return "d.list_out(d.room())" if has_capacity else "d.list_out(d.count_drawn())"
    if double:
        return f"d.out<yoke_{double[1]}>()"
    if kind in NUMBERS:
        if name == "capacity":
            return "d.capacity()"
        if name in ("count", "ndim") and kind == "int64_t" and before.endswith("*") or name.endswith("_count") and before.endswith("*"):
            return "d.count()"
        return NUMBERS[kind]
    if kind == "const int64_t *":
        if after in (f"{name}_count", "ndim"):
            return f"d.ints({'Ints::kShape' if name in SHAPES else 'Ints::kAxes'})"
        return "d.optional_int()"
    if kind == "const double *" and after == f"{name}_count":
        return "d.reals()"
    if kind == "const char *" and name == "path" and function.startswith("yoke_state_"):
        return "d.word(Words::kNode)"
    if kind == "const char *" and name in ("call", "reason", "text", "what", "why"):
        return "d.word(Words::kName)"
    if kind == "const char *" and name in WORDS:
        return f"d.word(Words::k{name.title().replace('_', '')})"
    if kind == "const yoke_scalar *":
        return "d.scalar()"
    if kind == "yoke_tensor *const *":
        return "d.tensors()"
    if kind == "const yoke_index *":
        return "d.items()"
    if kind in ("int64_t *", "int32_t *", "double *", "uint64_t *", "yoke_dtype *"):
        return f"d.number_out<{kind[:-1].strip()}>()"
    if kind == "const char **":
        return "d.text_out()"
    if kind == "void *" and name in ("native", "stream"):
        return "d.native()"
    if kind.startswith("const ") and kind[6:-2] in STRUCTS_IN:
        return f"d.options<{kind[6:-2]}>()"
    if kind == "yoke_generator *":
        return "d.generator()"
    if single:
        return f"d.record<{kind[:-2]}>()"
    sys.exit(f"generate.py: {function}: no rule draws '{kind} {name}'; add a rule here, or a special call")


def entry(function, result, params):
    """Returns the table's line of one function."""
    if function in SPECIAL:
        body = f"special::{function}(d);"
    elif function.endswith("_release"):
        body = f"d.release({function});"
    elif function.endswith("_retain"):
        body = f"d.retain({function});"
    else:
        drawn = ", ".join(draw(function, params, i) for i in range(len(params)))
        how = "status" if result == "yoke_status" else "value"
        body = f"d.{how}({function}, std::tuple{{{drawn}}});"
    times = OFTEN.get(function, 1)
    return "\n".join([f'{{"{function}", {RARE.get(function, 1)}, [](Draw &d) {{ {body} }}}},'] * times)


def main(root, out):
    root = pathlib.Path(root)
    sys.path.insert(0, str(root / "capi"))
    from gen import c_api
    headers = sorted((root / "capi/include/yoke").glob("*.h"))
    functions = c_api.find_functions("\n".join(path.read_text() for path in headers))
    unknown = (SPECIAL | set(RARE) | set(OFTEN)) - set(functions)
    if unknown:
        sys.exit(f"generate.py: no header declares {', '.join(sorted(unknown))}")
    lines = []
    for name, (result, text) in functions.items():
        params = [] if text == "void" else [split(p) for p in text.split(", ")]
        lines.append(entry(name, result, params))
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
