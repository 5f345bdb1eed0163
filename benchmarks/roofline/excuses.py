"""Predictions below a target of ./dev gpu, (case, card), and stack frames, (case, "stack"), with what is known of them.

None of these is mended yet. A line that is no longer needed fails the check until it goes.
"""

UNPACKS = "values of a dtype that is told at run time are unpacked and packed by some ten instructions each"
POLYNOMIAL = "the exact polynomial; a shorter one would do within the bound of narrow dtypes"
ROW = "a block takes one row, and beginning, statistics and end of it cost more than its elements"
TABLE = "a table of the functions that one of several is called by"

KNOWN = {
    ("add bf16", "H200 SXM"): UNPACKS + ", and 16 KiB are in flight where 23 are wanted",
    ("gelu f32", "H200 SXM"): POLYNOMIAL,
    ("gelu bf16", "H200 SXM"): f"{POLYNOMIAL}; 61 instructions an element where 26 fit",
    ("gelu bf16", "A100 SXM 80GB"): POLYNOMIAL,
    ("gelu f32", "stack"): TABLE,
    ("gelu bf16", "stack"): TABLE,
    ("softmax f32", "H200 SXM"): ROW,
    ("softmax bf16", "H200 SXM"): f"{ROW}; {POLYNOMIAL}",
    ("softmax bf16", "A100 SXM 80GB"): f"{ROW}; {POLYNOMIAL}",
    ("layer_norm f32", "H200 SXM"): ROW,
    ("layer_norm bf16", "H200 SXM"): ROW,
    ("layer_norm bf16", "A100 SXM 80GB"): ROW,
    ("layer_norm bf16", "stack"): "registers that the bound of four blocks leaves no room for",
    ("layer_norm bf16 backward", "H200 SXM"): UNPACKS,
    ("cross_entropy f32", "stack"): "registers that the bound of four blocks leaves no room for, at 7.5 alone",
    ("grad_norm f32", "RTX 4090"): "the squares are summed in float64, of which these cards do two a clock",
    ("grad_norm f32", "T4"): "the squares are summed in float64, of which these cards do two a clock",
}
