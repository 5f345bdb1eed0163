// Cut of a convolution into parts for the team: by images and bands of their rows or, for a large gradient by weight,
// by channels of the result.
//
// Each part is a convolution of its own; oneDNN computes it in one thread. The cut depends on sizes only, because the
// order of a sum may depend on the extents. A single thread computes the same parts in sequence.
#pragma once

#include <algorithm>

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

inline int64_t item_size(const Conv &c)
{
    return c.dtype == YOKE_F32 ? 4 : 2;
}

inline int64_t weight_numel(const Conv &c)
{
    return c.o * (c.c / c.groups) * c.kh * c.kw;
}

struct ConvCut {
    bool by_channels = false;
    int64_t length, unit = 1;  // images or channels; a part begins at a multiple of the unit
    int64_t bands = 1;         // bands of an image's rows, each a part
    int64_t parts = 1;

    explicit ConvCut(const Conv &conv);
    void undo();  // drops the last step of the cut
    Conv part(const Conv &whole, int64_t number) const;

    // Returns the number of kinds: parts of one kind have the same sizes. Images are distributed evenly. The last
    // part has the remaining channels.
    int64_t kinds() const
    {
        return bands > 1 ? bands : by_channels ? parts : size(0) == size(parts - 1) ? 1 : 2;
    }
    int64_t kind_of(int64_t part) const
    {
        return bands > 1 ? part % bands : size(part) == size(0) ? 0 : 1;
    }
    int64_t example(int64_t kind) const
    {
        return bands > 1 || by_channels || kind == 0 ? kind : parts - 1;
    }

private:
    int64_t begin(int64_t part) const { return length / unit * part / parts * unit; }
    int64_t end(int64_t part) const { return part + 1 == parts ? length : begin(part + 1); }
    int64_t size(int64_t part) const { return end(part) - begin(part); }
    void cut_sweep(const Conv &conv);
    void cut_weight(const Conv &conv);
    Conv band(const Conv &image, int64_t number) const;
};

}  // namespace yoke::cpu
