#include "core/parallel/model_comparison.h"

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/comm/exchange.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace yoke {

namespace {

using Numbers = std::vector<int64_t>;

int64_t hash_of(std::string_view bytes)
{
    return static_cast<int64_t>(std::hash<std::string_view>()(bytes));
}

constexpr std::string_view kBuffer = "the buffer";

// Names the devices of a module alike on all ranks. Each rank has its own cards, so a card's number must not count.
// But tensors on the same device must show, because a bucket lies on a single device.
class DeviceNames {
public:
    std::string of(const Device &device)
    {
        const auto found = std::ranges::find(seen_, &device);
        const auto place = static_cast<size_t>(found - seen_.begin());
        if (found == seen_.end()) seen_.push_back(&device);
        const std::string kind = device.kind();
        return place == 0 ? kind : format("%s, device %zu of the module", kind.c_str(), place + 1);
    }

private:
    std::vector<const Device *> seen_;
};

std::string lines_of(const std::vector<ModuleTensor> &tensors, std::string_view kind,
                     DeviceNames &names)
{
    std::string text;
    for (const ModuleTensor &each : tensors)
        text += std::string(kind) + " '" + each.name + "' is " + to_string(each.tensor->shape()) +
                " " + name(each.tensor->dtype) + " on " + names.of(*each.tensor->device) +
                (each.is_frozen ? " and frozen\n" : "\n");
    return text;
}

std::string lines_of(const ComparedOptions &options)
{
    const auto bytes = static_cast<double>(options.sizes.other);
    const bool is_in_f32 = options.flags & YOKE_COMM_IN_F32;
    return format(
        "the option 'bucket_mb' is %g, %.0f bytes,\nthe option 'compression' is %s\nthe option 'reduce_dtype' is %s\n",
        bytes / (1 << 20), bytes, options.compression.text().c_str(),
        is_in_f32 ? "float32" : "not given");
}

// Returns the kind of a line: 0 for options and parameters, 1 for buffers, 2 for no line. A text has its kinds in
// this order. If a text has reached a later kind, lines of the former kind are missing.
int kind_of(const std::string &line)
{
    return line.empty() ? 2 : line.starts_with(kBuffer) ? 1 : 0;
}

constexpr size_t kMostShown = 1000;  // bytes of a line

// Returns the first line that differs between the texts, as on both ranks: "… on rank 0, …"; "there is none" stands
// for a missing line. Returns "" for equal texts. `theirs` is rank 0's text.
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

constexpr size_t kLength = 256;   // size of a sent text, in numbers
constexpr int64_t kNoModel = -1;  // in place of `length`; `hash` is then the status

// First numbers that each rank sends: about its model, and about a regrouped module's former group and number.
struct About {
    int64_t hash = 0, length = 0, former = 0, module = 0;
    bool is_wrapped() const { return module == 0; }
};

std::vector<About> all_about(Group &group, const About &mine)
{
    const Numbers told =
        gathered(group, {mine.hash, mine.length, mine.former, mine.module}, kDdpCall);
    std::vector<About> all;
    for (size_t i = 0; i < told.size(); i += 4)
        all.push_back({told[i], told[i + 1], told[i + 2], told[i + 3]});
    return all;
}

std::string name_of(const Group &group, size_t rank)
{
    return describe(group.ranks()[rank]);
}

// Raises UnlikeModels if some ranks regroup and others wrap: each of the two calls waits for the other ranks in vain.
void check_all_wrap_or_none(const Group &group, const std::vector<About> &all)
{
    const auto wraps = std::ranges::find_if(all, &About::is_wrapped),
               regroups = std::ranges::find_if_not(all, &About::is_wrapped);
    if (wraps == all.end() || regroups == all.end()) return;
    throw UnlikeModels(
        YOKE_E_STATE,
        format(
            "%s: %s regroups a module, but %s wraps one; a new rank must wrap its module in a group of size 1, as init_all makes it, and then regroup as the other ranks do",
            kDdpCall, name_of(group, static_cast<size_t>(regroups - all.begin())).c_str(),
            name_of(group, static_cast<size_t>(wraps - all.begin())).c_str()));
}

// Returns the first two ranks of the same former group with unlike modules; null if there are none.
std::optional<std::pair<size_t, size_t>> first_unlike(const std::vector<About> &all)
{
    for (size_t second = 1; second < all.size(); ++second)
        for (size_t first = 0; first < second; ++first)
            if (all[first].former == all[second].former && all[first].module != all[second].module)
                return std::pair(first, second);
    return std::nullopt;
}

std::string told_by(const Numbers &all, int32_t rank)
{
    return unpacked(&all[static_cast<size_t>(rank) * kLength], kLength);
}

}  // namespace

void tell_refused(Group &group, const Error &why)
try {
    if (group.size() == 1) return;
    const NoGrad no_grad;
    all_about(group, {static_cast<int64_t>(why.status()), kNoModel});
    gathered(group, packed(why.what(), kLength), kDdpCall);
} catch (const Error &error) {
    log(LogLevel::kInfo, "%s: the error could not be reported to the other ranks: %s", kDdpCall,
        error.what());
}

namespace {

// Raises UnlikeModels, with the reason of the first rank without a model, if a rank has called tell_refused.
void check_all_have_models(Group &group, const std::vector<About> &all)
{
    const auto refused = std::ranges::find(all, kNoModel, &About::length);
    if (refused == all.end()) return;
    const auto rank = static_cast<int32_t>(refused - all.begin());
    const std::string why = told_by(gathered(group, packed("", kLength), kDdpCall), rank);
    throw UnlikeModels(static_cast<yoke_status>(refused->hash),
                       format("%s: the call of %s was refused: %s", kDdpCall,
                              name_of(group, static_cast<size_t>(rank)).c_str(), why.c_str()));
}

// Raises UnlikeModels if ranks of the same former group bring unlike modules. If the modules had the same shape, they
// would take each other's values.
void check_one_order(Group &group, const std::vector<About> &all, const std::string &name)
{
    const auto unlike = first_unlike(all);
    if (!unlike) return;
    const Numbers names = gathered(group, packed(name, kLength), kDdpCall);
    const auto shown = [&](size_t rank) {
        return format("on %s module %lld, whose first parameter is '%s'",
                      name_of(group, rank).c_str(), static_cast<long long>(all[rank].module),
                      told_by(names, static_cast<int32_t>(rank)).c_str());
    };
    throw UnlikeModels(
        YOKE_E_STATE,
        format(
            "regroup: the ranks regroup different modules of their former group, %s, and %s; regroup the modules in the same order on all ranks",
            shown(unlike->first).c_str(), shown(unlike->second).c_str()));
}

// Raises UnlikeModels with the first difference between any rank's model and rank 0's; returns if there is no
// difference.
void tell_difference(Group &group, const std::string &mine, int64_t length_of_first)
{
    const auto length = static_cast<size_t>(length_of_first) / sizeof(int64_t) + 1;
    const Numbers first = from_rank(group, 0, packed(mine, length), kDdpCall);
    const std::string difference = first_difference(mine, unpacked(first.data(), length));
    const Numbers differences = gathered(group, packed(difference, kLength), kDdpCall);
    for (int32_t rank = 0; rank < group.size(); ++rank) {
        const std::string told = told_by(differences, rank);
        if (told.empty()) continue;
        throw UnlikeModels(
            YOKE_E_VALUE,
            format(
                "%s: the ranks have different modules or options: %s on %s; give all ranks the same",
                kDdpCall, told.c_str(), name_of(group, static_cast<size_t>(rank)).c_str()));
    }
}

}  // namespace

void compare_models(Group &group, const WrappedModule &module, const ComparedOptions &options,
                    FormerPlace former)
{
    DeviceNames names;
    std::string mine = lines_of(options);
    mine += lines_of(module.all_params(), "the parameter", names);
    mine += lines_of(module.buffers(), kBuffer, names);
    const std::vector<About> all =
        all_about(group, {hash_of(mine), std::ssize(mine), former.group, former.module});
    check_all_have_models(group, all);
    check_all_wrap_or_none(group, all);
    check_one_order(group, all, module.all_params()[0].name);
    const auto is_as_first = [&](const About &each) {
        return each.hash == all[0].hash && each.length == all[0].length;
    };
    if (!std::ranges::all_of(all, is_as_first)) tell_difference(group, mine, all[0].length);
}

}  // namespace yoke
