// words.cpp: probable meaning of an unknown name.
#include "yoke/runtime.h"

#include "capi/src/guard.h"
#include "core/base/config.h"
#include "core/base/text.h"

#include <cstring>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Argument names of other libraries, and Yoke's names. Of several rows, the first that fits the call counts. First
// stand PyTorch's names, which the bindings accept; then names that no call accepts.
constexpr const char *kTranslations[][2] = {
#define YOKE_OTHER_NAME(other, own, is_flag, calls) {other, own},
#include "capi/src/other_names.inc"
#undef YOKE_OTHER_NAME
    {"a", "x"},
    {"sizes", "shape"},
    {"newshape", "shape"},
    {"a_min", "min"},
    {"a_max", "max"},
    {"ord", "p"},
    {"ddof", "correction"},
    {"size_average", "reduction"},
    {"reduce", "reduction"},
    {"grad_tensors", "gradient"},
    {"src", "root"},
    {"dst", "root"},
    {"tensor", "t"},
    {"input", "t"},
    {"input_tensor", "t"},
    {"output", "out"},
    {"output_tensor", "out"},
};

// Advice on arguments of other libraries for which no call here has a counterpart.
constexpr const char *kAdvice[][2] = {
    {"is_grads_batched", "leave it out; make one call for each gradient"},
    {"weights_only", "leave it out; load() reads only values and runs no code of a file"},
    {"pickle_module", "leave it out; a state is a safetensors file, not a pickle"},
    {"pickle_protocol", "leave it out; a state is a safetensors file, not a pickle"},
    {"device_type",
     "leave it out; an autocast region applies to every device, and dtype= is the dtype of its casts"},
    {"blocking", "leave it out; a waiting call lets other threads run"},
    {"interprocess", "leave it out; an event belongs to one process"},
    {"foreach", "leave it out; all tensors of a group are updated together"},
    {"fused", "leave it out; all tensors of a group are updated together"},
    {"capturable", "leave it out; a graph can always capture a step"},
    {"differentiable", "leave it out; backward does not go through a step"},
    {"maximize", "leave it out, and negate the loss"},
    {"amsgrad", "leave it out; Yoke does not support this variant"},
    {"dampening", "leave it out; Yoke does not dampen momentum"},
    {"inplace", "leave it out; the name of an op in place ends in _"},
    {"out", "leave it out, and write out.copy_(result)"},
    {"memory_format", "leave it out; new tensors are row-major"},
    {"layout", "leave it out; all tensors are strided"},
    {"generator",
     "leave it out; put the call in a block of the generator, `with generator:` or generator:use"},
    {"use_reentrant", "leave it out; a scope runs no code of the script twice"},
    {"preserve_rng_state", "leave it out; the second run draws the same random numbers"},
    {"error_if_nonfinite", "leave it out, and check the norm that the call returns"},
};

bool is_one_of(const char *word, const char *const *words, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        if (!std::strcmp(words[i], word)) return true;
    return false;
}

// Returns the first of the words that begins with the text, as 'out_features' with 'out', or null.
const char *longer_word(const char *text, const char *const *words, int64_t count)
{
    constexpr size_t kShortest = 3;
    const size_t length = std::strlen(text);
    for (int64_t i = 0; length >= kShortest && i < count; ++i)
        if (!std::strncmp(words[i], text, length)) return words[i];
    return nullptr;
}

}  // namespace

const char *yoke_meant_word(const char *text, const char *const *words, int64_t count)
{
    constexpr const char *call = "yoke_meant_word";
    return guard_value(call, static_cast<const char *>(nullptr), [&]() -> const char * {
        need(text, call, "text");
        const auto list = need_list(words, count, call, "words");
        for (const auto &[theirs, ours] : kTranslations)
            if (!std::strcmp(text, theirs) && is_one_of(ours, words, count)) return ours;
        if (const char *longer = longer_word(text, words, count)) return longer;
        return nearest_word(text, {list.begin(), list.end()});
    });
}

const char *yoke_word_advice(const char *text)
{
    constexpr const char *call = "yoke_word_advice";
    return guard_value(call, static_cast<const char *>(nullptr), [&]() -> const char * {
        need(text, call, "text");
        for (const auto &[word, advice] : kAdvice)
            if (!std::strcmp(text, word)) return advice;
        return nullptr;
    });
}
