#include "core/ops/autocast.h"

#include "core/autograd/node.h"
#include "core/backend/traits.h"
#include "core/base/fork.h"
#include "core/ops/graph.h"
#include "core/ops/launch.h"
#include "core/ops/ops.h"
#include "core/ops/recompute/scope.h"
#include "core/ops/run.h"

#include <unordered_map>

namespace yoke {

// ---- The casts of weights --------------------------------------------------------------------------------

// Cache of casts. Regions of several threads may share a cache. Removed casts are released outside the cache's lock.
class CastCache final : public RefCounted {
public:
    Tensor find_or_cast(const yoke_tensor &x, yoke_dtype dtype)
    {
        const uint32_t version = x.storage->version.load(std::memory_order_relaxed);
        if (Tensor known = find(x, dtype, version); known.present()) {
            if (Scope *scope = Scope::of_thread()) tell(*scope, x, *known);
            return known;
        }
        // Two threads may both make the cast: the casts are equal, and the last cast is kept.
        Tensor cast = ops::cast(x, dtype);
        keep({Tensor::share(const_cast<yoke_tensor *>(&x)), x.storage, cast, version});
        return cast;
    }

    void forget_captured(uint64_t graph) noexcept
    {
        Entries gone;
        const std::lock_guard lock(mutex_);
        if (capture_ == graph) gone.swap(captured_);
    }

private:
    struct Entry {
        Tensor weight;         // held, so that no other tensor gets the address
        Ref<Storage> storage;  // the weight's storage at the cast; a weight may move
        Tensor cast;
        uint32_t version = 0;
    };
    using Entries = std::unordered_map<const yoke_tensor *, Entry>;

    // Reports a cached cast to a checkpoint scope, as if the scope had made the cast. So the scope recomputes the
    // cast instead of holding it.
    static void tell(Scope &scope, const yoke_tensor &weight, const yoke_tensor &cast)
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

    // Returns the kept cast if it still fits the weight and the mode, or null.
    Tensor find(const yoke_tensor &x, yoke_dtype dtype, uint32_t version)
    {
        Entries gone;
        const std::lock_guard lock(mutex_);
        const Entries &known = entries(gone);
        const auto place = known.find(&x);
        if (place == known.end()) return nullptr;
        const Entry &entry = place->second;
        // A cast that was made under no_grad has no history, and would cut the weight off.
        const bool fits = entry.cast.present() && entry.cast->dtype == dtype &&
                          entry.storage.get() == x.storage.get() && entry.version == version &&
                          entry.cast->requires_grad() == grad_enabled();
        return fits ? entry.cast : nullptr;
    }

    void keep(Entry entry)
    {
        Entries gone;
        const std::lock_guard lock(mutex_);
        std::swap(entries(gone)[entry.weight.get()], entry);
    }

    // Returns the casts to use: those of the thread's capture, if it captures a graph, else the others. The caller
    // holds the lock. Casts of an ended capture go to `gone`.
    Entries &entries(Entries &gone)
    {
        const Graph *graph = Graph::of_thread();
        if (!graph) return eager_;
        if (std::exchange(capture_, graph->number()) != graph->number()) gone.swap(captured_);
        return captured_;
    }

    Mutex mutex_{LockRank::kOther};
    Entries eager_, captured_;
    uint64_t capture_ = 0;  // number of the graph whose capture made the casts in captured_
};

namespace {

// Returns whether casts of x are worth keeping: float32 weights are cast again in every call.
bool is_weight(const yoke_tensor &x)
{
    return x.dtype == YOKE_F32 && !x.is_view && x.requires_grad() && is_leaf(x) &&
           x.storage.present();
}

bool is_eligible(const yoke_tensor &x)
{
    return is_floating(x.dtype) && x.dtype != YOKE_F64;
}

}  // namespace

// ---- Regions ---------------------------------------------------------------------------------------------

Autocast::Autocast(bool enabled, yoke_dtype dtype, bool cache_enabled, Ref<CastCache> cache)
    : enabled_(enabled), cache_enabled_(cache_enabled), dtype_(dtype), cache_(std::move(cache))
{
}

Autocast::~Autocast() = default;

Ref<Autocast> Autocast::make(bool enabled, yoke_dtype dtype, bool cache_enabled)
{
    if (dtype != YOKE_NONE && dtype != YOKE_F16 && dtype != YOKE_BF16)
        fail(
            YOKE_E_VALUE,
            "autocast: argument 'dtype' is %s; it must be float16, bfloat16, or none for the best dtype of the device",
            is_dtype(dtype) ? name(dtype) : format("%d", dtype).c_str());
    const Autocast *outer = current_autocast();
    Ref<CastCache> cache = outer ? outer->cache_ : Ref<CastCache>::adopt(new CastCache);
    return Ref<Autocast>::adopt(new Autocast(enabled, dtype, cache_enabled, std::move(cache)));
}

yoke_dtype default_autocast_dtype(const Device &device)
{
    return traits_of(device.kind()).autocast;
}

yoke_dtype Autocast::dtype_on(const Device &device) const
{
    return dtype_ != YOKE_NONE ? dtype_ : default_autocast_dtype(device);
}

Tensor Autocast::low(const yoke_tensor &x, yoke_dtype dtype) const
{
    return cache_enabled_ && is_weight(x) ? cache_->find_or_cast(x, dtype) : ops::cast(x, dtype);
}

void Autocast::forget_captured(uint64_t graph) const noexcept
{
    cache_->forget_captured(graph);
}

void forget_captured_casts(uint64_t graph) noexcept
{
    if (const Autocast *region = current_autocast()) region->forget_captured(graph);
}

Autocast *set_autocast(Autocast *region)
{
    if (region) region->retain();
    Autocast *before = std::exchange(thread_state().autocast, region);
    if (before) before->release();
    return before;
}

// Releases a region that stayed open when its thread ended, or when a relief function returned.
void detail::drop_autocast(Autocast *region) noexcept
{
    region->release();
}

// ---- Calls -----------------------------------------------------------------------------------------------

namespace {

// Tensors of a call, with their casts.
class Casting {
public:
    Casting(const OpDef &op, yoke_arg *args) : op_(op), args_(args) {}

    const yoke_tensor *first() const
    {
        const yoke_tensor *found = nullptr;
        each([&](const yoke_tensor &x) { found = found ? found : &x; });
        return found;
    }

    // Returns the common dtype of the tensors that autocast may cast, float32 if their dtypes differ, YOKE_NONE
    // without such a tensor.
    yoke_dtype widest() const
    {
        yoke_dtype widest = YOKE_NONE;
        each([&](const yoke_tensor &x) {
            if (is_eligible(x))
                widest = widest == YOKE_NONE || widest == x.dtype ? x.dtype : YOKE_F32;
        });
        return widest;
    }

    template <class Cast>
    void cast(yoke_dtype dtype, const Cast &make)
    {
        for (int i = 0; i < op_.arg_count; ++i) {
            yoke_arg &value = args_[i];
            if (value.kind == YOKE_ARG_TENSOR && value.v.tensor)
                value.v.tensor = replaced(value.v.tensor, dtype, make);
            if (value.kind != YOKE_ARG_TENSORS) continue;
            list_.assign(value.v.tensors, value.v.tensors + value.count);
            for (yoke_tensor *&item : list_)
                if (item) item = replaced(item, dtype, make);
            value.v.tensors = list_.data();
        }
    }

private:
    template <class Visit>
    void each(const Visit &visit) const
    {
        for (int i = 0; i < op_.arg_count; ++i) {
            const yoke_arg &value = args_[i];
            if (value.kind == YOKE_ARG_TENSOR && value.v.tensor) visit(*value.v.tensor);
            if (value.kind == YOKE_ARG_TENSORS)
                for (int k = 0; k < value.count; ++k)
                    if (value.v.tensors[k]) visit(*value.v.tensors[k]);
        }
    }

    template <class Cast>
    yoke_tensor *replaced(yoke_tensor *x, yoke_dtype dtype, const Cast &make)
    {
        if (!is_eligible(*x) || x->dtype == dtype) return x;
        held_.push_back(make(*x));
        return held_.back().get();
    }

    const OpDef &op_;
    yoke_arg *args_;
    std::vector<Tensor> held_;
    std::vector<yoke_tensor *> list_;  // tensors of the op's only list argument
};

// Sets the dtype argument of an op to f32, if autocast may cast the first tensor and the caller gave no dtype.
void ask_for_f32(const OpDef &op, yoke_arg *args, const yoke_tensor &first)
{
    for (int i = 0; i < op.arg_count; ++i)
        if (op.args[i].type == ArgType::kDtype && is_eligible(first) &&
            (args[i].kind == YOKE_ARG_NONE || args[i].v.i == YOKE_NONE))
            args[i] = arg_int(YOKE_F32);
}

}  // namespace

void run_autocast(int32_t number, yoke_arg *args, Tensor *results)
{
    const OpDef &op = kOps[number];
    const Autocast &region = *current_autocast();
    const NoAutocast once;
    Casting tensors(op, args);
    const auto plainly = [](const yoke_tensor &x) { return ops::cast(x, YOKE_F32); };
    if (const yoke_tensor *first = tensors.first()) switch (op.autocast) {
            case AutocastClass::kLow: {
                const yoke_dtype low = region.dtype_on(*first->device);
                tensors.cast(low, [&](const yoke_tensor &x) { return region.low(x, low); });
                break;
            }
            case AutocastClass::kF32:
                tensors.cast(YOKE_F32, plainly);
                break;
            case AutocastClass::kF32UnlessDtype:
                ask_for_f32(op, args, *first);
                break;
            case AutocastClass::kPromote:
                if (tensors.widest() == YOKE_F32) tensors.cast(YOKE_F32, plainly);
                break;
            case AutocastClass::kError:
                fail(
                    YOKE_E_UNSUPPORTED,
                    "%s: is not safe under autocast, where its input may be a half whose logarithm overflows; use %s_with_logits, or run it under autocast(enabled=false) in float32",
                    op.name, op.name);
            case AutocastClass::kNone:
                break;
        }
    run(number, args, results);
}

}  // namespace yoke
