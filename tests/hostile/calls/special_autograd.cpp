// special_autograd.cpp: gradients of lists, hooks on gradients, and functions with a backward of their own.
#include "special.h"

#include <algorithm>

namespace hostile::special {

namespace {

// Arguments that yoke_grad and yoke_grad_v2 share.
struct Gradients {
    explicit Gradients(Draw &d)
        : outputs(d.tensors()),
          count(d.count()),
          weights(d, count),
          inputs(d.tensors()),
          input_count(d.count()),
          retain(d.int32()),
          room(static_cast<size_t>(std::max<int64_t>(input_count, 0))),
          grads(d.one_in(48) ? nullptr : d.array<yoke_tensor *>(room))
    {
        for (size_t i = 0; grads && i < room; ++i) grads[i] = nowhere();
    }
    static yoke_tensor *nowhere() { return reinterpret_cast<yoke_tensor *>(0x5A5A); }

    void finish(Draw &d, yoke_status status) const
    {
        d.finish(status);
        for (size_t i = 0; grads && i < room; ++i) {
            if (status != YOKE_OK && grads[i] && input_count > 0 && grads[i] != nowhere())
                throw Defect("failed and left a gradient");
            if (status == YOKE_OK && grads[i]) d.world().put(d.any_place<yoke_tensor>(), grads[i]);
        }
    }

    // Weights of the outputs, or none.
    struct Weights {
        Weights(Draw &d, int64_t count)
        {
            if (!d.one_in(3)) return;
            const auto length = static_cast<size_t>(std::max<int64_t>(count, 0));
            list = d.array<yoke_tensor *>(length);
            for (size_t i = 0; i < length; ++i)
                list[i] = d.one_in(2) ? nullptr : d.handle<yoke_tensor>();
        }
        yoke_tensor **list = nullptr;
    };

    yoke_tensor *const *const outputs;
    const int64_t count;
    const Weights weights;
    yoke_tensor *const *const inputs;
    const int64_t input_count;
    const int32_t retain;
    const size_t room;
    yoke_tensor **const grads;
};

// Reads the gradient, and now and then replaces it, fails, or walks another graph.
yoke_status see(void *, yoke_tensor *gradient, yoke_tensor **replacement)
{
    const int64_t choice = yoke_tensor_numel(gradient) % 5;
    if (choice == 1) return ::yoke_neg(gradient, replacement);
    if (choice == 2) *replacement = yoke_tensor_retain(gradient);
    if (choice == 3) ::yoke_backward(gradient, nullptr, 0);
    return choice == 4 ? YOKE_E_CANCELLED : YOKE_OK;
}

// Gives each input the gradient of the first output.
yoke_status go_back(void *, yoke_tensor *const *, int64_t, yoke_tensor *const *gradients,
                    int64_t count, yoke_tensor **input_gradients, int64_t input_count)
{
    for (int64_t i = 0; count && i < input_count; ++i)
        input_gradients[i] = yoke_tensor_retain(gradients[0]);
    return YOKE_OK;
}

}  // namespace

void yoke_grad(Draw &d)
{
    const Gradients of(d);
    d.announce();
    of.finish(d, ::yoke_grad(of.outputs, of.count, of.weights.list, of.inputs, of.input_count,
                             of.retain, of.grads));
}

void yoke_grad_v2(Draw &d)
{
    const Gradients of(d);
    const int32_t allow_unused = d.int32();
    d.announce();
    of.finish(d, ::yoke_grad_v2(of.outputs, of.count, of.weights.list, of.inputs, of.input_count,
                                of.retain, allow_unused, of.grads));
}

void yoke_backward_v2(Draw &d)
{
    yoke_tensor *const *outputs = d.tensors();
    const int64_t count = d.count();
    const Gradients::Weights weights(d, count);
    yoke_tensor *const *inputs = d.one_in(2) ? nullptr : d.tensors();
    const int64_t input_count = inputs ? d.count() : 0;
    const int32_t retain = d.int32();
    d.announce();
    d.finish(::yoke_backward_v2(outputs, count, weights.list, inputs, input_count, retain));
}

void yoke_tensor_add_hook(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    const bool drops = d.one_in(2);
    auto *hook = d.one_in(16) ? nullptr : d.array<yoke_gradient_hook>(1);
    if (hook) {
        *hook = {};
        hook->struct_size = d.one_in(16) ? d.uint32() : static_cast<uint32_t>(sizeof *hook);
        hook->user = &d.world();
        hook->run = d.one_in(16) ? nullptr : see;
        hook->drop = drops ? give_back : nullptr;
    }
    yoke_hook **out = d.out<yoke_hook>();
    d.announce();
    d.world().borrowed += drops;
    const yoke_status status = ::yoke_tensor_add_hook(tensor, hook, out);
    d.finish(status);
    if (status != YOKE_OK) d.world().borrowed -= drops;
}

void yoke_function_record(Draw &d)
{
    yoke_tensor *const *inputs = d.tensors();
    const int64_t input_count = d.count();
    yoke_tensor *const *outputs = d.tensors();
    const int64_t output_count = d.count();
    yoke_tensor *const *saved = d.tensors();
    const int64_t saved_count = d.count();
    const bool drops = d.one_in(2);
    auto *function = d.one_in(16) ? nullptr : d.array<yoke_function>(1);
    if (function) {
        *function = {};
        function->struct_size = d.one_in(16) ? d.uint32() : static_cast<uint32_t>(sizeof *function);
        function->keeps_null = d.one_in(2);
        function->name = d.word(Words::kName);
        function->user = &d.world();
        function->run = d.one_in(16) ? nullptr : go_back;
        function->drop = drops ? give_back : nullptr;
        function->saved = saved;
        function->saved_count = saved_count;
    }
    const auto room = static_cast<size_t>(std::max<int64_t>(output_count, 0));
    int32_t *kinds = d.one_in(2) ? nullptr : d.array<int32_t>(room);
    for (size_t i = 0; kinds && i < room; ++i)
        kinds[i] = d.one_in(16) ? d.int32() : static_cast<int32_t>(d.below(3));
    auto **recorded = d.one_in(48) ? nullptr : d.array<yoke_tensor *>(room);
    for (size_t i = 0; recorded && i < room; ++i) recorded[i] = Gradients::nowhere();
    d.announce();
    d.world().borrowed += drops;
    const yoke_status status = ::yoke_function_record(function, inputs, input_count, outputs,
                                                      output_count, kinds, recorded);
    d.finish(status);
    if (status != YOKE_OK) d.world().borrowed -= drops;
    for (size_t i = 0; recorded && status == YOKE_OK && i < room; ++i)
        d.world().put(d.any_place<yoke_tensor>(), recorded[i]);
}

}  // namespace hostile::special
