// Primitive of a convolution and its operands, as oneDNN describes them.
#include "kernels/cpu/conv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace yoke::cpu {

ConvKey::ConvKey(const Conv &conv)
    : kind(static_cast<int64_t>(conv.kind)),
      dtype(conv.dtype),
      bias(conv.bias && conv.kind == ConvKind::kForward),
      wide(conv.bias && conv.kind == ConvKind::kData && conv.dtype != YOKE_F32),
      n(conv.n),
      c(conv.c),
      h(conv.h),
      w(conv.w),
      o(conv.o),
      oh(conv.oh),
      ow(conv.ow),
      kh(conv.kh),
      kw(conv.kw),
      stride{conv.stride[0], conv.stride[1]},
      padding{conv.padding[0], conv.padding[1]},
      dilation{conv.dilation[0], conv.dilation[1]},
      groups(conv.groups)
{
}

// ---- descriptions ---------------------------------------------------------------------------------------------------

// oneDNN's objects while a primitive is made; an exception may come out of oneDNN.
template <class T, dnnl_status_t (*destroy)(T)>
struct Owned {
    T it = nullptr;
    Owned() = default;
    ~Owned() { reset(); }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    void reset()
    {
        if (it) destroy(it);
        it = nullptr;
    }
};
using PrimitiveDesc = Owned<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using PrimitiveIterator =
    Owned<dnnl_primitive_desc_iterator_t, dnnl_primitive_desc_iterator_destroy>;
using Attributes = Owned<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;

static bool is(const ConvKey &key, ConvKind kind)
{
    return key.kind == static_cast<int64_t>(kind);
}

static dnnl_data_type_t type_of(const ConvKey &key)
{
    return key.dtype == YOKE_F32 ? dnnl_f32 : dnnl_bf16;
}

// Operands of a convolution as oneDNN sees them. `any` is the weight in a layout of oneDNN's choice.
struct Pixels {
    dnnl_memory_desc_t x, weight, any, out, bias;
};

static dnnl_status_t describe(Pixels *to, const ConvKey &key)
{
    const dnnl_data_type_t type = type_of(key);
    const dnnl_data_type_t packed = is(key, ConvKind::kWeight) ? dnnl_f32 : type;
    const bool grouped = key.groups > 1;
    const dnnl_dims_t x = {key.n, key.c, key.h, key.w}, out = {key.n, key.o, key.oh, key.ow},
                      bias = {key.o};
    const dnnl_dims_t weight = {key.groups, key.o / key.groups, key.c / key.groups, key.kh, key.kw};
    const int skip = grouped ? 0 : 1;
    const dnnl_format_tag_t plain = grouped ? dnnl_goihw : dnnl_oihw;
    const struct {
        dnnl_memory_desc_t *desc;
        int axes;
        const int64_t *dims;
        dnnl_data_type_t type;
        dnnl_format_tag_t tag;
    } all[] = {{&to->x, 4, x, key.wide ? dnnl_f32 : type, dnnl_nhwc},
               {&to->out, 4, out, type, dnnl_nhwc},
               {&to->bias, 1, bias, type, dnnl_a},
               {&to->weight, 5 - skip, weight + skip, type, plain},
               {&to->any, 5 - skip, weight + skip, packed, dnnl_format_tag_any}};
    for (const auto &one : all)
        if (dnnl_status_t status =
                dnnl_memory_desc_init_by_tag(one.desc, one.axes, one.dims, one.type, one.tag))
            return status;
    return dnnl_success;
}

// The numbers of an axis as oneDNN counts them.
struct Window {
    dnnl_dims_t strides, dilates, left, right;

    explicit Window(const ConvKey &key)
    {
        const int64_t from[] = {key.h, key.w}, to[] = {key.oh, key.ow}, taps[] = {key.kh, key.kw};
        for (int axis = 0; axis < 2; axis++) {
            strides[axis] = key.stride[axis];
            dilates[axis] = key.dilation[axis] - 1;
            left[axis] = key.padding[axis];
            right[axis] = (to[axis] - 1) * key.stride[axis] +
                          (taps[axis] - 1) * key.dilation[axis] + 1 - from[axis] - left[axis];
        }
    }
};

// Finds the first implementation other than oneDNN's plain loops. If there is none, *out stays null.
static dnnl_status_t choose(dnnl_primitive_desc_t *out, const_dnnl_op_desc_t desc,
                            const_dnnl_primitive_desc_t hint)
{
    Attributes attributes;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes.it);
    if (!status)
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes.it, dnnl_scratchpad_mode_user);
    PrimitiveIterator each;
    if (!status)
        status = dnnl_primitive_desc_iterator_create(&each.it, desc, attributes.it, onednn_engine(),
                                                     hint);
    while (!status) {
        PrimitiveDesc found;
        found.it = dnnl_primitive_desc_iterator_fetch(each.it);
        if (!found.it) return dnnl_out_of_memory;
        const char *name = "";
        status = dnnl_primitive_desc_query(found.it, dnnl_query_impl_info_str, 0, &name);
        if (!status && strncmp(name, "ref", 3) != 0) {
            *out = std::exchange(found.it, nullptr);
            return dnnl_success;
        }
        if (!status) status = dnnl_primitive_desc_iterator_next(each.it);
    }
    return status == dnnl_iterator_ends ? dnnl_success : status;
}

static dnnl_status_t choose_forward(dnnl_primitive_desc_t *out, const ConvKey &key, const Pixels &p)
{
    const Window window(key);
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &desc, dnnl_forward_training, dnnl_convolution_direct, &p.x, &p.any,
        key.bias ? &p.bias : nullptr, &p.out, window.strides, window.dilates, window.left,
        window.right);
    return status ? status : choose(out, &desc, nullptr);
}

// Finds the implementation of a gradient. oneDNN needs a forward implementation for this; without a forward
// implementation other than plain loops, *out stays null.
static dnnl_status_t choose_gradient(dnnl_primitive_desc_t *out, const ConvKey &key,
                                     const Pixels &p)
{
    const Window window(key);
    Pixels forward = p;
    ConvKey of_forward = key;
    of_forward.kind = static_cast<int64_t>(ConvKind::kForward);
    of_forward.wide = 0;
    PrimitiveDesc hint;
    dnnl_status_t status = describe(&forward, of_forward);
    if (!status) status = choose_forward(&hint.it, of_forward, forward);
    if (status || !hint.it) return status;
    dnnl_convolution_desc_t desc;
    if (is(key, ConvKind::kData))
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &desc, dnnl_convolution_direct, &p.x, &p.any, &p.out, window.strides, window.dilates,
            window.left, window.right);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, &p.x, &p.any, nullptr, &p.out, window.strides,
            window.dilates, window.left, window.right);
    return status ? status : choose(out, &desc, hint.it);
}

// ---- entries --------------------------------------------------------------------------------------------------------

static dnnl_status_t make_memory(dnnl_memory_t *out, const dnnl_memory_desc_t &desc)
{
    return dnnl_memory_create(out, &desc, onednn_engine(), DNNL_MEMORY_NONE);
}

static dnnl_status_t make_reorder(dnnl_primitive_t *out, const dnnl_memory_desc_t &from,
                                  const dnnl_memory_desc_t &to)
{
    PrimitiveDesc made;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&made.it, &from, onednn_engine(), &to,
                                                              onednn_engine(), nullptr);
    return status ? status : dnnl_primitive_create(out, made.it);
}

static void clear_packs(ConvEntry &entry)
{
    for (Pack &one : entry.packs) {
        if (one.reorder) dnnl_primitive_destroy(one.reorder);
        for (dnnl_memory_t memory : {one.weight, one.packed})
            if (memory) dnnl_memory_destroy(memory);
        one = {};
    }
    entry.pack_count = 0;
}

void ConvEntry::clear()
{
    if (primitive) dnnl_primitive_destroy(primitive);
    for (dnnl_memory_t one : {x, packed, out, bias, scratchpad})
        if (one) dnnl_memory_destroy(one);
    clear_packs(*this);
    *this = {};
}

// Returns the number of pieces in which a weight is packed: 1 for a small weight or several groups. In any layout, a
// piece has whole blocks of channels.
static int64_t count_packs(const ConvKey &key)
{
    constexpr int64_t kBlock = 64, kLarge = 1 << 16;
    int64_t count = 1;
    if (key.groups > 1 || key.o * key.c * key.kh * key.kw < kLarge) return count;
    while (count < kMostPacks && key.o % (2 * count * kBlock) == 0) count *= 2;
    return count;
}

// Makes `count` packs, each for an equal piece of the weight's first axis. If a step fails, the entry has no packs.
static dnnl_status_t make_packs(ConvEntry &entry, const dnnl_memory_desc_t &plain,
                                const dnnl_memory_desc_t &inside, bool is_weight, int64_t count)
{
    dnnl_dims_t dims = {}, offsets = {};
    std::copy_n(plain.dims, plain.ndims, dims);
    dims[0] /= count;
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < count && !status; i++, offsets[0] += dims[0]) {
        Pack &to = entry.packs[i];
        dnnl_memory_desc_t weight, packed;
        status = dnnl_memory_desc_init_submemory(&weight, &plain, dims, offsets);
        if (!status) status = dnnl_memory_desc_init_submemory(&packed, &inside, dims, offsets);
        if (!status)
            status = is_weight ? make_reorder(&to.reorder, packed, weight)
                               : make_reorder(&to.reorder, weight, packed);
        if (!status) status = make_memory(&to.weight, weight);
        if (!status) status = make_memory(&to.packed, packed);
    }
    if (status)
        clear_packs(entry);
    else
        entry.pack_count = count;
    return status;
}

dnnl_status_t ConvEntry::make(const ConvKey &wanted)
{
    const bool is_weight = is(wanted, ConvKind::kWeight);
    Pixels p = {};
    PrimitiveDesc desc;
    dnnl_status_t status = describe(&p, wanted);
    if (!status)
        status = is(wanted, ConvKind::kForward) ? choose_forward(&desc.it, wanted, p)
                                                : choose_gradient(&desc.it, wanted, p);
    if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) return dnnl_success;
    if (status || !desc.it) return status;
    const dnnl_memory_desc_t *inside = dnnl_primitive_desc_query_md(
                                 desc.it,
                                 is_weight ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0),
                             *pad =
                                 dnnl_primitive_desc_query_md(desc.it, dnnl_query_scratchpad_md, 0);
    packed_bytes = dnnl_memory_desc_get_size(inside);
    scratchpad_bytes = dnnl_memory_desc_get_size(pad);
    if (!dnnl_memory_desc_equal(inside, &p.weight)) {
        const int64_t pieces = count_packs(wanted);
        status = make_packs(*this, p.weight, *inside, is_weight, pieces);
        if (status == dnnl_unimplemented || status == dnnl_invalid_arguments)  // no such pieces
            status = make_packs(*this, p.weight, *inside, is_weight, 1);
    }
    if (!status) status = make_memory(&x, p.x);
    if (!status) status = make_memory(&packed, *inside);
    if (!status) status = make_memory(&out, p.out);
    if (!status) status = make_memory(&scratchpad, *pad);
    if (!status && wanted.bias) status = make_memory(&bias, p.bias);
    if (!status) status = dnnl_primitive_create(&primitive, desc.it);
    if (status) clear();
    return status;
}

bool ConvEntry::packs_like(const ConvEntry &other) const
{
    const dnnl_memory_desc_t *ours = nullptr, *theirs = nullptr;
    return dnnl_memory_get_memory_desc(packed, &ours) == dnnl_success &&
           dnnl_memory_get_memory_desc(other.packed, &theirs) == dnnl_success &&
           dnnl_memory_desc_equal(ours, theirs);
}

dnnl_status_t ConvEntry::pack(void *caller, void *inside, int64_t piece) const
{
    const bool is_weight = is(key, ConvKind::kWeight);
    const Pack &one = packs[piece];
    dnnl_memory_set_data_handle(one.weight, caller);
    dnnl_memory_set_data_handle(one.packed, inside);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, is_weight ? one.packed : one.weight},
                                    {DNNL_ARG_TO, is_weight ? one.weight : one.packed}};
    return dnnl_primitive_execute(one.reorder, onednn_stream(), 2, args);
}

dnnl_status_t ConvEntry::pack(void *caller, void *inside) const
{
    dnnl_status_t status = dnnl_success;
    for (int64_t i = 0; i < pack_count && !status; i++) status = pack(caller, inside, i);
    return status;
}

dnnl_status_t ConvEntry::run(const Conv &conv, void *inside, void *pad)
{
    const bool is_data = is(key, ConvKind::kData), is_weight = is(key, ConvKind::kWeight);
    dnnl_memory_set_data_handle(x, conv.x);
    dnnl_memory_set_data_handle(packed, inside);
    dnnl_memory_set_data_handle(out, conv.out);
    dnnl_memory_set_data_handle(scratchpad, pad);
    if (bias) dnnl_memory_set_data_handle(bias, const_cast<void *>(conv.bias));
    const dnnl_exec_arg_t args[] = {{is_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x},
                                    {is_weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, packed},
                                    {is_data || is_weight ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, out},
                                    {DNNL_ARG_SCRATCHPAD, scratchpad},
                                    {DNNL_ARG_BIAS, bias}};
    settled = true;
    return dnnl_primitive_execute(primitive, onednn_stream(), bias ? 5 : 4, args);
}

}  // namespace yoke::cpu
