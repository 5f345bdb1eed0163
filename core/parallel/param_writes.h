// param_writes.h: which parameters of a module were written since a backward, as an optimizer does, and in the steps
// before that.
#pragma once

#include "core/comm/group.h"
#include "core/parallel/wrapped_module.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace yoke {

// Versions and gradients of a module's parameters after its last backward, and what the steps before have written. Any
// thread calls it, under its own lock: alone in its group, a module may be gone back through by several threads at
// once.
class ParamWrites {
public:
    // Writes since the last backward, of all modules of a group added up. An optimizer may leave some parameters alone,
    // and several may take turns. So a step is whole if all parameters with a gradient were written. It is whole too if
    // the same were written as in one of the last steps, with gradients alike, and more than these in none of them.
    class Since {
    public:
        int64_t count() const { return count_; }
        bool is_whole() const { return is_all_ || (like_ != 0 && (within_ & ~like_) == 0); }

    private:
        friend class ParamWrites;
        int64_t count_ = 0;
        bool is_all_ = true;
        uint8_t like_ = 0xff, within_ = 0xff;  // a bit for each of the last steps
    };

    explicit ParamWrites(const WrappedModule &module);

    // Notes the parameters as a backward that has ended has left them. `calls`: of the group on devices until then.
    void end_backward(uint64_t calls);
    // Notes that calls on devices, the last of which is the one of that number, write parameters.
    void note_given(uint64_t calls);
    // Adds the writes since the last backward.
    void add_to(Since &all) const;

    // Returns how many calls of the group on devices must end well. Else the parameters were written from values that
    // no call has reduced.
    uint64_t calls_behind() const;
    // Notes that the script knows that the group has failed; `is_refused`: and that the parameters are no good.
    void note_told(bool is_refused);
    // Returns whether the script has written all parameters since then. Before it was refused, values alone count that
    // it has given, as those of a file: a script may step its optimizer once more.
    bool are_loaded() const;
    // Takes over the steps of the module in its former group.
    void go_on_from(const ParamWrites &former);

private:
    bool is_written() const;  // since the last backward; with the lock held
    struct Param {
        uint32_t version = 0;
        bool has_gradient = false;
    };
    // A bit for each of the last steps, the latest lowest.
    struct Steps {
        uint8_t written = 0, had_gradient = 0;
    };

    const WrappedModule &module_;
    // Comes before the locks of leaves.
    mutable std::mutex mutex_;
    std::vector<Param> left_;    // by parameter, as the last backward has left it
    std::vector<Steps> before_;  // by parameter
    uint8_t known_ = 0;          // of the steps of these
    // Calls before the last backward ended; those behind which the parameters were written that it left.
    uint64_t calls_ = 0, behind_ = 0;
    std::vector<uint32_t> told_;  // versions, by parameter; empty: the script knows of no failure
    bool is_refused_ = false;
};

// Notes the parameters of all modules of the group after a backward that counts. Notes `own` alone if memory is
// missing.
void end_backward_of_all(Group &group, ParamWrites &own) noexcept;
// Notes for all modules of a group that has failed that the script knows it. Does nothing in a group that goes on.
void note_told_of_all(Group &group, bool is_refused) noexcept;

}  // namespace yoke
