#include "tests/fakes/cuda/cudnn_engines.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace yoke::fake {

const std::vector<Engine> kEngines = {
    {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0},
    {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, 0},
    {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096},
    {{CUDNN_NUMERICAL_NOTE_WINOGRAD}, 8192},
    {{}, 0},
};
static constexpr int64_t kFirstOfFallback = 4;

bool is_float_graph(const CudnnObject &graph)
{
    const CudnnObject &first = *graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).refs[0];
    return first.ref(ports_of(first).in[0])->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE) ==
           CUDNN_DATA_FLOAT;
}

static bool is_product(const CudnnRef &step)
{
    return step->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
}

Gradient gradient_of(const CudnnObject &graph)
{
    const std::vector<CudnnRef> &steps = graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).refs;
    if (std::count_if(steps.begin(), steps.end(), is_product) < 5) return Gradient::kNone;
    return is_product(steps.back()) ? Gradient::kInOrder : Gradient::kAnyOrder;
}

// Returns the bytes of the scores' gradients, which an attention's gradient in order stores.
static int64_t bytes_of_scores(const CudnnObject &graph)
{
    if (gradient_of(graph) != Gradient::kInOrder) return 0;
    const std::vector<CudnnRef> &steps = graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).refs;
    int64_t bytes = 2;
    for (const int64_t length :
         steps.back()->ref(CUDNN_ATTR_OPERATION_MATMUL_ADESC)->list(CUDNN_ATTR_TENSOR_DIMENSIONS))
        bytes *= length;
    return bytes;
}

int64_t workspace_of(const CudnnObject &config)
{
    return kEngines[static_cast<size_t>(config.get<int64_t>(kEngineOfConfig))].workspace +
           bytes_of_scores(*config.ref(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
}

int microseconds_of(size_t engine)
{
    const char *list = getenv("FAKE_CUDNN_MICROSECONDS");
    for (size_t i = 0; list && i < engine && strchr(list, ','); ++i) list = strchr(list, ',') + 1;
    return list ? atoi(list) : 0;
}

cudnnStatus_t take_engine(CudnnObject &config)
{
    const CudnnObject &engine = *config.ref(CUDNN_ATTR_ENGINECFG_ENGINE),
                      *choice = config.ref(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    const auto number = engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    if (number < 0 || number >= static_cast<int64_t>(kEngines.size()))
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!choice || choice->get<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) != kKnob ||
        choice->get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) != choice_of(number))
        return CUDNN_STATUS_NOT_SUPPORTED;
    config.values[kEngineOfConfig] = value_of(CUDNN_TYPE_INT64, number);
    config.values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
        engine.values.at(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    return CUDNN_STATUS_SUCCESS;
}

void add_results(CudnnObject &heuristics)
{
    const char *text = getenv("FAKE_CUDNN_ENGINES");
    const auto last = text ? atoi(text) : static_cast<int64_t>(kEngines.size());
    const bool fallback =
        heuristics.get<int>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    for (int64_t i = fallback ? kFirstOfFallback : 0;
         i < (fallback ? last : std::min(last, kFirstOfFallback)); ++i) {
        auto config = std::make_shared<CudnnObject>();
        config->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
        config->is_finalized = true;
        config->values[kEngineOfConfig] = value_of(CUDNN_TYPE_INT64, i);
        config->values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
            heuristics.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        heuristics.results.push_back(config);
    }
}

}  // namespace yoke::fake
