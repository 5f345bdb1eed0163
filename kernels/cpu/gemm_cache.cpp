// Primitive of a product and its operands, as oneDNN describes them.
#include "kernels/cpu/gemm_cache.h"

#include <initializer_list>

#include "kernels/cpu/onednn_cache.h"

namespace yoke::cpu {

static dnnl_data_type_t onednn_type(yoke_dtype dtype)
{
    switch (dtype) {
#define YOKE_TYPE(value, type) \
    case value:                \
        return type;
        YOKE_ONEDNN_TYPES(YOKE_TYPE)
#undef YOKE_TYPE
        default:
            return dnnl_data_type_undef;
    }
}

// Describes an operand with two axes, or three in a batch. Along the batch axis, a stride of 0 means broadcast.
static dnnl_status_t describe(dnnl_memory_desc_t *out, const GemmKey &key, int64_t rows,
                              int64_t columns, const int64_t *strides)
{
    bool batched = key.batch > 1;
    bool shared = batched && strides[0] == 0;
    const dnnl_dims_t dims = {shared ? 1 : key.batch, rows, columns};
    const dnnl_dims_t steps = {shared ? rows * columns : strides[0], strides[1], strides[2]};
    int skip = batched ? 0 : 1;
    return dnnl_memory_desc_init_by_strides(out, 3 - skip, dims + skip, onednn_type(key.dtype),
                                            steps + skip);
}

// The operands of a product as oneDNN sees them.
struct Descs {
    dnnl_memory_desc_t a, b, c, bias;
};

static dnnl_status_t describe_all(Descs *out, const GemmKey &key)
{
    const int64_t flat[3] = {0, key.n, 1};
    dnnl_status_t status = describe(&out->a, key, key.m, key.k, key.a);
    if (!status) status = describe(&out->b, key, key.k, key.n, key.b);
    if (!status) status = describe(&out->c, key, key.m, key.n, key.c);
    if (!status && key.bias) status = describe(&out->bias, key, 1, key.n, flat);
    return status;
}

static dnnl_status_t make_primitive(dnnl_primitive_t *out, const GemmKey &key, const Descs &descs)
{
    dnnl_matmul_desc_t desc;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, &descs.a, &descs.b,
                                                 key.bias ? &descs.bias : nullptr, &descs.c);
    if (status) return status;
    struct Owned {  // an exception may come out of oneDNN
        dnnl_primitive_desc_t desc = nullptr;
        ~Owned() { dnnl_primitive_desc_destroy(desc); }
    } made;
    status = dnnl_primitive_desc_create(&made.desc, &desc, nullptr, onednn_engine(), nullptr);
    return status ? status : dnnl_primitive_create(out, made.desc);
}

static dnnl_status_t make_memory(dnnl_memory_t *out, const dnnl_memory_desc_t &desc)
{
    return dnnl_memory_create(out, &desc, onednn_engine(), DNNL_MEMORY_NONE);
}

void GemmEntry::clear()
{
    if (primitive) dnnl_primitive_destroy(primitive);
    for (dnnl_memory_t memory : {a, b, c, bias})
        if (memory) dnnl_memory_destroy(memory);
    *this = {};
}

dnnl_status_t GemmEntry::make(const GemmKey &wanted)
{
    Descs descs = {};
    dnnl_status_t status = describe_all(&descs, wanted);
    if (!status) status = make_primitive(&primitive, wanted, descs);
    if (!status) status = make_memory(&a, descs.a);
    if (!status) status = make_memory(&b, descs.b);
    if (!status) status = make_memory(&c, descs.c);
    if (!status && wanted.bias) status = make_memory(&bias, descs.bias);
    if (status) clear();
    bool cannot = status == dnnl_unimplemented || status == dnnl_invalid_arguments;
    return cannot ? dnnl_success : status;
}

}  // namespace yoke::cpu
