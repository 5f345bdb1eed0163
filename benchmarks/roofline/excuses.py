"""Known predictions below a target of ./dev gpu, KNOWN by (case, card), and known stack frames, FRAMES by kernel.

A line without need fails the check until its removal.
"""

CLIP = ("squares are added in float64, and the first thread of each block that clips works out its factor in float64; these cards do two "
        "such operations a clock. The prediction follows that thread and takes all to be like it")

KNOWN = {
    ("grad_norm f32", "RTX 4090"): CLIP,
    ("grad_norm f32", "T4"): CLIP,
}

ANGLES = "the array in which CUDA's sin and cos of float64 reduce large angles"
WORDS = "a word or two: the launch bounds leave one register too few, and a block less of the multiprocessor is the higher price"
HALF = ("two blocks of a multiprocessor leave 64 registers, half of them for the row's values; up to 9.0 that is enough, and whether one "
        "block without a frame is faster no card has told")
LIBRARY = "CUB's own"
SUMS = "words of a loop in which the sums of two gradients and the scores of a tile need all registers; one block less would cost more"
DOUBLE_STRAYS = "words of the loop in which a weight of 0 takes nothing of infinity and NaN, in float64"

# {kernel, as in frames.py: ({architecture: the most bytes, by nvcc 13.0}, why)}
FRAMES = {
    "map_elements<Doubles, Doubles, 1, OneOf<Sin, Cos> >": (dict.fromkeys((75, 80, 86, 89, 90, 100, 120), 40), ANGLES),
    "map_elements<Doubles, Doubles, 1, OneOf<Tan, Atan, Asin, Acos, Erfinv> >": (dict.fromkeys((75, 80, 86, 89, 90, 100, 120), 40), ANGLES),
    **{f"pick<{dtype}>": (dict.fromkeys((75, 80, 86, 89, 90, 100, 120), 16), "the two float64 numbers of a counter, of which a draw takes one")
       for dtype in ("f16", "bf16", "float", "double")},
    "map_elements<Doubles, Doubles, 2, OneOf<SinBackward, CosBackward> >": (dict.fromkeys((75, 80, 86, 89, 90, 100, 120), 40), ANGLES),
    "normalize_rows<Halves, 16, true, 4, float>": (dict.fromkeys((75, 80, 86, 89, 90, 120), 8),
                                                "a word of the loop over rows, stored and loaded once a row: 65 registers were one too many"),
    "normalize_rows<Singles, 32, true, 4, float>": ({75: 8}, "the same, of 128 registers"),
    "resident_rows<Softmax<Singles>, Singles, 32, true>": ({100: 72, 120: 72}, HALF),
    "resident_rows<Softmax<Halves>, Halves, 32, true>": ({100: 64, 120: 72}, HALF),
    **{f"differentiate_by_mma<{dtype}, 64, true, false>": ({100: 8, 120: 24}, SUMS) for dtype in ("f16", "bf16")},
    "differentiate_rows<Doubles, false>": ({75: 80, 80: 72, 86: 72, 89: 72, 90: 96}, DOUBLE_STRAYS),
    "settle_each_row": ({90: 8}, "a word of the loop over rows; the kernel runs once behind cuDNN, and reads a mask alone"),
    "attend<Floats>": ({100: 24}, "words of the loop over keys, where there are no tensor cores for its floats or they are not asked for"),
    "column_rows<SoftmaxGradient<Halves>, Halves>": ({100: 8}, WORDS),
    "map_elements<Floats, Floats, 1, OneOf<Sin, Cos> >": ({100: 8}, WORDS),
    "map_elements<Floats, Floats, 2, Pow>": ({120: 8}, WORDS),
    "sum_gradient_columns<Doubles, double>": ({90: 8}, WORDS),
    "sweep_tiles<double>": (dict.fromkeys((75, 80, 86, 89, 90), 8), WORDS),
    "DeviceRadixSortOnesweepKernel<policy_hub<unsigned long, unsigned int, unsigned int>::Policy1000, (SortOrder)0, unsigned long, "
    "unsigned int, unsigned int, int, int, identity_decomposer_t>": ({100: 8, 120: 8}, LIBRARY),
}

# The threads of a block of kernels without launch bounds: with them the compiler spills, or takes twice the registers.
BLOCKS = {"multiply_tiles": 256, "reduce_columns": 256, "reduce_rows": 256}
