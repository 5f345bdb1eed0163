#include "batch.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace hostile {

namespace {

// Compares the kind of two failures. Numbers are left out, because they differ if fewer calls are made.
bool alike(const std::string &a, const std::string &b)
{
    const auto words = [](const std::string &text) {
        std::string left;
        for (char c : text)
            if (!std::isdigit(static_cast<unsigned char>(c))) left += c;
        return left.substr(0, 60);
    };
    return words(a) == words(b);
}

}  // namespace

std::vector<int64_t> shrink(const Options &options, uint64_t seed, const Outcome &outcome)
{
    Options quick = options;
    quick.patience = std::min(options.patience, 10.0);
    const auto fails = [&](const std::vector<int64_t> &kept) {
        return alike(run_batch(quick, seed, outcome.number + 1, &kept, nullptr).wrong,
                     outcome.wrong);
    };
    // First searches the shortest tail of the calls that still fails, then leaves out halves, quarters, … of the
    // tail.
    std::vector<int64_t> kept;
    for (int64_t length = 1;; length *= 2) {
        kept.clear();
        for (int64_t i = std::max<int64_t>(0, outcome.number + 1 - length); i <= outcome.number;
             ++i)
            kept.push_back(i);
        if (fails(kept)) break;
        if (length > outcome.number) return {};  // not even all of them fail again
    }
    for (size_t part = (kept.size() + 1) / 2; part > 0; part = part == 1 ? 0 : (part + 1) / 2)
        for (size_t at = 0; at < kept.size();) {
            std::vector<int64_t> fewer(kept.begin(),
                                       kept.begin() + static_cast<std::ptrdiff_t>(at));
            fewer.insert(
                fewer.end(),
                kept.begin() + static_cast<std::ptrdiff_t>(std::min(at + part, kept.size())),
                kept.end());
            if (!fewer.empty() && fails(fewer))
                kept = fewer;
            else
                at += part;
        }
    return kept;
}

}  // namespace hostile
