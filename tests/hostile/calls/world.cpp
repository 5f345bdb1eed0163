#include "world.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace hostile {

namespace {

// How a tensor of the palette lies in memory.
enum Layout { kDense, kTransposed, kBackwards, kEverySecond, kExpanded, kLeaf, kLayouts };
const char *const kLayoutNames[kLayouts] = {
    "dense", "transposed", "backwards", "every second", "expanded", "a leaf that requires grad"};

struct Kind {
    yoke_dtype dtype;
    std::vector<int64_t> shape;
    Layout layout;
};

// Shapes that broadcast and multiply with each other, so a good part of the calls succeeds.
const std::array<Kind, kPalette> &palette()
{
    static const std::array<Kind, kPalette> kinds{{
        {YOKE_F32, {2, 3}, kDense},
        {YOKE_F32, {3}, kLeaf},
        {YOKE_F32, {3, 4}, kTransposed},
        {YOKE_F32, {}, kDense},
        {YOKE_F32, {0}, kDense},
        {YOKE_F32, {2, 3, 4}, kLeaf},
        {YOKE_F64, {3, 3}, kLeaf},
        {YOKE_F64, {2, 3}, kBackwards},
        {YOKE_F16, {2, 3}, kDense},
        {YOKE_F16, {4, 3}, kLeaf},
        {YOKE_BF16, {3}, kEverySecond},
        {YOKE_BF16, {2, 3, 4}, kDense},
        {YOKE_I64, {3}, kDense},
        {YOKE_I64, {2, 3}, kTransposed},
        {YOKE_I32, {2, 1}, kDense},
        {YOKE_I8, {2, 3}, kBackwards},
        {YOKE_U8, {4}, kDense},
        {YOKE_BOOL, {2, 3}, kDense},
        {YOKE_BOOL, {3}, kExpanded},
        {YOKE_F32, {4, 3}, kExpanded},
        {YOKE_F32, {2, 0, 3}, kDense},
        {YOKE_F8_E4M3, {3, 3}, kDense},
        {YOKE_F8_E5M2, {2, 3}, kDense},
        {YOKE_F32, {1, 2, 1, 3, 1}, kEverySecond},
        {YOKE_F32, {int64_t{1} << 40, 0}, kDense},
        {YOKE_I64, {0, int64_t{1} << 40}, kDense},
    }};
    return kinds;
}

// Returns small numbers for use as values, indices and classes. Now and then the number is NaN or infinite.
double element(uint64_t seed, size_t i)
{
    const uint64_t x = (seed + i) * 0x9E3779B97F4A7C15u >> 40;
    if (x % 97 == 0) return std::numeric_limits<double>::quiet_NaN();
    if (x % 89 == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(x % 7) - 1 + (x % 3 ? 0 : 0.25);
}

yoke_tensor *from_doubles(yoke_dtype dtype, const std::vector<int64_t> &shape, uint64_t seed)
{
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    const bool floating = dtype <= YOKE_BF16 || dtype >= YOKE_F8_E4M3;
    std::vector<double> values(count + 1);
    for (size_t i = 0; i < count; ++i) {
        values[i] = element(seed, i);
        if (!floating) values[i] = std::isfinite(values[i]) ? std::floor(values[i]) : 2;
        if (dtype == YOKE_BOOL) values[i] = values[i] > 1;
        if (dtype == YOKE_U8) values[i] = std::fabs(values[i]);
    }
    yoke_device *cpu = nullptr;
    yoke_tensor *wide = nullptr, *made = nullptr;
    yoke_device_open("cpu", &cpu);
    yoke_tensor_from_data(values.data(), static_cast<int64_t>(count * sizeof(double)), shape.data(),
                          static_cast<int64_t>(shape.size()), YOKE_F64, cpu, &wide);
    yoke_device_release(cpu);
    if (dtype == YOKE_F64) return wide;
    yoke_cast(wide, dtype, &made);
    yoke_tensor_release(wide);
    return made;
}

yoke_tensor *viewed(yoke_tensor *base, const Kind &kind)
{
    yoke_tensor *made = nullptr;
    const int64_t last = static_cast<int64_t>(kind.shape.size()) - 1;
    if (kind.layout == kTransposed) yoke_transpose(base, 0, last, &made);
    if (kind.layout == kBackwards) yoke_slice(base, last, nullptr, nullptr, -1, &made);
    if (kind.layout == kEverySecond) yoke_slice(base, last, nullptr, nullptr, 2, &made);
    if (kind.layout == kExpanded)
        yoke_expand(base, kind.shape.data(), static_cast<int64_t>(kind.shape.size()), &made);
    if (!made) return base;
    yoke_tensor_release(base);
    return made;
}

yoke_tensor *make(const Kind &kind, uint64_t seed)
{
    std::vector<int64_t> shape = kind.shape;
    if (kind.layout == kTransposed) std::swap(shape.front(), shape.back());
    if (kind.layout == kEverySecond) shape.back() *= 2;
    if (kind.layout == kExpanded) shape.front() = 1;
    yoke_tensor *made = viewed(from_doubles(kind.dtype, shape, seed), kind);
    if (made && kind.layout == kLeaf) yoke_tensor_set_requires_grad(made, 1);
    return made;
}

// The head of a DLManagedTensorVersioned, as DLPack 1.x has it.
struct Exported {
    uint32_t major, minor;
    void *context;
    void (*deleter)(Exported *self);
};

}  // namespace

std::string World::describe(int place)
{
    if (place >= kPalette) return "NULL at first";
    const Kind &kind = palette()[static_cast<size_t>(place)];
    std::string text = std::string(yoke_dtype_name(kind.dtype)) + " [";
    for (size_t i = 0; i < kind.shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(kind.shape[i]);
    return text + "], " + kLayoutNames[kind.layout];
}

void delete_exported(void *managed)
{
    auto *exported = static_cast<Exported *>(managed);
    if (exported && exported->deleter) exported->deleter(exported);
}

// The modes that belong to the calling thread.
void leave_modes()
{
    yoke_device *cpu = nullptr;
    yoke_stream *usual = nullptr;
    while (yoke_comm_coalesce_drop() == YOKE_OK) continue;
    yoke_autocast_swap(nullptr);
    yoke_checkpoint_swap(nullptr);
    yoke_set_grad_enabled(1);
    yoke_set_detect_anomaly(YOKE_ANOMALY_OFF);
    yoke_set_caching(1);
    yoke_device_open("cpu", &cpu);
    yoke_set_device(cpu);
    if (yoke_stream_create(cpu, 0, &usual) == YOKE_OK) yoke_set_stream(usual);
    yoke_stream_release(usual);
    yoke_device_release(cpu);
}

void World::begin_again(uint64_t seed)
{
    for (yoke_graph *graph : places<yoke_graph>().items) yoke_graph_abort(graph);
    leave_modes();
    for (int place = 0; place < kPalette; ++place)
        put(place,
            make(palette()[static_cast<size_t>(place)], seed + static_cast<uint64_t>(place)));
    for (int place = 0; place < Places<yoke_device>::size; ++place) {
        yoke_device *device = nullptr;
        yoke_device_open("cpu", &device);
        put(place, device);
    }
}

void World::clear()
{
    for (yoke_graph *graph : places<yoke_graph>().items) yoke_graph_abort(graph);
    leave_modes();
#define HOSTILE_CLEAR(kind, count) \
    for (int place = 0; place < (count); ++place) put<yoke_##kind>(place, nullptr);
    HOSTILE_HANDLES(HOSTILE_CLEAR)
#undef HOSTILE_CLEAR
    for (void *&block : blocks) {
        yoke_free(block);
        block = nullptr;
    }
    for (void *&managed : exported) {
        delete_exported(managed);
        managed = nullptr;
    }
}

}  // namespace hostile
