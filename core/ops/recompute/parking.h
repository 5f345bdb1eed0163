// parking.h: what checkpoint scopes have in host memory, in the order in which they closed: backward comes the other
// way and brings one scope's back while another's is walked.
#pragma once

#include "core/tensor/parked.h"

#include <mutex>
#include <vector>

namespace yoke {

// Of one scope. The row holds no scope, and none of it that is gone.
class Parking final : public RefCounted {
public:
    // Behind the last one of the process.
    static Ref<Parking> add(std::vector<Ref<Parked>> parked);
    // What was parked before; null: nothing that is still there.
    Ref<Parking> earlier();
    std::vector<Ref<Parked>> parked();
    // The scope goes.
    void clear() noexcept;

private:
    explicit Parking(std::vector<Ref<Parked>> parked) : parked_(std::move(parked)) {}

    std::mutex mutex_;
    std::vector<Ref<Parked>> parked_;
    Ref<Parking> earlier_;
};

}  // namespace yoke
