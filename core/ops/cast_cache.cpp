#include "core/ops/cast_cache.h"

#include "core/autograd/node.h"
#include "core/device/stream.h"
#include "core/ops/graph.h"
#include "core/ops/launch.h"
#include "core/ops/op_node.h"
#include "core/ops/ops.h"
#include "core/ops/recompute/call_log.h"
#include "core/ops/recompute/scope.h"
#include "core/tensor/live.h"

#include <mutex>
#include <new>
#include <utility>

namespace yoke {

namespace {

// Reports a kept cast to a checkpoint scope, as if the scope had made the cast. So the scope recomputes the cast
// instead of holding it.
void tell(Scope &scope, const yoke_tensor &weight, const yoke_tensor &cast)
{
    if (!cast.numel || scope.has_made(*cast.storage)) return;
    yoke_operand operands[2];
    describe_operand(operands[0], &weight, YOKE_OPERAND_READ);
    describe_operand(operands[1], &cast, YOKE_OPERAND_WRITE);
    yoke_arg dtype = arg_int(cast.dtype);
    yoke_launch launch{};
    launch.struct_size = sizeof launch;
    launch.op = YOKE_OP_CAST;
    launch.operands = operands;
    launch.params = &dtype;
    launch.operand_count = 2;
    launch.param_count = 1;
    launch.device = weight.device->handle;
    launch.work = static_cast<double>(operands[0].bytes + operands[1].bytes);
    Storage *const storages[] = {weight.storage.get(), cast.storage.get()};
    scope.import(launch, *weight.device, kOps[YOKE_OP_CAST], storages);
}

// Puts a cast that was made ahead on the tape, as the call of cast that it stands for.
void record(const yoke_tensor &weight, const Tensor &cast)
{
    const yoke_arg args[] = {arg_tensor(weight), arg_int(cast->dtype)};
    yoke_tensor *const tensors[] = {args[0].v.tensor};
    set_node(*cast, OpNode::make(kOps[YOKE_OP_CAST], args, tensors, {&cast, 1}, 1), 0);
}

uint32_t version_of(const Storage &storage)
{
    return storage.version.load(std::memory_order_relaxed);
}

// Weight of an earlier region, as it is now.
struct Present {
    Ref<Storage> storage = {};
    char *data = nullptr;
    Dims shape = {};
    uint32_t version = 0;
};

// Finds out whether a weight of an earlier region is still the same weight, lies row-major on the device, and was
// last written on the thread's stream.
bool look_at(const PastWeight &past, const Device &device, Present &now)
{
    bool fits = false;
    visit_live(past.address, [&](const yoke_tensor &x) {
        fits = x.device == &device && is_weight(x) && leaf_number(x) == past.leaf && x.contiguous &&
               x.numel && x.storage->is_written_by(memory_lane(device));
        if (fits) now = {x.storage, x.data, Dims{x.shape()}, version_of(*x.storage)};
    });
    return fits;
}

Tensor alias_of(const Present &now, Device &device)
{
    Tensor x = make_layout(device, YOKE_F32, now.shape, nullptr, "autocast");
    x->storage = now.storage;
    x->data = now.data;
    return x;
}

}  // namespace

// ---- Use of a weight -------------------------------------------------------------------------------------

Tensor CastCache::find_or_cast(const yoke_tensor &x, yoke_dtype dtype)
{
    const uint32_t version = version_of(*x.storage);
    Found known = find(x, dtype, version);
    if (!known.cast.present() && cast_ahead(x, dtype)) known = find(x, dtype, version);
    if (!known.cast.present()) {
        // Two threads may both make the cast: the casts are equal, and the last cast is kept.
        Tensor cast = ops::cast(x, dtype);
        keep(x, cast, version);
        return cast;
    }
    if (known.is_ahead) {
        if (Graph *graph = Graph::of_thread()) graph->note_read(x.storage.get());
        known.cast = alias(*known.cast);
        if (grad_enabled()) record(x, known.cast);
        keep(x, known.cast, version);
    }
    if (Scope *scope = Scope::of_thread()) tell(*scope, x, *known.cast);
    return known.cast;
}

// Returns the kept cast if it still fits the weight and the mode, or null. It fits only the stream that makes the cast:
// other streams do not wait for this stream.
CastCache::Found CastCache::find(const yoke_tensor &x, yoke_dtype dtype, uint32_t version)
{
    Casts gone;
    const std::lock_guard lock(mutex_);
    const Casts &known = casts(gone);
    const auto place = known.entries.find(&x);
    if (place == known.entries.end()) return {};
    const Entry &entry = place->second;
    // A cast that was made under no_grad has no history, and would cut the weight off.
    const bool fits = entry.cast.present() && entry.cast->dtype == dtype &&
                      entry.storage.get() == x.storage.get() && entry.version == version &&
                      entry.stream == current_native(*x.device) &&
                      (entry.is_ahead ? entry.leaf == leaf_number(x)
                                      : entry.cast->requires_grad() == grad_enabled());
    return fits ? Found{entry.cast, entry.is_ahead} : Found{};
}

void CastCache::keep(const yoke_tensor &x, const Tensor &cast, uint32_t version)
{
    Entry entry{Tensor::share(const_cast<yoke_tensor *>(&x)),
                x.storage,
                cast,
                version,
                leaf_number(x),
                false,
                current_native(*x.device)};
    Casts gone;
    const std::lock_guard lock(mutex_);
    std::swap(casts(gone).entries[&x], entry);
}

// ---- Casts ahead -----------------------------------------------------------------------------------------

// Casts the weights in one launch; weights that have ended or changed their device are left out.
CastCache::Entries CastCache::cast_together(const std::vector<PastWeight> &weights, Device &device,
                                            yoke_dtype dtype)
{
    const NoGrad no_grad;
    const NoLog quiet;  // a scope hears of each cast when it is used
    Entries made;
    std::vector<yoke_tensor *> to, from;
    for (const PastWeight &past : weights) {
        Present now;
        if (!look_at(past, device, now)) continue;
        Entry &entry = made[past.address];
        entry = {
            alias_of(now, device), now.storage, make_tensor(device, dtype, now.shape, "autocast"),
            now.version,           past.leaf,   true,
            current_native(device)};
        to.push_back(entry.cast.get());
        from.push_back(entry.weight.get());
    }
    if (!to.empty()) ops::cast_all(to, from);
    // As a result of cast: a scope that recomputes the cast makes this version.
    for (const yoke_tensor *cast : to) cast->storage->version.store(0, std::memory_order_relaxed);
    return made;
}

// Casts x and the weights that an earlier region has cast beside x. Returns false if no such region is known, or
// memory is short. Tried once for each region, and for each capture.
bool CastCache::cast_ahead(const yoke_tensor &x, yoke_dtype dtype)
{
    if (x.device->host) return false;
    const std::vector<PastWeight> beside = CastMemory::of_process().beside(x);
    if (beside.size() < 2) return false;
    const auto is_first = [this] {
        Casts gone;
        const std::lock_guard lock(mutex_);
        return !std::exchange(casts(gone).tried_ahead, true);
    };
    if (!is_first()) return false;
    try {
        Entries made = cast_together(beside, *x.device, dtype);
        Casts gone;
        const std::lock_guard lock(mutex_);
        casts(gone).entries.merge(made);
        return true;
    } catch (const Error &error) {
        if (error.status() != YOKE_E_OOM) throw;
        return false;
    }
}

// ---- The casts of a region -------------------------------------------------------------------------------

std::vector<PastWeight> CastCache::Casts::used() const
{
    std::vector<PastWeight> weights;
    for (const auto &[address, entry] : entries)
        if (!entry.is_ahead && !entry.cast->device->host) weights.push_back({address, entry.leaf});
    return weights;
}

void CastCache::remember(const Casts &some, const Casts &more) noexcept
try {
    std::vector<PastWeight> weights = some.used();
    const std::vector<PastWeight> others = more.used();
    weights.insert(weights.end(), others.begin(), others.end());
    CastMemory::of_process().remember(std::move(weights));
} catch (const std::bad_alloc &) {  // the next region casts each weight by itself
}

CastCache::~CastCache()
{
    remember(eager_, captured_);
}

void CastCache::forget_captured(uint64_t graph) noexcept
{
    Casts gone;
    {
        const std::lock_guard lock(mutex_);
        if (capture_ == graph) std::swap(gone, captured_);
    }
    remember(gone, {});
}

// Returns the casts to use: those of the thread's capture, if it captures a graph, else the others. The caller holds
// the lock. Casts of an ended capture go to `gone`.
CastCache::Casts &CastCache::casts(Casts &gone)
{
    const Graph *graph = Graph::of_thread();
    if (!graph) return eager_;
    if (std::exchange(capture_, graph->number()) != graph->number()) std::swap(gone, captured_);
    return captured_;
}

}  // namespace yoke
