#include "yoke/autograd.h"

#include "capi/src/structs.h"
#include "core/autograd/notes.h"
#include "core/ops/function_node.h"
#include "core/ops/views.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Handles that a function of the program borrows for the length of a call.
class Borrowed {
public:
    explicit Borrowed(TensorList tensors)
    {
        for (yoke_tensor *each : tensors) handles_.push_back(hand_out(Tensor::share(each)));
    }
    ~Borrowed()
    {
        for (yoke_tensor *each : handles_) release_handle(each, "yoke_tensor_release");
    }
    Borrowed(const Borrowed &) = delete;
    Borrowed &operator=(const Borrowed &) = delete;
    yoke_tensor *const *data() const { return handles_.data(); }
    int64_t size() const { return static_cast<int64_t>(handles_.size()); }

private:
    std::vector<yoke_tensor *> handles_;
};

// Handles that a function of the program has filled, with a reference each.
class Given {
public:
    explicit Given(size_t count) : handles_(count) {}
    ~Given()
    {
        for (yoke_tensor *each : handles_) release_handle(each, "yoke_tensor_release");
    }
    Given(const Given &) = delete;
    Given &operator=(const Given &) = delete;
    yoke_tensor **data() { return handles_.data(); }
    // Returns the tensor with the program's reference; null if there is none.
    Tensor take(size_t i, const char *call)
    {
        if (!handles_[i]) return nullptr;
        object_of(handles_[i], call, "gradient");  // raises for an invalid handle
        return Tensor::adopt(take_back(std::exchange(handles_[i], nullptr), call));
    }

private:
    std::vector<yoke_tensor *> handles_;
};

// Raises the failure of a function of the program: a yoke_gradient_hook or a yoke_function.
template <class Struct>
[[noreturn]] void fail_program(const Struct &given, yoke_status status, const char *name)
{
    const char *problem = given.problem ? given.problem(given.user) : nullptr;
    fail(status, "backward: %s failed: %s", name,
         problem && *problem ? problem : status_name(status));
}

class ProgramHook final : public GradientHook {
public:
    explicit ProgramHook(const yoke_gradient_hook &hook) : hook_(hook) {}
    ~ProgramHook() override
    {
        if (hook_.drop && owns_) hook_.drop(hook_.user);
    }
    // Takes over the program's pointer, which is dropped at the end from now on.
    void own() noexcept { owns_ = true; }
    Tensor run(const Tensor &gradient) override
    {
        yoke_tensor *const given[] = {gradient.get()};
        const Borrowed borrowed(given);
        Given replacement(1);
        const yoke_status status = hook_.run(hook_.user, *borrowed.data(), replacement.data());
        if (status != YOKE_OK) fail_program(hook_, status, "a hook on a gradient");
        return replacement.take(0, "yoke_tensor_add_hook");
    }

private:
    const yoke_gradient_hook hook_;
    bool owns_ = false;
};

class ProgramFunction final : public FunctionBody {
public:
    explicit ProgramFunction(const yoke_function &function) : function_(function) {}
    ~ProgramFunction() override
    {
        if (function_.drop && owns_) function_.drop(function_.user);
    }
    void own() noexcept { owns_ = true; }
    void backward(const char *name, TensorList saved, TensorList gradients,
                  std::span<Tensor> out) override
    {
        // After a failed call the caller has the pointer, but an input changed in place may have the node.
        if (!owns_)
            fail(
                YOKE_E_STATE,
                "backward: yoke_function_record of %s failed after an input was changed in place; run the forward again",
                name);
        const Borrowed read(saved), given(gradients);
        Given made(out.size());
        const yoke_status status =
            function_.run(function_.user, read.data(), read.size(), given.data(), given.size(),
                          made.data(), static_cast<int64_t>(out.size()));
        if (status != YOKE_OK) fail_program(function_, status, name);
        for (size_t i = 0; i < out.size(); ++i) out[i] = made.take(i, "yoke_function_record");
    }

private:
    const yoke_function function_;
    bool owns_ = false;
};

yoke_function need_function(const yoke_function *given, const char *call)
{
    const yoke_function function = read_struct(given, call, "function");
    if (!function.name) fail_null(call, "function->name");
    if (!function.run) fail_null(call, "function->run");
    return function;
}

std::vector<FunctionCall::Output> need_kinds(const int32_t *kinds, int64_t count, const char *call)
{
    std::vector<FunctionCall::Output> all(static_cast<size_t>(count), FunctionCall::kFresh);
    for (size_t i = 0; kinds && i < all.size(); ++i) {
        if (kinds[i] < 0 || kinds[i] >= FunctionCall::kOutputKinds)
            fail(
                YOKE_E_VALUE,
                "%s: item %zu of argument 'kinds' is %d; it must be a YOKE_OUTPUT_* number, 0 to 2",
                short_name(call), i, kinds[i]);
        all[i] = static_cast<FunctionCall::Output>(kinds[i]);
    }
    return all;
}

}  // namespace

yoke_status yoke_tensor_add_hook(yoke_tensor *tensor, const yoke_gradient_hook *hook,
                                 yoke_hook **out)
{
    constexpr const char *call = "yoke_tensor_add_hook";
    return guard(call, [&] {
        if (out) *out = nullptr;
        const yoke_tensor &x = need(tensor, call, "tensor");
        const yoke_gradient_hook given = read_struct(hook, call, "hook");
        if (!given.run) fail_null(call, "hook->run");
        const auto function = Ref<ProgramHook>::adopt(new ProgramHook(given));
        auto entry = Ref<HookEntry>::adopt(new HookEntry(function));
        renew_view(short_name(call), x);
        add_hook(x, entry, short_name(call));
        function->own();
        if (out) *out = hand_out<yoke_hook>(std::move(entry));
    });
}

yoke_status yoke_hook_remove(yoke_hook *hook)
{
    constexpr const char *call = "yoke_hook_remove";
    return guard(call, [&] { need(hook, call, "hook").remove(); });
}

void yoke_hook_release(yoke_hook *hook)
{
    release_handle(hook, "yoke_hook_release");
}

yoke_status yoke_function_record(const yoke_function *function, yoke_tensor *const *inputs,
                                 int64_t input_count, yoke_tensor *const *outputs,
                                 int64_t output_count, const int32_t *kinds, yoke_tensor **recorded)
{
    constexpr const char *call = "yoke_function_record";
    return guard(call, [&] {
        const yoke_function given = need_function(function, call);
        const auto places = need_list(recorded, output_count, call, "recorded");
        std::fill(places.begin(), places.end(), nullptr);
        const Tensors from(inputs, input_count, call, "inputs", true);
        const Tensors to = need_tensors(outputs, output_count, call, "outputs");
        const Tensors saved(given.saved, given.saved_count, call, "function->saved", true);
        const auto all_kinds = need_kinds(kinds, output_count, call);
        const auto body = Ref<ProgramFunction>::adopt(new ProgramFunction(given));
        std::vector<Tensor> results =
            record_function({given.name, body, saved, from, to, all_kinds, given.keeps_null == 0});
        for (size_t i = 0; i < places.size(); ++i) places[i] = hand_out(std::move(results[i]));
        body->own();
    });
}
