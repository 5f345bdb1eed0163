// Calls with words to choose from, and a shape with strides of equal length.
#include "special.h"

#include <algorithm>

namespace hostile::special {

void yoke_meant_word(Draw &d)
{
    static const char *const kWords[] = {"axis", "dtype", "keepdim", "shape"};
    const char *text = d.word(Words::kName);
    const bool some = !d.one_in(8);
    const int64_t count = some ? static_cast<int64_t>(d.below(5)) : d.int64();
    d.show("%s, %lld", some ? "words" : "NULL", static_cast<long long>(count));
    d.announce();
    const char *meant = ::yoke_meant_word(text, some ? kWords : nullptr, count);
    if (meant && std::find(kWords, kWords + 4, meant) == kWords + 4)
        throw Defect("gave a word that was none of those to choose from");
}

void yoke_tensor_view_storage(Draw &d)
{
    yoke_tensor *tensor = d.handle<yoke_tensor>();
    const yoke_dtype dtype = d.dtype();
    const int64_t *shape = d.ints(Ints::kShape);
    const int64_t ndim = d.count();
    int64_t *strides = nullptr;
    if (d.one_in(2) && ndim > 0) {
        strides = d.array<int64_t>(static_cast<size_t>(ndim));
        for (int64_t i = 0; i < ndim; ++i) strides[i] = d.int64();
    }
    const int64_t offset = d.one_in(2) ? 0 : d.int64();
    d.show("%lld", static_cast<long long>(offset));
    yoke_tensor **out = d.out<yoke_tensor>();
    d.announce();
    d.finish(::yoke_tensor_view_storage(tensor, dtype, shape, strides, ndim, offset, out));
}

}  // namespace hostile::special
