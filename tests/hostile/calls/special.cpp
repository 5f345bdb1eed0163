#include "special.h"

#include <algorithm>

namespace hostile::special {

void give_back(void *world)
{
    --static_cast<World *>(world)->borrowed;
}

namespace {

constexpr int64_t kBuffer = sizeof(World::memory);

// Tells whether a shape with these strides, starting in the middle of the buffer, stays within the buffer.
bool fits(const int64_t *shape, const int64_t *strides, int64_t ndim, int64_t itemsize)
{
    int64_t reach = 0, dense = 1;
    for (int64_t axis = ndim - 1; axis >= 0; --axis) {
        if (shape[axis] < 0 || shape[axis] > 64) return false;
        const int64_t stride = strides ? std::clamp<int64_t>(strides[axis], -4096, 4096) : dense;
        if (strides && stride != strides[axis]) return false;
        reach += std::max<int64_t>(shape[axis] - 1, 0) * (stride < 0 ? -stride : stride);
        dense *= std::max<int64_t>(shape[axis], 1);
        if (dense > kBuffer || reach > kBuffer) return false;
    }
    return (reach + 1) * itemsize <= kBuffer / 2;
}

struct List {
    const int64_t *items;
    int64_t count;
};

List list_of(Draw &d, Ints about)
{
    const int64_t *items = d.ints(about);
    return {items, d.count()};
}

// An argument of yoke_op_invoke of the type that the table of ops names, now and then of another.
void draw_arg(Draw &d, yoke_arg &arg, const std::string &type)
{
    const bool wrong = d.one_in(24);
    const auto is = [&](const char *name) { return !wrong && type.rfind(name, 0) == 0; };
    arg = {YOKE_ARG_NONE, 0, {}};
    if (is("tensors") || is("muts") || (wrong && d.one_in(6))) {
        arg.kind = YOKE_ARG_TENSORS;
        arg.v.tensors = d.tensors();
        arg.count = static_cast<int32_t>(d.count());
    } else if (is("tensor") || is("mut") || is("operand")) {
        arg.kind = YOKE_ARG_TENSOR;
        arg.v.tensor = d.handle<yoke_tensor>();
    } else if (is("ints")) {
        arg.kind = YOKE_ARG_INTS;
        arg.v.ints = d.ints(d.one_in(2) ? Ints::kShape : Ints::kAxes);
        arg.count = static_cast<int32_t>(d.count());
    } else if (is("floats")) {
        static const double factors[] = {2, 0.5, -1, 1e300};
        arg.kind = YOKE_ARG_FLOATS;
        arg.v.floats = factors;
        arg.count = static_cast<int32_t>(d.below(5));
    } else if (is("float") || is("scalar")) {
        arg.kind = YOKE_ARG_FLOAT;
        arg.v.f = d.real();
    } else if (is("str")) {
        arg.kind = YOKE_ARG_STRING;
        arg.v.string = d.word(d.one_in(2) ? Words::kReduction : Words::kMode);
    } else if (is("device")) {
        arg.kind = YOKE_ARG_DEVICE;
        arg.v.device = d.handle<yoke_device>();
    } else if (is("generator")) {
        static yoke_generator generator{1, 0};
        arg.kind = YOKE_ARG_GENERATOR;
        arg.v.generator = d.one_in(8) ? nullptr : &generator;
    } else if (is("bool")) {
        arg.kind = YOKE_ARG_BOOL;
        arg.v.i = d.int64();
    } else {
        // An int or a dtype; or an argument of no known kind, or a false claim of an empty list.
        arg.kind = !wrong        ? YOKE_ARG_INT
                   : d.one_in(2) ? YOKE_ARG_NONE
                                 : static_cast<int32_t>(d.below(16)) + 11;
        arg.v.i = arg.kind == YOKE_ARG_INT && type == "dtype" ? d.dtype() : d.int64();
    }
}

struct Invocation {
    int32_t op;
    yoke_arg *args;
    int32_t count;
    int32_t results;
};

Invocation draw_invocation(Draw &d)
{
    const int32_t op =
        d.one_in(24) ? d.int32()
                     : static_cast<int32_t>(d.below(static_cast<uint64_t>(::yoke_op_count())));
    const yoke_op *info = ::yoke_op_info(op);
    const int32_t wanted = info ? info->arg_count : 2;
    const int32_t count =
        d.one_in(12) ? static_cast<int32_t>(d.below(static_cast<uint64_t>(wanted) + 2)) : wanted;
    d.show("%d /* %s */", op, info ? info->name : "none");
    d.open("(yoke_arg[]){");
    auto *args = d.array<yoke_arg>(static_cast<size_t>(count));
    for (int32_t i = 0; i < count; ++i)
        draw_arg(d, args[i], info && i < wanted ? info->args[i].type : "int");
    d.close("}");
    const bool none = d.one_in(48);
    return {op, none ? nullptr : args, none && d.one_in(2) ? -1 : count,
            info ? info->result_count : 1};
}

}  // namespace

void yoke_tensor_from_memory(Draw &d)
{
    const int64_t *shape = d.ints(Ints::kShape);
    const int64_t ndim = std::max<int64_t>(d.count(), -1);
    int64_t *strides = nullptr;
    if (d.one_in(2) && ndim > 0) {
        strides = d.array<int64_t>(static_cast<size_t>(ndim));
        for (int64_t i = 0; i < ndim; ++i) strides[i] = d.int64();
    }
    const yoke_dtype dtype = d.dtype();
    yoke_device *device = d.handle<yoke_device>();
    // Elements are promised only where there is memory for them.
    const bool there = shape && ndim > 0 &&
                       fits(shape, strides, ndim, std::max<int64_t>(yoke_dtype_size(dtype), 1));
    const bool drops = d.one_in(2);
    d.show("%s, %s", there ? "buffer" : "NULL", drops ? "drop, world" : "NULL, NULL");
    yoke_tensor **out = d.out<yoke_tensor>();
    d.announce();
    d.world().borrowed += drops;
    const yoke_status status = ::yoke_tensor_from_memory(
        there ? d.world().memory.data() + kBuffer / 2 : nullptr, shape, ndim, strides, dtype,
        device, drops ? give_back : nullptr, drops ? &d.world() : nullptr, out);
    if (status != YOKE_OK) d.world().borrowed -= drops;
    d.finish(status);
}

void yoke_tensor_from_data(Draw &d)
{
    const List shape = list_of(d, Ints::kShape);
    const yoke_dtype dtype = d.dtype();
    int64_t numel = 1;
    for (int64_t i = 0; shape.items && i < shape.count; ++i)
        numel = std::clamp<int64_t>(numel * std::clamp<int64_t>(shape.items[i], 0, 4096), 0, 4096);
    int64_t bytes = d.one_in(8) ? d.int64() : numel * yoke_dtype_size(dtype);
    bytes = std::min<int64_t>(bytes, 1 << 20);
    const void *data =
        d.one_in(32) ? nullptr : d.bytes(static_cast<size_t>(std::max<int64_t>(bytes, 0)));
    if (data)
        std::memset(const_cast<void *>(data), 0, static_cast<size_t>(std::max<int64_t>(bytes, 0)));
    d.show("%s, %lld bytes", data ? "zeros" : "NULL", static_cast<long long>(bytes));
    yoke_device *device = d.handle<yoke_device>();
    yoke_tensor **out = d.out<yoke_tensor>();
    d.announce();
    d.finish(::yoke_tensor_from_data(data, bytes, shape.items, shape.count, dtype, device, out));
}

namespace {

// Draws host memory with exactly as many bytes as the call is given as size, equal to the tensor's size or not.
std::pair<void *, int64_t> host_memory(Draw &d, yoke_tensor *tensor)
{
    int64_t size = d.one_in(8) ? d.int64() : yoke_tensor_nbytes(tensor);
    size = std::min<int64_t>(size, 1 << 20);
    void *data = d.one_in(32) ? nullptr : d.bytes(static_cast<size_t>(std::max<int64_t>(size, 0)));
    if (data) std::memset(data, 0, static_cast<size_t>(std::max<int64_t>(size, 0)));
    d.show("%s, %lld", data ? "zeros" : "NULL", static_cast<long long>(size));
    return {data, size};
}

}  // namespace

void yoke_tensor_copy_to_host(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    const auto [data, size] = host_memory(d, tensor);
    d.announce();
    d.finish(::yoke_tensor_copy_to_host(tensor, data, size));
}

void yoke_tensor_copy_from_host(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    const auto [data, size] = host_memory(d, tensor);
    d.announce();
    d.finish(::yoke_tensor_copy_from_host(tensor, data, size));
}

void yoke_tensor_to_dlpack(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    void *&place = d.world().exported[d.below(d.world().exported.size())];
    void *stream = d.one_in(3) ? reinterpret_cast<void *>(static_cast<intptr_t>(-1)) : nullptr;
    void *made = reinterpret_cast<void *>(0x5A5A);
    d.show("1, %s, &exported", stream ? "(void *)-1" : "NULL");
    d.announce();
    const yoke_status status = ::yoke_tensor_to_dlpack(tensor, 1, stream, &made);
    d.finish(status);
    if (status != YOKE_OK) {
        if (made) throw Defect("failed and left an output that is not NULL");
        return;
    }
    delete_exported(std::exchange(place, made));
}

void yoke_tensor_from_dlpack(Draw &d)
{
    void *&place = d.world().exported[d.below(d.world().exported.size())];
    yoke_tensor **out = d.out<yoke_tensor>();
    d.show("of exported");
    d.announce();
    void *managed = place;
    const yoke_status status = ::yoke_tensor_from_dlpack(managed, 1, out);
    if (status == YOKE_OK) place = nullptr;
    d.finish(status);
}

void yoke_tensor_shape(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    d.announce();
    const int64_t *shape = ::yoke_tensor_shape(tensor);
    for (int64_t i = 0; i < yoke_tensor_ndim(tensor); ++i)
        if (shape[i] < 0) throw Defect("a negative length was reported");
}

void yoke_tensor_strides(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    d.announce();
    const int64_t *strides = ::yoke_tensor_strides(tensor);
    int64_t sum = 0;
    for (int64_t i = 0; i < yoke_tensor_ndim(tensor); ++i) sum ^= strides[i];
    (void)sum;
}

void yoke_alloc(Draw &d)
{
    void *&place = d.world().blocks[d.below(d.world().blocks.size())];
    const int64_t size = d.one_in(3) ? d.int64() : static_cast<int64_t>(d.below(9000));
    yoke_device *device = d.handle<yoke_device>();
    void *made = reinterpret_cast<void *>(0x5A5A);
    d.show("%lld, NULL, &block", static_cast<long long>(size));
    d.announce();
    const yoke_status status = ::yoke_alloc(size, device, nullptr, &made);
    d.finish(status);
    if (status != YOKE_OK && made) throw Defect("failed and left an output that is not NULL");
    if (status != YOKE_OK) return;
    if (size < 65536) std::memset(made, 0xA5, static_cast<size_t>(size));
    ::yoke_free(std::exchange(place, made));
}

void yoke_free(Draw &d)
{
    void *&place = d.world().blocks[d.below(d.world().blocks.size())];
    void *pointer = place;
    if (d.one_in(4)) pointer = reinterpret_cast<void *>(d.bits());
    if (d.one_in(8)) pointer = d.world().memory.data();
    if (pointer == place) place = nullptr;
    d.show("%p", pointer);
    d.announce();
    d.finish(::yoke_free(pointer));
}

void yoke_op_invoke(Draw &d)
{
    const Invocation call = draw_invocation(d);
    const int32_t count = d.one_in(24) ? d.int32() : call.results;
    const size_t room = static_cast<size_t>(std::clamp(count, 0, 64));
    auto **outs = d.one_in(48) ? nullptr : d.array<yoke_tensor *>(room);
    for (size_t i = 0; outs && i < room; ++i) outs[i] = reinterpret_cast<yoke_tensor *>(0x5A5A);
    d.show("%s, %d", outs ? "outs" : "NULL", count > 64 ? 64 : count);
    d.announce();
    const yoke_status status =
        ::yoke_op_invoke(call.op, call.args, call.count, outs, count > 64 ? 64 : count);
    d.finish(status);
    for (size_t i = 0; outs && i < room; ++i) {
        if (status != YOKE_OK && outs[i] && outs[i] != reinterpret_cast<yoke_tensor *>(0x5A5A))
            throw Defect("failed and left an output");
        if (status == YOKE_OK) d.world().put(d.any_place<yoke_tensor>(), outs[i]);
    }
}

void yoke_op_invoke_list(Draw &d)
{
    const Invocation call = draw_invocation(d);
    yoke_tensor **outs = d.list_out(d.room());
    const int64_t capacity = d.capacity();
    int64_t *count = d.number_out<int64_t>();
    d.announce();
    d.finish(::yoke_op_invoke_list(call.op, call.args, call.count, outs, capacity, count));
}

void yoke_op_info(Draw &d)
{
    const int32_t op = d.int32();
    d.announce();
    const yoke_op *info = ::yoke_op_info(op);
    if (info && (info->id != op || !*info->name || !*info->doc))
        throw Defect("another op was described");
}

void yoke_autocast_swap(Draw &d)
{
    yoke_autocast *region = d.handle<yoke_autocast>();
    d.announce();
    (void)::yoke_autocast_swap(region);  // borrowed: held by a place, or gone
}

void yoke_select(Draw &d)
{
    const char *spec = d.word(Words::kSpec);
    const int32_t n = d.int32();
    const auto capacity = static_cast<int32_t>(d.below(4));
    auto **devices = d.one_in(24) ? nullptr : d.array<yoke_device *>(static_cast<size_t>(capacity));
    int32_t *count = d.number_out<int32_t>();
    d.show("devices, %d", capacity);
    d.announce();
    const yoke_status status = ::yoke_select(spec, n, devices, capacity, count);
    d.finish(status);
    for (int32_t i = 0; status == YOKE_OK && devices && i < std::min(*count, capacity); ++i)
        d.world().put(d.any_place<yoke_device>(), devices[i]);
}

void yoke_last_error(Draw &d)
{
    d.announce();
    const yoke_error *error = ::yoke_last_error();
    for (; error; error = error->cause)
        if (!error->message || !error->device || !error->call)
            throw Defect("has a text that is NULL");
}

void yoke_get_api(Draw &d)
{
    const uint32_t major = d.uint32(), minor = d.uint32();
    d.announce();
    const yoke_api *api = ::yoke_get_api(major, minor);
    if (api && (api->struct_size < 16 || api->major != major))
        throw Defect("gave a table of another version");
}

}  // namespace hostile::special
