// Makes a view. A view passes every call on with longer keys, and with its own caller's deadline and stop. So an
// abort of the view ends only calls of the view.
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

std::vector<std::string> PrefixStore::serve(const Request &request, const Patience &patience)
{
    Request full_request = request;
    for (std::string &key : full_request.keys) key = full(key);
    return of_->serve(full_request, patience);
}

}  // namespace yoke
