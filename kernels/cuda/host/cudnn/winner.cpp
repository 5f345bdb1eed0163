#include "kernels/cuda/host/cudnn/winner.h"

#include <utility>

namespace yoke::cuda {

namespace {

constexpr int kMostKnobs = CudnnWinner::kMostKnobs;

// Reads the knobs of a configuration into `winner` and returns their number. If there are more than kMostKnobs, reads
// none. cuDNN reports the number only when it fills places for knobs.
int64_t read_knobs(CudnnSteps &steps, cudnnBackendDescriptor_t config, CudnnWinner &winner)
{
    Descriptor choices[kMostKnobs];
    cudnnBackendDescriptor_t places[kMostKnobs];
    for (int i = 0; i < kMostKnobs; ++i) {
        choices[i] = steps.create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        places[i] = choices[i].get();
    }
    const int64_t known = steps.get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostKnobs, places);
    if (known > kMostKnobs) return known;
    for (int64_t i = 0; i < known; ++i) {
        int64_t value = 0;
        steps.get(places[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                  &winner.knobs[i].type);
        steps.get(places[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
        winner.knobs[i].value = static_cast<int32_t>(value);
    }
    return known;
}

Descriptor make_choice(CudnnSteps &steps, int32_t type, int64_t value)
{
    Descriptor made = steps.create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    steps.set(made.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type);
    steps.set(made.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value);
    steps.finalize(made.get());
    return made;
}

}  // namespace

bool read_winner(const CudnnCalls &call, const CudnnPlan &plan, CudnnWinner &winner)
{
    CudnnSteps steps(call);
    winner = {};
    Descriptor engine = steps.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    steps.get(plan.config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
              engine.place());
    steps.get(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &winner.engine);
    winner.count = read_knobs(steps, plan.config.get(), winner);
    return steps.works() && winner.count <= kMostKnobs;
}

bool remake_plan(const Graph &graph, const EngineRules &rules, const CudnnWinner &winner,
                 CudnnPlan &plan)
{
    if (winner.count < 0 || winner.count > kMostKnobs) return false;
    CudnnSteps steps(graph.steps.call);
    const Descriptor engine = steps.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    steps.set(engine.get(), CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              graph.get());
    steps.set(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, winner.engine);
    if (!graph.target().handle)
        steps.set(engine.get(), CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  graph.target().properties);
    steps.finalize(engine.get());
    Descriptor choices[kMostKnobs], config = steps.create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t places[kMostKnobs];
    for (int64_t i = 0; i < winner.count; ++i) {
        choices[i] = make_choice(steps, winner.knobs[i].type, winner.knobs[i].value);
        places[i] = choices[i].get();
    }
    steps.set(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              engine.get());
    if (winner.count)
        steps.set(config.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  winner.count, places);
    steps.finalize(config.get());
    return steps.works() && make_plan(steps, graph, rules, std::move(config), plan);
}

}  // namespace yoke::cuda
