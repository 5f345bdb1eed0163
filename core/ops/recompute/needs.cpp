#include "core/ops/recompute/needs.h"

#include "core/ops/recompute/recording.h"

#include <algorithm>

namespace yoke {

// Walks the calls from the last to the first: if a call makes a needed value, the values read by the call are needed
// too.
Needs::Needs(const Recording &recording, const Item *wanted, bool as_if_nothing_held)
{
    for (const Item &item : recording.items())
        if (&item == wanted || (item.holders.load(std::memory_order_relaxed) && !item.is_foreign &&
                                (as_if_nothing_held || !item.is_kept())))
            uses.emplace(item.value.get(), 1);
    const auto all = recording.calls();
    for (size_t i = all.size(); i-- > 0;) {
        LoggedCall &call = *all[i];
        const auto read = call.sources();
        const auto writes = [&](const Source &source) {
            return call.writes(static_cast<size_t>(&source - read.data()));
        };
        const bool is_needed = std::ranges::any_of(read, [&](const Source &source) {
            return source.value.present() && writes(source) && uses.contains(source.value.get());
        });
        if (!is_needed) continue;
        calls.push_back(&call);
        for (const Source &source : read) {
            const Value *value = source.value.get();
            // A call makes its own results, so it does not use their former contents.
            if (!value || value->maker == call.position) continue;
            Item *item = recording.find_item(*value);
            if (item && item->is_kept() && !as_if_nothing_held && !writes(source))
                sources.push_back(item);
            else
                ++uses[value];
        }
    }
    std::ranges::reverse(calls);
}

}  // namespace yoke
