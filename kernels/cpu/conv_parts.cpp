// Convolutions through oneDNN, in parts for the team (conv_cut.h): the memory of parts, and their run.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kernels/cpu/conv_cache.h"
#include "kernels/cpu/conv_cut.h"
#include "kernels/cpu/conv_products.h"
#include "kernels/cpu/conv_trusted.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/onednn_cache.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// ---- memory of parts ------------------------------------------------------------------------------------------------

// Returns whether oneDNN computes a part correctly. A part is checked separately, because its sizes differ from the
// whole convolution's.
static bool may_compute(const Conv &part)
{
    return is_small_enough(part) && is_proven(part);
}

// Largest sizes over all kinds of parts: the packed weight, and a thread's scratchpad, slice of channels, and sums
// before the bias is added.
struct Needs {
    uint64_t packed = 0, pad = 0, slice = 0, sums = 0;
    bool is_fast = true, packs_alike = true;
};

static dnnl_status_t look(const Conv &conv, const ConvCut &cut, Needs *needs)
{
    ConvEntry *first = nullptr;
    for (int64_t kind = 0; kind < cut.kinds(); kind++) {
        const Conv part = cut.part(conv, cut.example(kind));
        if (!may_compute(part)) return needs->is_fast = false, dnnl_success;
        const dnnl_status_t status = use_onednn<ConvEntry>(ConvKey(part), [&](ConvEntry &entry) {
            if (!entry.primitive) return needs->is_fast = false, dnnl_success;
            needs->packed = std::max(needs->packed, aligned(entry.packed_bytes));
            needs->pad = std::max(needs->pad, aligned(entry.scratchpad_bytes));
            if (entry.key.wide)
                needs->sums = std::max(needs->sums,
                                       aligned((uint64_t)(part.n * part.h * part.w * part.c) * 4));
            if (first && !entry.packs_like(*first)) needs->packs_alike = false;
            first = &entry;
            return dnnl_success;
        });
        if (status || !needs->is_fast) return status;
        if (cut.by_channels)
            needs->slice = std::max(needs->slice, aligned((uint64_t)(part.n * part.oh * part.ow *
                                                                     part.o * item_size(part))));
    }
    return dnnl_success;
}

// Copies a part's channels, which lie apart, to a dense operand.
static void copy_channels(const Conv &part, int64_t channels, void *to)
{
    const int64_t size = item_size(part), row = part.o * size;
    const char *from = static_cast<const char *>(part.out);
    char *target = static_cast<char *>(to);
    for (int64_t i = 0; i < part.n * part.oh * part.ow; i++, from += channels * size, target += row)
        memcpy(target, from, (size_t)row);
}

// Packs the weight's pieces by the team. For a gradient by weight, copies the pieces to the caller's layout instead.
// Returns the number of pieces; 0 if both layouts are equal.
static int64_t pack_pieces(const ConvKey &key, void *weight, void *packed, Outcome &outcome)
{
    int64_t count = 0;
    outcome.add(use_onednn<ConvEntry>(
                    key, [&](ConvEntry &entry) { return count = entry.pack_count, dnnl_success; }),
                true);
    if (count == 0) return 0;
    run_parts(count, INT32_MAX, [&](int64_t i, int) {
        outcome.add(use_onednn<ConvEntry>(
                        key, [&](ConvEntry &entry) { return entry.pack(weight, packed, i); }),
                    true);
    });
    return count;
}

// ---- the result, and the gradient by data ---------------------------------------------------------------------------

static dnnl_status_t run_entry(ConvEntry &entry, const Conv &part, AddBias add_bias, void *weight,
                               char *pad, char *sums)
{
    Conv into = part;
    if (entry.key.wide) into.x = sums;
    const dnnl_status_t status = entry.run(into, weight, pad);
    if (!status && part.kind == ConvKind::kData && part.bias)
        add_bias(part, static_cast<const float *>(into.x));
    return status;
}

static yoke_status run_sweep(const yoke_launch *launch, const Conv &conv, const ConvCut &cut,
                             const Needs &needs, AddBias add_bias, Outcome &outcome)
{
    const int64_t kinds = needs.packs_alike ? 1 : cut.kinds(), team = team_size(),
                  slots = std::min(team, cut.parts);
    Scratch scratch(launch);
    const uint64_t room = needs.pad + needs.sums;
    if (yoke_status status = scratch.reserve(kinds * needs.packed + slots * room)) return status;
    char *packed = scratch.as<char>(), *rooms = packed + kinds * needs.packed;
    const auto packed_of = [&](const ConvEntry &entry, int64_t kind) -> void * {
        return entry.pack_count ? packed + (kinds == 1 ? 0 : kind) * needs.packed : conv.weight;
    };
    for (int64_t kind = 0; kind < kinds; kind++)
        pack_pieces(ConvKey(cut.part(conv, cut.example(kind))), conv.weight,
                    packed + kind * needs.packed, outcome);
    if (outcome.status.load()) return YOKE_OK;
    run_parts(cut.parts, team, [&](int64_t i, int slot) {
        const Conv part = cut.part(conv, i);
        char *pad = rooms + slot * room;
        outcome.add(use_onednn<ConvEntry>(ConvKey(part),
                                          [&](ConvEntry &entry) {
                                              return run_entry(entry, part, add_bias,
                                                               packed_of(entry, cut.kind_of(i)),
                                                               pad, pad + needs.pad);
                                          }),
                    true);
    });
    return YOKE_OK;
}

// ---- the gradient by weight -----------------------------------------------------------------------------------------

// Returns whether some place of the window meets only padding. Then oneDNN (2.6, bf16) adds scratchpad bytes that it
// never wrote.
static bool has_idle_places(const Conv &c)
{
    const int64_t size[] = {c.h, c.w}, out[] = {c.oh, c.ow}, kernel[] = {c.kh, c.kw};
    for (int axis = 0; axis < 2; axis++)
        for (int64_t place = 0; place < kernel[axis]; place++) {
            const int64_t at = place * c.dilation[axis] - c.padding[axis];
            const int64_t first = at < 0 ? kernels::divide_up(-at, c.stride[axis]) : 0;
            if (first >= out[axis] || at + first * c.stride[axis] >= size[axis]) return true;
        }
    return false;
}

// Returns the scratchpad of a gradient by weight. Fills it with zeros if oneDNN would add bytes that it never wrote.
static void *ready_pad(const Conv &conv, const Needs &needs, void *pad)
{
    return has_idle_places(conv) ? memset(pad, 0, needs.pad) : pad;
}

// Runs parts of a gradient by weight, each with channels of its own.
static yoke_status run_channels(const yoke_launch *launch, const Conv &conv, const ConvCut &cut,
                                const Needs &needs, Outcome &outcome)
{
    const int64_t team = team_size(), slots = std::min(team, cut.parts);
    const uint64_t room = needs.packed + needs.pad + needs.slice;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(slots * room)) return status;
    run_parts(cut.parts, team, [&](int64_t i, int slot) {
        Conv part = cut.part(conv, i);
        char *packed = scratch.as<char>() + slot * room, *slice = packed + needs.packed;
        copy_channels(part, conv.o, slice);
        part.out = slice;
        outcome.add(use_onednn<ConvEntry>(ConvKey(part),
                                          [&](ConvEntry &entry) {
                                              void *to = entry.pack_count ? packed : part.weight;
                                              void *pad =
                                                  ready_pad(part, needs, slice + needs.slice);
                                              dnnl_status_t status = entry.run(part, to, pad);
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

// Runs parts of a gradient by weight, each with images of its own, and adds their sums. The sums of all parts are
// packed alike.
static yoke_status run_images(const yoke_launch *launch, const Conv &conv, const ConvCut &cut,
                              const Needs &needs, Outcome &outcome)
{
    const int64_t team = team_size(), slots = std::min(team, cut.parts);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(cut.parts * needs.packed + slots * needs.pad))
        return status;
    char *sums = scratch.as<char>(), *pads = sums + cut.parts * needs.packed;
    run_parts(cut.parts, team, [&](int64_t i, int slot) {
        const Conv part = cut.part(conv, i);
        outcome.add(use_onednn<ConvEntry>(ConvKey(part),
                                          [&](ConvEntry &entry) {
                                              void *pad =
                                                  ready_pad(part, needs, pads + slot * needs.pad);
                                              return entry.run(part, sums + i * needs.packed, pad);
                                          }),
                    true);
    });
    if (outcome.status.load()) return YOKE_OK;
    add_parts(sums, cut.parts, needs.packed);
    if (!pack_pieces(ConvKey(cut.part(conv, 0)), conv.weight, sums, outcome) &&
        !outcome.status.load())
        memcpy(conv.weight, sums, (size_t)weight_numel(conv) * sizeof(float));
    return YOKE_OK;
}

// ---- entry ----------------------------------------------------------------------------------------------------------

static yoke_status fail_conv(dnnl_status_t status, const Conv &c)
{
    char use[160];
    snprintf(use, sizeof use, "a convolution of %lld x %lld x %lld x %lld to %lld x %lld x %lld",
             (long long)c.n, (long long)c.c, (long long)c.h, (long long)c.w, (long long)c.o,
             (long long)c.oh, (long long)c.ow);
    return fail_onednn(status, use);
}

yoke_status conv_onednn(const yoke_launch *launch, const Conv &conv, AddBias add_bias, bool *done)
{
    *done = false;
    if (conv.dtype != YOKE_F32 && (conv.dtype != YOKE_BF16 || !onednn_has_bf16())) return YOKE_OK;
    const bool is_trusted = is_proven(conv);
    if (is_product(conv) || (!is_trusted && can_be_product(conv))) {
        const yoke_status status = conv_product(launch, conv, done);
        if (status || *done) return status;
    }
    if (!is_trusted)
        return conv.kind == ConvKind::kForward &&
                       (conv.groups == 1 || conv.c / conv.groups >= kAmxTile)
                   ? conv_forward(launch, conv, done)
                   : YOKE_OK;
    ConvCut cut(conv);
    Needs needs;
    dnnl_status_t status = look(conv, cut, &needs);
    const bool adds = conv.kind == ConvKind::kWeight && !cut.by_channels;
    if (!status && needs.is_fast && (adds || cut.bands > 1) && !needs.packs_alike) {
        cut.undo();
        needs = {};
        status = look(conv, cut, &needs);
    }
    if (status) return fail_conv(status, conv);
    if (!needs.is_fast) return YOKE_OK;
    Outcome outcome;
    const yoke_status ran = adds ? run_images(launch, conv, cut, needs, outcome)
                            : cut.by_channels
                                ? run_channels(launch, conv, cut, needs, outcome)
                                : run_sweep(launch, conv, cut, needs, add_bias, outcome);
    if (ran) return ran;
    if (int failed = outcome.status.load()) return fail_conv((dnnl_status_t)failed, conv);
    *done = true;
    return YOKE_OK;
}

}  // namespace yoke::cpu
