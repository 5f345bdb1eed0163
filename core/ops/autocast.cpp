#include "core/ops/autocast.h"

#include "core/autograd/node.h"
#include "core/backend/traits.h"
#include "core/ops/cast_cache.h"
#include "core/ops/ops.h"
#include "core/ops/run.h"

namespace yoke {

static bool is_eligible(const yoke_tensor &x)
{
    return is_floating(x.dtype) && x.dtype != YOKE_F64;
}

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
