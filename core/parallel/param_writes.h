// param_writes.h: writes to a module's parameters since a backward, usually by an optimizer, and in the steps before.
#pragma once

#include "core/comm/group.h"
#include "core/parallel/wrapped_module.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace yoke {

// Versions and gradients of a module's parameters after its last backward, and the writes of earlier steps. Any
// thread may call the functions, which lock: in a group of a single rank, several threads may run a module's backward
// at once.
class ParamWrites {
public:
    // Sum of writes since the last backward, over all modules of a group. An optimizer may leave out some parameters,
    // and several optimizers may alternate. So a step is whole if all parameters with a gradient were written. It is
    // also whole if any of the last steps had the same writes and gradients, and no such step wrote more beside them.
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

    // Notes versions and gradients of the parameters after a backward. `calls`: number of the group's calls on
    // devices until then.
    void end_backward(uint64_t calls);
    // Notes that the parameters depend on calls on devices, which write them. `calls` is the number of the last such
    // call.
    void note_given(uint64_t calls);
    // Adds this module's writes since the last backward to `all`.
    void add_to(Since &all) const;

    // Returns how many of the group's calls on devices, from the first on, must succeed. If a call of these fails,
    // the parameters were written from values that were not reduced.
    uint64_t calls_behind() const;
    // Notes that the script knows of the group's failure; with `is_refused`, also that the parameters are invalid.
    void note_told(bool is_refused);
    // Returns whether the script has written all parameters since note_told; false before note_told. Before a
    // refusal, only wholly new values count, such as from a file, because a script may step its optimizer once more.
    bool are_loaded() const;
    // Takes over what is known of the module's steps in its former group.
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
    // Locked before the locks of leaves.
    mutable std::mutex mutex_;
    std::vector<Param> left_;    // by parameter, after the last backward
    std::vector<Steps> before_;  // by parameter
    uint8_t known_ = 0;          // bits that are valid in `before_`
    // Number of calls at the end of the last backward; number of calls on which the parameters of that moment depend.
    uint64_t calls_ = 0, behind_ = 0;
    std::vector<uint32_t> told_;  // versions, by parameter; empty: the script knows of no failure
    bool is_refused_ = false;
};

// Notes the parameters of all modules of the group after a backward that counts. Notes `own` alone if memory is
// missing.
void end_backward_of_all(Group &group, ParamWrites &own) noexcept;
// Notes for all modules of a failed group that the script knows of the failure. Does nothing if the group has not
// failed.
void note_told_of_all(Group &group, bool is_refused) noexcept;

}  // namespace yoke
