// What ranks that are to reduce the gradients of one model must have alike, before the first backward.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/exchange.h"
#include "core/comm/reducer.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace yoke {

namespace {

constexpr const char *kCall = "DistributedDataParallel";

using Numbers = std::vector<int64_t>;

bool are_alike(const Numbers &all, size_t each)
{
    for (size_t i = each; i < all.size(); ++i)
        if (all[i] != all[i - each]) return false;
    return true;
}

int64_t hash_of(std::string_view bytes)
{
    return static_cast<int64_t>(std::hash<std::string_view>()(bytes));
}

std::string line_of(const Reducer::Named &param)
{
    return format("'%s' is %s", param.name.c_str(), describe(*param.tensor).c_str());
}

std::string lines_of(const std::vector<Reducer::Named> &params)
{
    std::string text;
    for (const Reducer::Named &each : params) text += line_of(each) + "\n";
    return text;
}

// The first line of ours that theirs has otherwise, and that one; "none" where one has fewer.
std::string first_difference(const std::string &ours, const std::string &theirs)
{
    const auto next = [](const std::string &text, size_t &at) {
        const size_t begin = std::min(at, text.size()), end = text.find('\n', begin);
        at = end == text.npos ? text.size() : end + 1;
        return begin == text.size() ? "there is none" : text.substr(begin, end - begin);
    };
    for (size_t i = 0, k = 0; i < ours.size() || k < theirs.size();) {
        const std::string mine = next(ours, i), other = next(theirs, k);
        if (mine != other) return other + " on rank 0, " + mine;
    }
    return "";
}

int64_t hash_of_values(const std::vector<Reducer::Named> &tensors)
{
    int64_t hash = 0;
    std::string bytes;
    for (const Reducer::Named &each : tensors) {
        const Tensor dense = ops::contiguous(*each.tensor);
        bytes.resize(dense->nbytes());
        copy_to_host(*dense, bytes.data(), bytes.size(), kCall);
        hash = hash_of(bytes + std::to_string(hash));
    }
    return hash;
}

}  // namespace

void Reducer::compare_models() const
{
    constexpr size_t kLength = 64;  // of a difference that is told, in numbers
    const std::string mine = lines_of(params_) + "buffers\n" + lines_of(buffers_);
    const Numbers about = gathered(*group_, {hash_of(mine), std::ssize(mine)}, kCall);
    if (are_alike(about, 2)) return;
    const auto length = static_cast<size_t>(about[1]) / sizeof(int64_t) + 1;
    const Numbers first = from_rank(*group_, 0, packed(mine, length), kCall);
    const std::string difference = first_difference(mine, unpacked(first.data(), length));
    const Numbers all =
        gathered(*group_, packed(difference.substr(0, kLength * 8 - 1), kLength), kCall);
    for (int32_t rank = 0; rank < group_->size(); ++rank) {
        const std::string told = unpacked(&all[static_cast<size_t>(rank) * kLength], kLength);
        if (told.empty()) continue;
        yoke::fail(
            YOKE_E_VALUE,
            "%s: the ranks have unlike modules: the parameter or buffer %s on %s; give all ranks one module",
            kCall, told.c_str(), describe(group_->ranks()[static_cast<size_t>(rank)]).c_str());
    }
}

void Reducer::take_values(int32_t root)
{
    send(params_, root);
    send(buffers_, root);
}

void Reducer::take_values_of_rank_0()
{
    const Numbers hashes =
        gathered(*group_, {hash_of_values(params_), hash_of_values(buffers_)}, kCall);
    if (are_alike(hashes, 2)) return;
    take_values(0);
    if (group_->rank() == 0)
        log(LogLevel::kWarn,
            "%s: the ranks began with unlike values, and all have taken those of %s", kCall,
            describe(group_->ranks()[0]).c_str());
}

}  // namespace yoke
