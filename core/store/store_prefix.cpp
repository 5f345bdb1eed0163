// A view passes everything on under longer keys, with the patience of its own caller: so its abort ends its calls
// alone.
#include "core/store/store.h"

namespace yoke {

PrefixStore::PrefixStore(std::shared_ptr<Store> of, std::string prefix)
    : Store(&of->stop()), of_(std::move(of)), prefix_(std::move(prefix) + "/")
{
}

std::optional<uint64_t> PrefixStore::when_set(std::string_view key, Then then)
{
    return of_->when_set(full(key), std::move(then));
}

bool PrefixStore::offer(std::string_view key, std::string_view value)
{
    return of_->offer(full(key), value);
}

void PrefixStore::forget(std::string_view key, uint64_t number) noexcept
{
    of_->forget(full(key), number);
}

void PrefixStore::do_set(const std::string &key, std::string_view value, const Patience &patience)
{
    of_->do_set(full(key), value, patience);
}

std::vector<std::string> PrefixStore::do_await(const Keys &keys, bool wants_values,
                                               const Patience &patience)
{
    return of_->do_await(full(keys), wants_values, patience);
}

Store::Keys PrefixStore::full(const Keys &keys) const
{
    Keys all;
    for (const std::string &key : keys) all.push_back(full(key));
    return all;
}

int64_t PrefixStore::do_add(const std::string &key, int64_t delta, const Patience &patience)
{
    return of_->do_add(full(key), delta, patience);
}

std::optional<std::string> PrefixStore::do_try_get(const std::string &key, const Patience &patience)
{
    return of_->do_try_get(full(key), patience);
}

std::string PrefixStore::do_set_once(const std::string &key, std::string_view value,
                                     const Patience &patience)
{
    return of_->do_set_once(full(key), value, patience);
}

void PrefixStore::do_remove(const std::string &key, const Patience &patience)
{
    of_->do_remove(full(key), patience);
}

void PrefixStore::do_remove_all(const Keys &keys, const Patience &patience)
{
    of_->do_remove_all(full(keys), patience);
}

}  // namespace yoke
