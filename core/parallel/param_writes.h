// param_writes.h: which parameters of a module were written since a backward, as an optimizer does, and in the steps
// before that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace yoke {

class ParamWrites {
public:
    struct Param {
        uint32_t version = 0;
        bool has_gradient = false;
    };
    // Of all modules of a group, added up. An optimizer may leave some parameters alone, and several may take turns: so
    // a step is whole where all that have a gradient were written, or the same as in one of the last steps, with
    // gradients alike, and more than these in none of them.
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

    void reserve(size_t params)
    {
        left_.reserve(params);
        before_.resize(params);
    }

    // A backward has ended, and left parameter i as now(i); there is room.
    template <class Now>
    void end_backward(size_t params, Now &&now)
    {
        if (!left_.empty()) {
            known_ = push(known_, true);
            for (size_t i = 0; i < params; ++i) {
                Steps &steps = before_[i];
                steps.written = push(steps.written, now(i).version != left_[i].version);
                steps.had_gradient = push(steps.had_gradient, left_[i].has_gradient);
            }
        }
        left_.clear();
        for (size_t i = 0; i < params; ++i) left_.push_back(now(i));
    }

    // version(i) is that of parameter i by now.
    template <class Version>
    void add_to(Since &all, Version &&version) const
    {
        if (left_.empty()) return;
        all.like_ &= known_;
        all.within_ &= known_;
        for (size_t i = 0; i < left_.size(); ++i) {
            const uint32_t since = version(i) - left_[i].version;
            const Steps &steps = before_[i];
            all.count_ += since;
            all.is_all_ &= since > 0 || !left_[i].has_gradient;
            all.like_ &= where(steps.written, since > 0);
            all.like_ &= where(steps.had_gradient, left_[i].has_gradient);
            if (since > 0) all.within_ &= steps.written;
        }
    }

    // For a module that goes on for another one.
    void go_on_from(const ParamWrites &former)
    {
        before_ = former.before_;
        known_ = former.known_;
    }

private:
    // A bit for each of the last steps, the latest lowest.
    struct Steps {
        uint8_t written = 0, had_gradient = 0;
    };
    static uint8_t push(uint8_t steps, bool last)
    {
        return static_cast<uint8_t>(steps << 1 | last);
    }
    static uint8_t where(uint8_t steps, bool so)
    {
        return so ? steps : static_cast<uint8_t>(~steps);
    }

    std::vector<Param> left_;    // by parameter, as the last backward has left it
    std::vector<Steps> before_;  // by parameter
    uint8_t known_ = 0;          // of the steps of these
};

}  // namespace yoke
