// Ranks that are threads of one process find each other in the store that they share.
#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/comm/reunion.h"
#include "core/comm/reunion_word.h"

namespace yoke {

Members reunite_threads(const Members &of, int attempt, Deadline deadline)
{
    PrefixStore store(of.store, format("shrink/%d", attempt));
    const Deadline at_once = Deadline::after(0);
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
    word = Word::decode(store.set_once(kWord, word.encode(), at_once));
    Members made = members_of(of, word);
    made.store = std::make_shared<PrefixStore>(of.store, format("shrunk/%d", attempt));
    return made;
}

}  // namespace yoke
