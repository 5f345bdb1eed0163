// Convolutions through oneDNN, cut into parts for the team: by images or, of a large gradient by weight, by channels of
// the result.
//
// Each part is a convolution of its own that oneDNN computes in one thread. The cut follows from sizes alone, because
// the order of a sum may depend on the extents; one thread computes the same parts one after the other.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kernels/cpu/conv_cache.h"
#include "kernels/cpu/onednn_cache.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// What a cut costs one thread, measured with AVX-512 and AMX, in multiplications: of f32 and of bf16, which are
// quicker.
struct Prices {
    double part;   // that are worth a part of their own
    double added;  // in the time of an element of a part's sums, written, read and added
    double moved;  // in that of an element that is copied, or read by one more part
};
constexpr Prices kF32Prices = {1 << 26, 64, 6}, kBf16Prices = {1 << 28, 240, 44};
constexpr double kDear = 1.03, kDearInTwo = 1.125;  // of the time of one part
constexpr double kLeastWork = 1 << 22;              // of a part
constexpr int64_t kMostParts = 64;
constexpr int64_t kCutChannels = 64;  // between two cuts: whole blocks of every layout

static int64_t size_of(const Conv &c)
{
    return c.dtype == YOKE_F32 ? 4 : 2;
}

static int64_t weight_numel(const Conv &c)
{
    return c.o * (c.c / c.groups) * c.kh * c.kw;
}

static double work_of(const Conv &c)
{
    return (double)weight_numel(c) * (double)(c.n * c.oh * c.ow);
}

// ---- the cut --------------------------------------------------------------------------------------------------------

struct Cut {
    bool by_channels = false;
    int64_t length, unit = 1;  // images or channels; a part begins at a multiple of the unit
    int64_t parts = 1;

    explicit Cut(const Conv &conv);
    int64_t begin(int64_t part) const { return length / unit * part / parts * unit; }
    int64_t end(int64_t part) const { return part + 1 == parts ? length : begin(part + 1); }
    // A part is as long as one of these two.
    int64_t kinds() const { return size(0) == size(parts - 1) ? 1 : 2; }
    int64_t kind_of(int64_t part) const { return size(part) == size(0) ? 0 : 1; }
    int64_t size(int64_t part) const { return end(part) - begin(part); }
    Conv part(const Conv &whole, int64_t number) const;
};

// As many parts as cost one thread little; two for more.
struct WeightCut {
    const Conv &conv;
    const Prices &prices;

    double cost(bool by_channels, int64_t parts) const
    {
        if (!by_channels) return prices.added * (double)parts * (double)weight_numel(conv);
        const double x = (double)(conv.n * conv.c) * (double)(conv.h * conv.w),
                     grad = (double)(conv.n * conv.o) * (double)(conv.oh * conv.ow);
        return prices.moved * (x * (double)(parts - 1) + 2 * grad);
    }
    bool may(bool by_channels, int64_t parts) const
    {
        if (by_channels ? conv.groups > 1 || parts > conv.o / kCutChannels : parts > conv.n)
            return false;
        const double work = work_of(conv), dear = parts == 2 ? kDearInTwo : kDear;
        return parts <= kMostParts && (double)parts * kLeastWork <= work &&
               cost(by_channels, parts) <= (dear - 1) * work;
    }
};

Cut::Cut(const Conv &conv) : length(conv.n)
{
    const Prices &prices = conv.dtype == YOKE_F32 ? kF32Prices : kBf16Prices;
    if (conv.kind != ConvKind::kWeight) {
        const double worth = work_of(conv) / prices.part,
                     least = work_of(conv) < 2 * kLeastWork ? 1 : 2;
        parts = std::min(length, (int64_t)std::clamp<double>(worth, least, kMostParts));
        return;
    }
    const WeightCut weight{conv, prices};
    for (int64_t next = 2; next <= kMostParts; next *= 2)
        for (bool channels : {true, false})
            if (weight.may(channels, next)) parts = next, by_channels = channels;
    if (by_channels) length = conv.o, unit = kCutChannels;
}

Conv Cut::part(const Conv &whole, int64_t number) const
{
    const int64_t size = size_of(whole), first = begin(number), count = end(number) - first;
    Conv part = whole;
    if (by_channels) {
        part.o = count;
        part.weight =
            static_cast<char *>(whole.weight) + first * (weight_numel(whole) / whole.o) * size;
        part.out = static_cast<char *>(whole.out) + first * size;
    } else {
        part.n = count;
        part.x = static_cast<char *>(whole.x) + first * whole.c * whole.h * whole.w * size;
        part.out = static_cast<char *>(whole.out) + first * whole.o * whole.oh * whole.ow * size;
    }
    return part;
}

// ---- what parts need ------------------------------------------------------------------------------------------------

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

// Of the two kinds of parts: room for the packed weight, and for what a thread needs meanwhile.
struct Needs {
    uint64_t packed = 0, pad = 0, slice = 0;
    bool is_fast = true, packs_alike = true;
};

static dnnl_status_t look(const Conv &conv, const Cut &cut, Needs *needs)
{
    ConvEntry *first = nullptr;
    for (int64_t kind = 0; kind < cut.kinds(); kind++) {
        const Conv part = cut.part(conv, kind == 0 ? 0 : cut.parts - 1);
        const dnnl_status_t status = use_onednn<ConvEntry>(ConvKey(part), [&](ConvEntry &entry) {
            if (!entry.primitive) return needs->is_fast = false, dnnl_success;
            needs->packed = std::max(needs->packed, aligned(entry.packed_bytes));
            needs->pad = std::max(needs->pad, aligned(entry.scratchpad_bytes));
            if (first) needs->packs_alike = entry.packs_like(*first);
            first = &entry;
            return dnnl_success;
        });
        if (status || !needs->is_fast) return status;
        if (cut.by_channels)
            needs->slice =
                std::max(needs->slice,
                         aligned((uint64_t)(part.n * part.oh * part.ow * part.o * size_of(part))));
    }
    return dnnl_success;
}

// The channels of a part, which lie apart, as a dense operand.
static void copy_channels(const Conv &part, int64_t channels, void *to)
{
    const int64_t size = size_of(part), row = part.o * size;
    const char *from = static_cast<const char *>(part.out);
    char *target = static_cast<char *>(to);
    for (int64_t i = 0; i < part.n * part.oh * part.ow; i++, from += channels * size, target += row)
        memcpy(target, from, (size_t)row);
}

// ---- the result, and the gradient by data ---------------------------------------------------------------------------

static yoke_status run_sweep(const yoke_launch *launch, const Conv &conv, const Cut &cut,
                             const Needs &needs, Outcome &outcome)
{
    const int64_t kinds = needs.packs_alike ? 1 : 2,
                  slots = std::min<int64_t>(team_size(), cut.parts);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(kinds * needs.packed + slots * needs.pad))
        return status;
    char *packed = scratch.as<char>(), *pads = packed + kinds * needs.packed;
    const auto packed_of = [&](const ConvEntry &entry, int64_t kind) -> void * {
        return entry.reorder ? packed + (kinds == 1 ? 0 : kind) * needs.packed : conv.weight;
    };
    for (int64_t kind = 0; kind < kinds; kind++)
        outcome.add(
            use_onednn<ConvEntry>(
                ConvKey(cut.part(conv, kind == 0 ? 0 : cut.parts - 1)),
                [&](ConvEntry &entry) { return entry.pack(conv.weight, packed_of(entry, kind)); }),
            true);
    if (outcome.status.load()) return YOKE_OK;
    run_parts(cut.parts, slots, [&](int64_t i, int slot) {
        const Conv part = cut.part(conv, i);
        outcome.add(use_onednn<ConvEntry>(ConvKey(part),
                                          [&](ConvEntry &entry) {
                                              return entry.run(part,
                                                               packed_of(entry, cut.kind_of(i)),
                                                               pads + slot * needs.pad);
                                          }),
                    true);
    });
    return YOKE_OK;
}

// ---- the gradient by weight -----------------------------------------------------------------------------------------

// Each part has channels of its own.
static yoke_status run_channels(const yoke_launch *launch, const Conv &conv, const Cut &cut,
                                const Needs &needs, Outcome &outcome)
{
    const int64_t slots = std::min<int64_t>(team_size(), cut.parts);
    const uint64_t room = needs.packed + needs.pad + needs.slice;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(slots * room)) return status;
    run_parts(cut.parts, slots, [&](int64_t i, int slot) {
        Conv part = cut.part(conv, i);
        char *packed = scratch.as<char>() + slot * room, *slice = packed + needs.packed;
        copy_channels(part, conv.o, slice);
        part.out = slice;
        outcome.add(use_onednn<ConvEntry>(ConvKey(part),
                                          [&](ConvEntry &entry) {
                                              void *to = entry.reorder ? packed : part.weight;
                                              dnnl_status_t status =
                                                  entry.run(part, to, slice + needs.slice);
                                              return status ? status : entry.pack(part.weight, to);
                                          }),
                    true);
    });
    return YOKE_OK;
}

// Adds the parts' sums, `step` bytes apart, into the first, in order.
static void add_parts(char *sums, int64_t parts, uint64_t step)
{
    constexpr int64_t kShare = 4096;
    const int64_t count = (int64_t)step / 4;
    if (parts == 1) return;
    run_parts((count + kShare - 1) / kShare, INT32_MAX, [&](int64_t share, int) {
        float *to = reinterpret_cast<float *>(sums);
        const int64_t begin = share * kShare, end = std::min(count, begin + kShare);
        for (int64_t part = 1; part < parts; part++) {
            const float *from = to + part * count;
            for (int64_t i = begin; i < end; i++) to[i] += from[i];
        }
    });
}

// Each part has images of its own, and sums that are packed alike.
static yoke_status run_images(const yoke_launch *launch, const Conv &conv, const Cut &cut,
                              const Needs &needs, Outcome &outcome)
{
    const int64_t slots = std::min<int64_t>(team_size(), cut.parts);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(cut.parts * needs.packed + slots * needs.pad))
        return status;
    char *sums = scratch.as<char>(), *pads = sums + cut.parts * needs.packed;
    run_parts(cut.parts, slots, [&](int64_t i, int slot) {
        const Conv part = cut.part(conv, i);
        outcome.add(use_onednn<ConvEntry>(ConvKey(part),
                                          [&](ConvEntry &entry) {
                                              return entry.run(part, sums + i * needs.packed,
                                                               pads + slot * needs.pad);
                                          }),
                    true);
    });
    if (outcome.status.load()) return YOKE_OK;
    add_parts(sums, cut.parts, needs.packed);
    outcome.add(use_onednn<ConvEntry>(ConvKey(cut.part(conv, 0)),
                                      [&](ConvEntry &entry) {
                                          if (entry.reorder) return entry.pack(conv.weight, sums);
                                          memcpy(conv.weight, sums, entry.packed_bytes);
                                          return dnnl_success;
                                      }),
                true);
    return YOKE_OK;
}

// ---- entry ----------------------------------------------------------------------------------------------------------

// Sizes and indices that oneDNN keeps in 32 bits.
static bool is_small_enough(const Conv &c)
{
    constexpr int64_t kMost = INT32_MAX;
    return c.n * c.c * c.h * c.w <= kMost && c.n * c.o * c.oh * c.ow <= kMost &&
           weight_numel(c) <= kMost && std::max(c.padding[0], c.padding[1]) <= kMost &&
           std::max(c.dilation[0], c.dilation[1]) <= kMost &&
           std::max(c.stride[0], c.stride[1]) <= kMost;
}

static yoke_status fail_conv(dnnl_status_t status, const Conv &c)
{
    char use[160];
    snprintf(use, sizeof use, "a convolution of %lld x %lld x %lld x %lld to %lld x %lld x %lld",
             (long long)c.n, (long long)c.c, (long long)c.h, (long long)c.w, (long long)c.o,
             (long long)c.oh, (long long)c.ow);
    return fail_onednn(status, use);
}

yoke_status conv_onednn(const yoke_launch *launch, const Conv &conv, bool *done)
{
    *done = false;
    if (conv.dtype != YOKE_F32 && (conv.dtype != YOKE_BF16 || !onednn_has_bf16())) return YOKE_OK;
    Cut cut(conv);
    if (!is_small_enough(cut.part(conv, 0))) return YOKE_OK;
    Needs needs;
    dnnl_status_t status = look(conv, cut, &needs);
    const bool adds = conv.kind == ConvKind::kWeight && !cut.by_channels;
    if (!status && needs.is_fast && adds && !needs.packs_alike) {
        cut.parts = 1;
        needs = {};
        status = look(conv, cut, &needs);
    }
    if (status) return fail_conv(status, conv);
    if (!needs.is_fast) return YOKE_OK;
    Outcome outcome;
    const auto run = adds ? run_images : cut.by_channels ? run_channels : run_sweep;
    if (yoke_status ran = run(launch, conv, cut, needs, outcome)) return ran;
    if (int failed = outcome.status.load()) return fail_conv((dnnl_status_t)failed, conv);
    *done = true;
    return YOKE_OK;
}

}  // namespace yoke::cpu
