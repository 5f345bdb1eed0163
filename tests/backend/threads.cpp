// Ranks that are threads of this process.
#include "ranks.h"

#include <cstring>
#include <thread>

namespace yoke::test {

const bool kEngineKnowsDeaths = true;

yoke_status ThreadRendezvous::gather(int rank, const void *mine, uint64_t bytes, void *all)
{
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_ == 0; });
    board_[static_cast<size_t>(rank)].assign(static_cast<const char *>(mine), mine ? bytes : 0);
    if (++came_ == size_) {
        left_ = size_;
        came_ = 0;
        changed_.notify_all();
    }
    changed_.wait(lock, [&] { return left_ > 0; });
    for (size_t i = 0; bytes && i < board_.size(); ++i) {
        board_[i].resize(bytes);  // a rank that gave fewer bytes gets zeros
        memcpy(static_cast<char *>(all) + i * bytes, board_[i].data(), bytes);
    }
    if (--left_ == 0) changed_.notify_all();
    changed_.wait(lock, [&] { return left_ == 0; });
    return YOKE_OK;
}

void with_uninitialised_ranks(const yoke_backend_comm &engine, void *device, const Ranks &ranks,
                              const Body &body)
{
    ThreadRendezvous rendezvous(ranks.size);
    char id[YOKE_COMM_ID_BYTES];
    ASSERT_DONE(engine.unique_id(id, 20));
    std::vector<std::thread> threads;
    for (int i = 0; i < ranks.size; ++i)
        threads.emplace_back([&, i] {
            SCOPED_TRACE("rank " + std::to_string(i));
            Rank rank(engine, device, i, ranks, rendezvous, id);
            body(rank);
        });
    for (std::thread &thread : threads) thread.join();
}

void Collectives::SetUp()
{
    Contract::SetUp();
    if (!IsSkipped() && (!table_->comm || table_->comm->is_late))
        GTEST_SKIP() << GetParam().kind << " has no engine whose ranks can be threads";
}

}  // namespace yoke::test
