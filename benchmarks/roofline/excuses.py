"""Predictions below a target of ./dev gpu, (case, card), and stack frames, (case, "stack"), with what is known of them.

A line that is no longer needed fails the check until it goes.
"""

CLIP = ("the first thread of each block that clips works out its factor in float64, of which these cards do two a clock; the prediction "
        "follows that thread and takes all to be like it")

KNOWN = {
    ("layer_norm bf16", "stack"): "a word of the loop over rows, stored and loaded once a row: 65 registers were one too many",
    ("grad_norm f32", "RTX 4090"): CLIP,
    ("grad_norm f32", "T4"): CLIP,
}
