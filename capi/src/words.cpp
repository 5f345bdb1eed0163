// words.cpp: what a name that is not known was probably meant to say.
#include "yoke/runtime.h"

#include "capi/src/guard.h"
#include "core/base/config.h"
#include "core/base/text.h"

#include <cstring>

using namespace yoke;
using namespace yoke::capi;

namespace {

// What other libraries (PyTorch, NumPy) call the arguments of ours; of several, the first that a call has.
constexpr const char *kTranslations[][2] = {
    {"dim", "axis"},
    {"dim", "axes"},
    {"dims", "axis"},
    {"dims", "axes"},
    {"dim0", "axis0"},
    {"dim1", "axis1"},
    {"keepdims", "keepdim"},
    {"input", "x"},
    {"a", "x"},
    {"other", "y"},
    {"size", "shape"},
    {"sizes", "shape"},
    {"newshape", "shape"},
    {"repeats", "reps"},
    {"fill_value", "value"},
    {"end", "stop"},
    {"a_min", "min"},
    {"a_max", "max"},
    {"ord", "p"},
    {"ddof", "correction"},
    {"unbiased", "correction"},
    {"attn_mask", "mask"},
    {"split_size", "size"},
};

bool is_one_of(const char *word, const char *const *words, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        if (!std::strcmp(words[i], word)) return true;
    return false;
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
        return nearest_word(text, {list.begin(), list.end()});
    });
}
