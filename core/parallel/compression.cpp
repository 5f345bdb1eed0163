#include "core/parallel/compression.h"

#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/parallel/powersgd.h"

#include <utility>

namespace yoke {

namespace detail {

Collective mean_of(const Tensor &tensor, uint32_t flags)
{
    Collective call{YOKE_COMM_ALL_REDUCE, YOKE_REDUCE_AVG, -1, tensor, tensor};
    const bool is_small = tensor->dtype == YOKE_F16 || tensor->dtype == YOKE_BF16;
    if (is_small) call.flags = flags;
    call.may_be_staged = true;  // a module may be on several devices
    return call;
}

void Works::add(size_t bucket, Ref<Work> work)
{
    if (work.present()) works_[bucket].push_back(std::move(work));
}

void Works::wait(size_t bucket)
{
    for (const Ref<Work> &each : works_[bucket]) each->wait(-1);
    works_.erase(bucket);
}

void Works::abandon() noexcept
{
    for (const auto &[bucket, all] : works_)
        for (const Ref<Work> &each : all) each->wait_for_end(-1);
    works_.clear();
}

}  // namespace detail

CompressionState CompressionState::common() const
{
    CompressionState common = *this;
    std::erase_if(common.tensors,
                  [](const auto &each) { return each.first.starts_with("error/"); });
    return common;
}

void Compression::load(const CompressionState &state)
{
    if (!state.tensors.empty())
        fail(
            YOKE_E_VALUE,
            "load_comm_state: the state has '%s', which this compression does not have; make the module with the compression that saved the state",
            state.tensors.begin()->first.c_str());
}

Ref<State> state_of(const CompressionState &state)
{
    Ref<State> tensors = State::make(StateDict());
    for (const auto &[name, tensor] : state.tensors)
        tensors->put(name, State::make(tensor), "comm_state");
    Ref<State> made = State::make(StateDict());
    made->put("steps", State::make(state.steps), "comm_state");
    made->put("tensors", std::move(tensors), "comm_state");
    return made;
}

CompressionState read_compression_state(const State &state, const char *call)
{
    const auto *all = state.get_if<StateDict>();
    const State *steps = all ? all->find("steps") : nullptr;
    const State *tensors = all ? all->find("tensors") : nullptr;
    const int64_t *count = steps ? steps->get_if<int64_t>() : nullptr;
    const auto *named = tensors ? tensors->get_if<StateDict>() : nullptr;
    if (count && *count < 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'state' has 'steps' %lld, which is below 0; give the state that comm_state returned",
            call, static_cast<long long>(*count));
    if (!count || !named)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'state' is %s without 'steps', a number, and 'tensors', a dict; give the state that comm_state returned",
            call, kind_text(state.kind()));
    CompressionState read{*count, {}};
    for (const StateDict::Entry &each : named->entries()) {
        const auto *name = std::get_if<std::string>(&each.key);
        const auto *tensor = each.value->get_if<Tensor>();
        if (!name || !tensor)
            fail(YOKE_E_TYPE, "%s: '%s' of the state is %s; it must be a tensor", call,
                 path_part(each.key).c_str(), kind_text(each.value->kind()));
        read.tensors.emplace(*name, *tensor);
    }
    return read;
}

namespace {

class Plain : public Compression {
public:
    Plain(Ref<Group> group, uint32_t flags) : group_(std::move(group)), flags_(flags) {}
    void begin(Bucket &bucket, size_t index, bool) override
    {
        works_.add(index, group_->run(detail::mean_of(bucket.memory, flags_), true));
    }
    void end(Bucket &, size_t index) override { works_.wait(index); }
    void abandon() noexcept override { works_.abandon(); }
    std::string text() const override { return "none"; }

protected:
    const Ref<Group> group_;
    const uint32_t flags_;
    detail::Works works_;
};

// Compression that halves the sent bytes. The engine sums 16-bit floats in float32.
class Cast final : public Plain {
public:
    Cast(Ref<Group> group, yoke_dtype dtype, uint32_t flags)
        : Plain(std::move(group), flags), dtype_(dtype)
    {
    }
    yoke_dtype passes(yoke_dtype dtype) const override
    {
        return item_size(dtype) > item_size(dtype_) ? dtype_ : dtype;
    }
    void begin(Bucket &bucket, size_t index, bool is_last) override
    {
        if (passes(bucket.memory->dtype) == bucket.memory->dtype)
            return Plain::begin(bucket, index, is_last);
        const Tensor sent = sent_[index] = ops::cast(*bucket.memory, dtype_);
        works_.add(index, group_->run(detail::mean_of(sent, flags_), true));
    }
    void end(Bucket &bucket, size_t index) override
    {
        works_.wait(index);
        const auto sent = sent_.extract(index);
        if (sent) ops::copy_(*bucket.memory, *sent.mapped());
    }
    void abandon() noexcept override
    {
        works_.abandon();
        sent_.clear();
    }
    std::string text() const override { return dtype_ == YOKE_F16 ? "'fp16'" : "'bf16'"; }

private:
    const yoke_dtype dtype_;
    std::map<size_t, Tensor> sent_;
};

class Hook final : public Plain {
public:
    Hook(BucketHook hook, Ref<Group> group) : Plain(std::move(group), 0), hook_(std::move(hook)) {}
    void begin(Bucket &bucket, size_t index, bool is_last) override
    {
        works_.add(index, hook_({bucket.memory, index, is_last, *group_}));
    }
    std::string text() const override { return "a function"; }

private:
    const BucketHook hook_;
};

}  // namespace

std::unique_ptr<Compression> make_hook(BucketHook hook, Ref<Group> group)
{
    return std::make_unique<Hook>(std::move(hook), std::move(group));
}

std::unique_ptr<Compression> make_compression(const std::string &text, Ref<Group> group,
                                              uint32_t flags)
{
    if (text.empty()) return std::make_unique<Plain>(std::move(group), flags);
    if (text == "fp16") return std::make_unique<Cast>(std::move(group), YOKE_F16, flags);
    if (text == "bf16") return std::make_unique<Cast>(std::move(group), YOKE_BF16, flags);
    const std::string kind = text.substr(0, text.find(':'));
    if (kind == "powersgd")
        return make_powersgd(text.size() > kind.size() ? text.substr(kind.size() + 1) : "",
                             std::move(group));
    fail(
        YOKE_E_VALUE,
        "DistributedDataParallel: argument 'compression' is '%s'; it must be 'fp16', 'bf16' or powersgd with options, 'powersgd:rank=4,start=10,rate=2'",
        text.c_str());
}

}  // namespace yoke
