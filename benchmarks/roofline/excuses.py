"""Predictions below a target of ./dev gpu, (case, card), and stack frames, (case, "stack"), with what is known of them.

None of these is mended yet. A line that is no longer needed fails the check until it goes.
"""

INSTRUCTIONS = "{} instructions an element, where {} fit"
SPILLED = "registers spilled: the launch bound leaves {}"
CLIP = "each block that clips works out its factor in float64, of which these cards do two a clock, before it finds 1"

KNOWN = {
    ("add bf16", "H200 SXM"): "16 KiB are in flight, where 23 are wanted",
    ("gelu f32", "H200 SXM"): INSTRUCTIONS.format(58, 52),
    ("gelu bf16", "H200 SXM"): INSTRUCTIONS.format(61, 26),
    ("gelu bf16", "A100 SXM 80GB"): INSTRUCTIONS.format(60, 35),
    ("gelu f32", "stack"): SPILLED.format(40),
    ("gelu bf16", "stack"): SPILLED.format(40),
    ("softmax f32", "H200 SXM"): INSTRUCTIONS.format(67, 52),
    ("softmax bf16", "H200 SXM"): INSTRUCTIONS.format(46, 26),
    ("softmax bf16", "A100 SXM 80GB"): INSTRUCTIONS.format(45, 35),
    ("layer_norm f32", "H200 SXM"): INSTRUCTIONS.format(78, 52),
    ("layer_norm bf16", "H200 SXM"): INSTRUCTIONS.format(54, 26),
    ("layer_norm bf16", "A100 SXM 80GB"): INSTRUCTIONS.format(51, 35),
    ("layer_norm bf16", "stack"): SPILLED.format(64),
    ("layer_norm bf16 backward", "H200 SXM"): INSTRUCTIONS.format(55, 39),
    ("cross_entropy f32", "stack"): SPILLED.format(64),
    ("grad_norm f32", "RTX 4090"): CLIP,
    ("grad_norm f32", "T4"): CLIP,
}
