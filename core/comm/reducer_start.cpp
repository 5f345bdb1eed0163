// What ranks that are to reduce the gradients of one model must have alike, before the first backward.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/comm/exchange.h"
#include "core/comm/pieces.h"
#include "core/comm/reducer.h"

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

constexpr std::string_view kBuffer = "the buffer";

std::string lines_of(const std::vector<Reducer::Named> &tensors, std::string_view kind)
{
    std::string text;
    for (const Reducer::Named &each : tensors)
        text += std::string(kind) + " '" + each.name + "' is " + describe(*each.tensor) +
                (each.is_frozen ? " and frozen\n" : "\n");
    return text;
}

// What the order and the kind of calls hang on.
std::string lines_of(const BucketSizes &sizes, const Compression &compression)
{
    const auto bytes = static_cast<double>(sizes.other);
    return format("the option 'bucket_mb' is %g, %.0f bytes,\nthe option 'compression' is %s\n",
                  bytes / (1 << 20), bytes, compression.text().c_str());
}

// In their order; who has come to a later kind lacks what others have of the former one.
int kind_of(const std::string &line)
{
    return line.empty() ? 2 : line.starts_with(kBuffer) ? 1 : 0;
}

constexpr size_t kMostShown = 1000;  // bytes of a line

// The first line of ours that theirs has otherwise, and that one; "there is none" where one has fewer.
std::string first_difference(const std::string &ours, const std::string &theirs)
{
    const auto next = [](const std::string &text, size_t &at) {
        const size_t begin = std::min(at, text.size()), end = text.find('\n', begin);
        at = end == text.npos ? text.size() : end + 1;
        return text.substr(begin, end - begin);
    };
    const auto shown = [](const std::string &line, const std::string &beside) {
        return kind_of(line) > kind_of(beside) ? "there is none" : cut(line, kMostShown);
    };
    for (size_t i = 0, k = 0; i < ours.size() || k < theirs.size();) {
        const std::string mine = next(ours, i), other = next(theirs, k);
        if (mine != other) return shown(other, mine) + " on rank 0, " + shown(mine, other);
    }
    return "";
}

int64_t hash_of_values(const std::vector<Reducer::Named> &tensors)
{
    int64_t hash = 0;
    for (const Reducer::Named &each : tensors)
        for (const Tensor &piece : pieces_of(*each.tensor))
            hash = hash_of(bytes_of(*piece, kCall).append(std::to_string(hash)));
    return hash;
}

constexpr size_t kLength = 256;   // of a text that is told, in numbers
constexpr int64_t kNoModel = -1;  // in the place of a length; before it is the status

// The first of all ranks that has no model, but a reason for it, or -1; all have told what they are about.
int32_t first_refused(const Numbers &about)
{
    for (size_t i = 1; i < about.size(); i += 2)
        if (about[i] == kNoModel) return static_cast<int32_t>(i / 2);
    return -1;
}

std::string told_by(const Numbers &all, int32_t rank)
{
    return unpacked(&all[static_cast<size_t>(rank) * kLength], kLength);
}

}  // namespace

void Reducer::tell_refused(Group &group, const Error &why)
try {
    if (group.size() == 1) return;
    const NoGrad no_grad;
    gathered(group, {static_cast<int64_t>(why.status()), kNoModel}, kCall);
    gathered(group, packed(why.what(), kLength), kCall);
} catch (const Error &error) {
    log(LogLevel::kInfo, "%s: the others were not told what was wrong: %s", kCall, error.what());
}

void Reducer::check_all_have_models(const std::vector<int64_t> &about) const
{
    const int32_t rank = first_refused(about);
    if (rank < 0) return;
    const std::string why = told_by(gathered(*group_, packed("", kLength), kCall), rank);
    throw UnlikeModels(
        static_cast<yoke_status>(about[2 * static_cast<size_t>(rank)]),
        format("%s: what %s gives was refused there: %s", kCall,
               describe(group_->ranks()[static_cast<size_t>(rank)]).c_str(), why.c_str()));
}

void Reducer::compare_models() const
{
    const std::string mine = lines_of(options_.sizes, *compression_) +
                             lines_of(all_params_, "the parameter") + lines_of(buffers_, kBuffer);
    const Numbers about = gathered(*group_, {hash_of(mine), std::ssize(mine)}, kCall);
    if (are_alike(about, 2)) return;
    check_all_have_models(about);
    const auto length = static_cast<size_t>(about[1]) / sizeof(int64_t) + 1;
    const Numbers first = from_rank(*group_, 0, packed(mine, length), kCall);
    const std::string difference = first_difference(mine, unpacked(first.data(), length));
    const Numbers all = gathered(*group_, packed(difference, kLength), kCall);
    for (int32_t rank = 0; rank < group_->size(); ++rank) {
        const std::string told = told_by(all, rank);
        if (told.empty()) continue;
        throw UnlikeModels(
            YOKE_E_VALUE,
            format(
                "%s: the ranks have unlike modules or options: %s on %s; give all ranks the same",
                kCall, told.c_str(), describe(group_->ranks()[static_cast<size_t>(rank)]).c_str()));
    }
}

void Reducer::take_values(int32_t root)
{
    send(all_params_, root, Writes::kAll);
    send(buffers_, root, Writes::kUnlike);
}

void Reducer::take_values_of_rank_0()
{
    const Numbers hashes =
        gathered(*group_, {hash_of_values(all_params_), hash_of_values(buffers_)}, kCall);
    if (are_alike(hashes, 2)) return;
    take_values(0);
    if (group_->rank() == 0)
        log(LogLevel::kWarn,
            "%s: the ranks began with unlike values, and all have taken those of %s", kCall,
            describe(group_->ranks()[0]).c_str());
}

}  // namespace yoke
