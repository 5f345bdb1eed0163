// Ranks that are threads of one process find each other in the store that they share.
#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/comm/reunion.h"
#include "core/comm/reunion_word.h"

namespace yoke {

namespace {

// The word of the group that its ranks have made: there is no other one of theirs.
constexpr const char *kMade = "shrink/made";

// Who tries again where others have gone on finds their store, and in it why theirs has failed on him.
Members made_by(const Members &of, const Word &word)
{
    Members made = members_of(of, word);
    made.store = std::make_shared<PrefixStore>(
        of.store, format("shrunk/%llu", static_cast<unsigned long long>(word.number)));
    return made;
}

}  // namespace

Members reunite_threads(const Members &of, int attempt, Deadline deadline)
{
    const Deadline at_once = Deadline::after(0);
    if (const auto gone_on = of.store->try_get(kMade, at_once))
        return made_by(of, Word::decode(*gone_on));
    PrefixStore store(of.store, format("shrink/%d", attempt));
    Store::Keys all;
    for (int32_t each = 0; each < of.size(); ++each) all.push_back(here(each));
    store.set(all[static_cast<size_t>(of.rank)], "", at_once);
    try {
        store.wait(all, deadline);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_TIMEOUT) throw;
    }
    Word word;
    word.number = unguessable_number();
    for (int32_t each = 0; each < of.size(); ++each)
        if (store.try_get(all[static_cast<size_t>(each)], at_once)) word.ranks.push_back(each);
    return made_by(of, Word::decode(store.set_once(kWord, word.encode(), at_once)));
}

// Of groups that were made in several tries at a time the first counts.
void go_on_as_threads(const Members &of, const Members &made)
{
    Word word;
    word.number = made.number;
    word.ranks = made.met_as;
    const std::string stands = of.store->set_once(kMade, word.encode(), Deadline::after(0));
    (void)members_of(of, Word::decode(stands));
}

}  // namespace yoke
