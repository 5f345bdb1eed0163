#include "kernels/cuda/host/cudnn/plans.h"

#include <algorithm>
#include <utility>

namespace yoke::cuda {

bool notes_allow(const EngineRules &rules, const cudnnBackendNumericalNote_t *notes, int64_t count)
{
    return std::none_of(notes, notes + count, [&](cudnnBackendNumericalNote_t note) {
        switch (note) {
            case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
                return true;
            case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
                return rules.deterministic;
            case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
            case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
                return rules.is_f32 && !rules.tf32;
            default:
                return false;
        }
    });
}

static bool is_allowed(CudnnSteps &steps, const EngineRules &rules, cudnnBackendDescriptor_t config)
{
    Descriptor engine = steps.create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    steps.get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
              engine.place());
    constexpr int64_t kMostNotes = 32;
    cudnnBackendNumericalNote_t notes[kMostNotes];
    const int64_t count = steps.get(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                    CUDNN_TYPE_NUMERICAL_NOTE, kMostNotes, notes);
    return steps.works() && notes_allow(rules, notes, std::min(count, kMostNotes));
}

bool make_plan(CudnnSteps &steps, const Graph &graph, const EngineRules &rules, Descriptor &&config,
               CudnnPlan &made)
{
    if (!is_allowed(steps, rules, config.get())) return false;
    const Target &target = graph.target();
    made.plan = steps.create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target.handle)
        steps.set(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                  target.handle);
    else
        steps.set(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                  CUDNN_TYPE_BACKEND_DESCRIPTOR, target.properties);
    steps.set(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
              CUDNN_TYPE_BACKEND_DESCRIPTOR, config.get());
    steps.finalize(made.plan.get());
    int64_t bytes = 0;
    steps.get(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
              &bytes);
    made.workspace = static_cast<uint64_t>(bytes);
    made.config = std::move(config);
    return steps.works() && made.workspace <= rules.workspace_limit;
}

namespace {

constexpr int64_t kMostConfigs = 64;

struct Search {
    const Graph &graph;
    const EngineRules &rules;
    int wanted;
    CudnnPlan *plans;
    CudnnFailure *why;
    int found = 0;
    uint64_t refused = 0;

    const CudnnCalls &call() const { return graph.steps.call; }
    void note(const CudnnSteps &steps) const
    {
        if (why && !*why && !steps.works()) *why = steps.failure();
    }
    void ask(cudnnBackendHeurMode_t mode);
    void consider(Descriptor &&config);
};

void Search::consider(Descriptor &&config)
{
    CudnnSteps steps(call());
    CudnnPlan made;
    if (make_plan(steps, graph, rules, std::move(config), made))
        plans[found++] = std::move(made);
    else if (steps.works() && made.workspace && (!refused || made.workspace < refused))
        refused = made.workspace;
    note(steps);
}

void Search::ask(cudnnBackendHeurMode_t mode)
{
    CudnnSteps steps(call());
    Descriptor heuristics = steps.create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    steps.set(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
              CUDNN_TYPE_BACKEND_DESCRIPTOR, graph.get());
    steps.set(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (!graph.target().handle)
        steps.set(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  graph.target().properties);
    steps.finalize(heuristics.get());
    const int64_t known =
        std::min(kMostConfigs, steps.get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
    Descriptor configs[kMostConfigs];
    cudnnBackendDescriptor_t places[kMostConfigs];
    for (int64_t i = 0; i < known; ++i) {
        configs[i] = steps.create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        places[i] = configs[i].get();
    }
    const int64_t count = steps.get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, known, places);
    note(steps);
    for (int64_t i = 0; i < std::min(count, known) && found < wanted; ++i)
        consider(std::move(configs[i]));
}

}  // namespace

int find_plans(const Graph &graph, const EngineRules &rules, int wanted, CudnnPlan *plans,
               CudnnFailure *why, uint64_t *refused)
{
    Search search{graph, rules, wanted, plans, why};
    if (!graph.steps.works()) {
        if (why) *why = graph.steps.failure();
        return 0;
    }
    search.ask(CUDNN_HEUR_MODE_A);
    if (search.found < wanted) search.ask(CUDNN_HEUR_MODE_FALLBACK);
    if (refused) *refused = search.refused;
    return search.found;
}

}  // namespace yoke::cuda
