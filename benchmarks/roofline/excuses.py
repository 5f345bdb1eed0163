"""Known predictions below a target of ./dev gpu, KNOWN by (case, card), and known stack frames, FRAMES by kernel.

A line without need fails the check until its removal.
"""

CLIP = ("squares are added in float64, and the first thread of each block that clips works out its factor in float64; these cards do two "
        "such operations a clock. The prediction follows that thread and takes all to be like it")

KNOWN = {
    ("grad_norm f32", "RTX 4090"): CLIP,
    ("grad_norm f32", "T4"): CLIP,
}

ANGLES = "the array in which CUDA's sin, cos and tan reduce large angles"
WORDS = "a word or two: the launch bounds leave one register too few, and a block less of the multiprocessor is the higher price"
HALF = ("two blocks of a multiprocessor leave 64 registers, half of them for the row's values; up to 9.0 that is enough, and whether one "
        "block without a frame is faster no card has told")
LIBRARY = "CUB's own"
SUMS = "words of a loop in which the sums of two gradients and the scores of a tile need all registers; one block less would cost more"
DOUBTED = "a thread's elements whose sum is in doubt: only then they go through memory, to a careful function that is not inlined"

ALL = (75, 80, 86, 89, 90, 100, 120)

# {kernel, as in frames.py: ({architecture: the most bytes, by nvcc 13.0}, why)}
FRAMES = {
    "map_elements<Doubles, Doubles, 1, Seldom<Sin, Cos> >": (dict.fromkeys(ALL, 40), ANGLES),
    "map_elements<Doubles, Doubles, 1, Seldom<Tan, Atan, Asin, Acos, Erfinv> >": (dict.fromkeys(ALL, 40), ANGLES),
    "map_elements<Floats, Floats, 1, Seldom<Tan, Atan, Asin, Acos, Erfinv> >": ({90: 32}, ANGLES),
    "map_elements<Doubles, Doubles, 2, Seldom<SinBackward, CosBackward> >": (dict.fromkeys(ALL, 40), ANGLES),
    **{f"reduce_{way}<{In}, {op}<{In}, {C}> >": (dict.fromkeys(ALL, most), DOUBTED)
       for op, sizes in (("FloatTotal", (64, 48, 16, 32)), ("FloatProduct", (64, 48, 16, 32)), ("Norm", (64, 48, 16, 32)),
                         ("Variance", (160, 112, 32, 80)))
       for (way, In, C), most in zip((("rows", "Floats", "float"), ("rows", "Doubles", "double"), ("columns", "Floats", "float"),
                                      ("columns", "Doubles", "double")), sizes, strict=True)},
    "each_loss<Floats, float>": (dict.fromkeys(ALL, 32), DOUBTED),
    "each_loss<Doubles, double>": (dict.fromkeys(ALL, 16), DOUBTED),
    "normalize_rows<Halves, 16, true, 4, float>": (dict.fromkeys((75, 80, 86, 89, 90, 120), 8),
                                                "a word of the loop over rows, stored and loaded once a row: 65 registers were one too many"),
    "normalize_rows<Singles, 32, true, 4, float>": ({75: 8}, "the same, of 128 registers"),
    "resident_rows<Softmax<Singles>, Singles, 32, true>": ({100: 72, 120: 72}, HALF),
    "resident_rows<Softmax<Halves>, Halves, 32, true>": ({100: 64, 120: 72}, HALF),
    **{f"differentiate_by_mma<{dtype}, 64, true, false>": ({100: 8, 120: 24}, SUMS) for dtype in ("f16", "bf16")},
    "column_rows<Softmax<Doubles>, Doubles>": ({90: 24}, WORDS),
    "attend<Floats>": ({100: 24}, "words of the loop over keys, where there are no tensor cores for its floats or they are not asked for"),
    "map_elements<Floats, Floats, 1, Seldom<Sin, Cos> >": ({80: 8, 90: 8}, WORDS),
    "map_elements<Floats, Floats, 2, Seldom<SinBackward, CosBackward> >": ({120: 8}, WORDS),
    "map_elements<Floats, Floats, 2, Seldom<Pow> >": ({100: 16, 120: 8}, WORDS),
    "sweep_tiles<double>": (dict.fromkeys((75, 80, 86, 89, 90), 8), WORDS),
    "DeviceRadixSortOnesweepKernel<policy_hub<unsigned long, unsigned int, unsigned int>::Policy1000, (SortOrder)0, unsigned long, "
    "unsigned int, unsigned int, int, int, identity_decomposer_t>": ({100: 8, 120: 8}, LIBRARY),
}

# The threads of a block of kernels without launch bounds: with them the compiler spills, or takes twice the registers.
BLOCKS = {"multiply_tiles": 256, "reduce_columns": 256, "reduce_rows": 256}
