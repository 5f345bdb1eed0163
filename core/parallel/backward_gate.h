// backward_gate.h: the gate of a module. Only a single backward at a time may reduce the module's gradients.
#pragma once

#include "core/parallel/step_terms.h"

#include <cstdint>
#include <mutex>

namespace yoke {

// Settings of a script for the next backward, and results of the last backward. Any thread calls the gate.
//
// Order of locks: state_mutex_, then mutex_. No function calls other code with mutex_ held. A holder of `hold` uses
// the compression with state_mutex_ held, so no backward begins meanwhile.
class BackwardGate {
public:
    // Lets a backward in, and returns its terms, which stay fixed. `was_told`: when the backward's oldest op was
    // recorded, the group's failure was already reported to this rank. Raises YOKE_E_STATE while another backward is
    // under way.
    StepTerms claim(bool was_told);
    // Notes that the backward has reduced all gradients. `root` is the first rank with data.
    void note_reduced(const StepTerms &terms, int32_t root);
    // Lets the backward out. `has_unsynced`: the backward has added up gradients without a reduction.
    void release(bool has_unsynced) noexcept;

    void set_sync(bool is_on);
    bool is_sync() const;
    void set_weight(double n);

    // Closes the gate for good: later backward passes reduce no gradients. The group has failed, and the script knows
    // the failure.
    void close();
    bool is_closed() const;
    // Closes the gate for a refused backward, and returns true. Returns false, and does not close, if this backward
    // would not have reduced, or while another thread's backward goes on.
    bool refuse();
    // Closes the gate of a module before another reducer takes over the module. `resting` comes from hold_resting.
    void retire(const std::unique_lock<std::mutex> &resting);
    bool is_retired() const;

    // Returns a lock, during whose life no backward begins, so the holder may use the state of the compression.
    [[nodiscard]] std::unique_lock<std::mutex> hold() const;
    // Returns a lock, during whose life no backward begins. Raises YOKE_E_STATE while a backward is under way.
    [[nodiscard]] std::unique_lock<std::mutex> hold_resting(const char *call) const;

    // Notes that this rank is in a join. Raises YOKE_E_STATE if this rank is in a join already, or within no_sync.
    void begin_join();
    struct Leave {
        bool is_sync, has_unsynced;
    };
    // Notes that this rank is out of data, so its weight is 0 from now on. Returns whether sync is on, and whether
    // gradients were added up without a reduction. Raises YOKE_E_STATE if this rank is in no join.
    Leave leave_join();
    // Notes that this rank is in no join any more. Returns the first rank with data in the join's last backward; -1
    // if there was no backward.
    int32_t end_join();

    // Takes over the weight and the sync setting from the gate of a former reducer of the module.
    void go_on_from(const BackwardGate &former);

private:
    mutable std::mutex state_mutex_;
    mutable std::mutex mutex_;  // guards the rest
    bool is_walking_ = false, is_sync_ = true;
    bool has_unsynced_ = false;  // gradients added up since the last reduction
    bool is_closed_ = false, is_retired_ = false;
    double weight_ = 1;
    Presence presence_ = Presence::kPlain;
    int32_t joined_root_ = -1;
};

}  // namespace yoke
