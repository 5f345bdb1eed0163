// Shared tensors, events and streams, blocks taken by a thread and given back by another, the number of threads.
#include "scene.h"

#include <cstring>
#include <mutex>

namespace hostile {

namespace {

constexpr int64_t kRows = 12, kColumns = 20;

// A shared tensor, with views and a count of references.
class Tensors final : public Scene {
public:
    void piece(Dice &dice) override
    {
        TensorHeld held, other;
        switch (dice.below(10)) {
            case 0:
                TRUE(ONLY_VALUE(shared_) == 2);
                break;
            case 1:
                if (OK(yoke_add(shared_, shared_, held.out()))) TRUE(ONLY_VALUE(held) == 4);
                break;
            case 2:
                if (OK(yoke_tensor_detach(shared_, held.out())))
                    TRUE(yoke_shares_memory(held, shared_) == 1);
                break;
            case 3:
                look();
                break;
            case 4: {
                const yoke_index row{YOKE_INDEX_INT, 0, 3, 0, 0, nullptr};
                if (OK(yoke_tensor_index(shared_, &row, 1, held.out())))
                    TRUE(ONLY_VALUE(held) == 2 &&
                         yoke_tensor_storage_id(held) == yoke_tensor_storage_id(shared_));
                break;
            }
            case 5:
                hand_over(dice);
                break;
            case 6:
                through_dlpack();
                break;
            case 7:
                if (OK(yoke_tensor_to(shared_, nullptr, YOKE_F64, held.out())) &&
                    OK(yoke_tensor_to(held, nullptr, YOKE_F32, other.out())))
                    TRUE(ONLY_VALUE(other) == 2);
                break;
            default:
                yoke_tensor_release(yoke_tensor_retain(shared_));
        }
    }

    void check() override { TRUE(ONLY_VALUE(shared_) == 2); }

private:
    void look() const
    {
        TRUE(yoke_tensor_ndim(shared_) == 2 && yoke_tensor_numel(shared_) == kRows * kColumns);
        TRUE(yoke_tensor_shape(shared_)[0] == kRows && yoke_tensor_strides(shared_)[1] == 1);
        TRUE(yoke_tensor_is_contiguous(shared_) == 1 && yoke_tensor_data(shared_) != nullptr);
        TRUE(yoke_tensor_storage_nbytes(shared_) >= yoke_tensor_nbytes(shared_));
        TRUE(yoke_live_tensor_count() > 0);
    }

    // Takes another thread's tensor, perhaps with the last reference, and leaves a tensor there.
    void hand_over(Dice &dice)
    {
        TensorHeld mine = full(kRows, kColumns, 2);
        {
            const std::lock_guard lock(mutex_);
            std::swap(mine, left_[dice.below(4)]);
        }
        if (mine) TRUE(ONLY_VALUE(mine) == 2);
    }

    void through_dlpack() const
    {
        void *managed = nullptr;
        TensorHeld back;
        if (OK(yoke_tensor_to_dlpack(shared_, 1, nullptr, &managed)) &&
            OK(yoke_tensor_from_dlpack(managed, 1, back.out())))
            TRUE(ONLY_VALUE(back) == 2);
    }

    const TensorHeld shared_ = full(kRows, kColumns, 2);
    std::mutex mutex_;
    TensorHeld left_[4];
};

// Events recorded by a single thread at a time, under a lock of the program, while all others query the events.
class Events final : public Scene {
public:
    Events()
    {
        for (EventHeld &event : events_) OK(yoke_event_create(1, event.out()));
        OK(yoke_current_stream(nullptr, stream_.out()));
    }

    void piece(Dice &dice) override
    {
        int32_t told = 0;
        double seconds = 0;
        yoke_event *const event = events_[dice.below(2)];
        switch (dice.below(8)) {
            case 0: {
                const std::lock_guard lock(mutex_);
                OK(yoke_event_record(
                    event, dice.below(2) ? static_cast<yoke_stream *>(stream_) : nullptr));
                break;
            }
            case 1:
                if (OK(yoke_event_query(event, &told))) TRUE(told == 1);
                break;
            case 2:
                OK(yoke_event_synchronize(event));
                break;
            case 3:
                OK(yoke_stream_wait_event(stream_, event));
                break;
            case 4:  // STATE before both were recorded
                IN_ORDER(yoke_event_elapsed(events_[0], events_[1], &seconds));
                TRUE(seconds > -1000 && seconds < 1000);
                break;
            case 5:
                OK(yoke_stream_synchronize(stream_));
                if (OK(yoke_stream_query(stream_, &told))) TRUE(told == 1);
                break;
            case 6: {
                StreamHeld current;
                OK(yoke_set_stream(stream_));
                if (OK(yoke_current_stream(nullptr, current.out())))
                    TRUE(yoke_stream_equal(current, stream_) == 1);
                break;
            }
            default:
                yoke_event_release(yoke_event_retain(event));
                yoke_stream_release(yoke_stream_retain(stream_));
        }
    }

private:
    std::mutex mutex_;
    EventHeld events_[2];
    StreamHeld stream_;
};

// Blocks that any later thread gives back. Meanwhile threads read the statistics and empty the cache.
class Blocks final : public Scene {
public:
    ~Blocks() override
    {
        for (const Block &block : left_) give_back(block);
    }

    void piece(Dice &dice) override
    {
        int64_t allocated = 0, reserved = 0, most = 0;
        switch (dice.below(12)) {
            case 0:
                OK(yoke_memory_allocated(nullptr, &allocated));
                OK(yoke_memory_reserved(nullptr, &reserved));
                TRUE(allocated >= 0 && reserved >= 0);
                break;
            case 1:
                OK(yoke_max_memory_allocated(nullptr, &most));
                OK(yoke_max_memory_reserved(nullptr, &most));
                TRUE(most >= 0);
                break;
            case 2:
                OK(yoke_reset_peak_memory_stats(nullptr));
                break;
            case 3:
                OK(yoke_empty_cache(nullptr));
                break;
            case 4:
                if (dice.below(4) == 0) {
                    const int32_t caching = yoke_is_caching();
                    OK(yoke_set_caching(0));
                    OK(yoke_set_caching(caching));
                }
                break;
            case 5:
                if (dice.below(16) == 0) OK(yoke_shutdown(10));
                break;
            default:
                exchange(dice);
        }
    }

private:
    struct Block {
        unsigned char *data = nullptr;
        size_t bytes = 0;
        unsigned char mark = 0;
    };

    void exchange(Dice &dice)
    {
        static constexpr size_t kSizes[] = {16, 700, 4096, 60000, 1 << 20};
        Block block{nullptr, kSizes[dice.below(5)], static_cast<unsigned char>(dice.below(256))};
        void *data = nullptr;
        if (!OK(yoke_alloc(static_cast<int64_t>(block.bytes), nullptr, nullptr, &data))) return;
        block.data = static_cast<unsigned char *>(data);
        block.data[0] = block.data[block.bytes - 1] = block.mark;
        {
            const std::lock_guard lock(mutex_);
            std::swap(block, left_[dice.below(6)]);
        }
        give_back(block);
    }

    static void give_back(const Block &block)
    {
        if (!block.data) return;
        TRUE(block.data[0] == block.mark && block.data[block.bytes - 1] == block.mark);
        OK(yoke_free(block.data));
    }

    std::mutex mutex_;
    Block left_[6];
};

// Products with equal bits for every number of threads. The number changes meanwhile.
class Numbers final : public Scene {
public:
    Numbers()
    {
        const int64_t shape[] = {kSide, kSide};
        DeviceHeld cpu;
        OK(yoke_device_open("cpu", cpu.out()));
        OK(yoke_randn(shape, 2, YOKE_F32, cpu, nullptr, x_.out()));
        wanted_ = product();
    }
    ~Numbers() override { OK(yoke_set_num_threads(0)); }

    void piece(Dice &dice) override
    {
        if (dice.below(4) == 0) {
            OK(yoke_set_num_threads(static_cast<int32_t>(dice.below(5))));
            TRUE(yoke_get_num_threads() >= 1);
        } else {
            const std::vector<float> got = product();
            TRUE(!std::memcmp(got.data(), wanted_.data(), got.size() * sizeof(float)));
        }
    }

private:
    static constexpr int64_t kSide = 96;
    std::vector<float> product() const
    {
        TensorHeld made, sum;
        OK(yoke_matmul(x_, x_, made.out()));
        const int64_t axis = 0;
        OK(yoke_sum(made, &axis, 1, 0, YOKE_NONE, sum.out()));
        return values_of(sum);
    }

    TensorHeld x_;
    std::vector<float> wanted_;
};

// Random draws while other threads seed the process; a thread's own stream goes on undisturbed.
class Draws final : public Scene {
public:
    void piece(Dice &dice) override
    {
        uint64_t seed = 0, offset = 0;
        switch (dice.below(4)) {
            case 0:
                OK(yoke_manual_seed(dice.below(100)));
                break;
            case 1: {
                const uint64_t own = dice.below(100);
                OK(yoke_set_rng_state(own, 0));
                const std::vector<float> once = draw();
                OK(yoke_set_rng_state(own, 0));
                TRUE(once == draw());
                if (OK(yoke_get_rng_state(&seed, &offset))) TRUE(seed == own && offset > 0);
                break;
            }
            default:
                draw();
        }
    }

private:
    static std::vector<float> draw()
    {
        const int64_t shape[] = {40};
        TensorHeld made;
        OK(yoke_randn(shape, 1, YOKE_F32, nullptr, nullptr, made.out()));
        return values_of(made);
    }
};

template <class T>
std::unique_ptr<Scene> make()
{
    return std::make_unique<T>();
}

}  // namespace

std::span<const SceneKind> memory_scenes()
{
    static constexpr SceneKind kScenes[] = {
        {"tensors", make<Tensors>, 100}, {"events", make<Events>, 100},
        {"blocks", make<Blocks>, 100},   {"numbers", make<Numbers>, 50},
        {"draws", make<Draws>, 50},
    };
    return kScenes;
}

}  // namespace hostile
