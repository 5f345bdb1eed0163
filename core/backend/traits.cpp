#include "core/backend/traits.h"

#include <algorithm>
#include <cstddef>

namespace yoke {

namespace {

constexpr int32_t kDlpackCpu = 1, kDlpackCuda = 2;  // fixed by DLPack's header

constexpr KindTraits kKinds[] = {
    {"cuda",
     true,
     "nvidia",
     kDlpackCuda,
     YOKE_F16,
     true,
     true,
     "cudnn",
     "nccl",
     {"gpu", "gpus", "nvidia"}},
    {"cpu", false, "", kDlpackCpu, YOKE_BF16, false, false, "", "", {"host", "", ""}},
};
constexpr KindTraits kOther = {"", false, "", 0, YOKE_BF16, false, false, "", "", {"", "", ""}};

template <class Predicate>
const KindTraits *find(Predicate is_meant) noexcept
{
    const auto *found = std::find_if(std::begin(kKinds), std::end(kKinds), is_meant);
    return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

const KindTraits &traits_of(std::string_view kind) noexcept
{
    const KindTraits *found = find([&](const KindTraits &each) { return kind == each.kind; });
    return found ? *found : kOther;
}

const char *kind_serving(std::string_view vendor) noexcept
{
    const KindTraits *found =
        find([&](const KindTraits &each) { return *each.vendor && vendor == each.vendor; });
    return found ? found->kind : "";
}

const KindTraits *find_dlpack_kind(int32_t type) noexcept
{
    return find([&](const KindTraits &each) { return type == each.dlpack; });
}

const char *kind_called(std::string_view word) noexcept
{
    const KindTraits *found = find([&](const KindTraits &each) {
        return std::any_of(std::begin(each.other_names), std::end(each.other_names),
                           [&](const char *name) { return *name && word == name; });
    });
    return found ? found->kind : nullptr;
}

const char *kind_reducing_by(std::string_view engine) noexcept
{
    const KindTraits *found = find(
        [&](const KindTraits &each) { return *each.collectives && engine == each.collectives; });
    return found ? found->kind : "";
}

const char *kind_calling(std::string_view engine) noexcept
{
    const KindTraits *found =
        find([&](const KindTraits &each) { return *each.engine && engine == each.engine; });
    return found ? found->kind : "";
}

const char *module_kind(int nth) noexcept
{
    for (const KindTraits &each : kKinds)
        if (each.is_module && nth-- == 0) return each.kind;
    return nullptr;
}

}  // namespace yoke
