// Shrink for ranks in threads of one process, which find each other in the common store.
#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/rendezvous/shrink_rendezvous.h"
#include "core/rendezvous/shrink_word.h"

#include <algorithm>

namespace yoke {

namespace {

// Key of the word about the group that the ranks have made. No other group can follow.
constexpr const char *kShrinkMadeKey = "shrink/made";

// Returns the members of the word's group, with a store of their own. A thread may try again after the others have
// gone on. The thread then finds the others' store, with the cause of the failure on this thread. Raises YOKE_E_COMM
// if the word does not name this rank.
Members made_by(const Members &of, const Word &word)
{
    Members made = members_from(of, word);
    made.store = std::make_shared<PrefixStore>(
        of.store, format("shrunk/%llu", static_cast<unsigned long long>(word.number)));
    return made;
}

PrefixStore keys_of(const Members &of, int attempt)
{
    return {of.store, format("shrink/%d", attempt)};
}

std::vector<int32_t> there(Store &store, int32_t size)
{
    std::vector<int32_t> found;
    for (int32_t each = 0; each < size; ++each)
        if (store.try_get(here(each), Deadline::after(0))) found.push_back(each);
    return found;
}

// Waits until the deadline for the word of another thread. The last thread to join makes the group, or the first
// thread whose time is over, even if other threads have time left.
void await_word(Store &store, Deadline deadline)
try {
    store.wait({kWord}, deadline);
} catch (const Error &error) {
    if (error.status() != YOKE_E_TIMEOUT) throw;
}

}  // namespace

Members reunite_threads(const Members &of, int attempt, Deadline deadline)
{
    const Deadline at_once = Deadline::after(0);
    if (const auto gone_on = of.store->try_get(kShrinkMadeKey, at_once))
        return made_by(of, Word::decode(*gone_on));
    PrefixStore store = keys_of(of, attempt);
    store.set(here(of.rank), "", at_once);
    Word word;
    word.number = unguessable_number();
    word.ranks = there(store, of.size());
    if (word.ranks.size() < of.ranks.size()) {
        await_word(store, deadline);
        word.ranks = there(store, of.size());
    }
    return made_by(of, Word::decode(store.set_once(kWord, word.encode(), at_once)));
}

void leave_threads(const Members &of, int attempt, const Cause &why)
{
    const Deadline at_once = Deadline::after(0);
    PrefixStore store = keys_of(of, attempt);
    store.remove(here(of.rank), at_once);
    const auto said = store.try_get(kWord, at_once);
    const Word word = said ? Word::decode(*said) : Word();
    if (std::ranges::count(word.ranks, of.rank))
        made_by(of, word).store->set_once(kCauseKey, why.encode(), at_once);
}

// Publishes the group that was made. If several attempts made groups at the same time, the first group counts.
void go_on_as_threads(const Members &of, const Members &made)
{
    Word word;
    word.number = made.number;
    word.ranks = made.met_as;
    const std::string stands =
        of.store->set_once(kShrinkMadeKey, word.encode(), Deadline::after(0));
    (void)members_from(of, Word::decode(stands));
}

}  // namespace yoke
