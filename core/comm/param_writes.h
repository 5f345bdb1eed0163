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
    // Of all modules of a group, added up.
    struct Since {
        int64_t count = 0;
        bool is_all = true;   // all that have a gradient
        uint8_t like = 0xff;  // a bit for each of the last steps: the same were written then
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
            for (size_t i = 0; i < params; ++i)
                before_[i] = push(before_[i], now(i).version != left_[i].version);
        }
        left_.clear();
        for (size_t i = 0; i < params; ++i) left_.push_back(now(i));
    }

    // version(i) is that of parameter i by now.
    template <class Version>
    void add_to(Since &all, Version &&version) const
    {
        if (left_.empty()) return;
        all.like &= known_;
        for (size_t i = 0; i < left_.size(); ++i) {
            const uint32_t since = version(i) - left_[i].version;
            all.count += since;
            all.is_all &= since > 0 || !left_[i].has_gradient;
            all.like &= since > 0 ? before_[i] : static_cast<uint8_t>(~before_[i]);
        }
    }

    // For a module that goes on for another one.
    void go_on_from(const ParamWrites &former)
    {
        before_ = former.before_;
        known_ = former.known_;
    }

private:
    static uint8_t push(uint8_t steps, bool last)
    {
        return static_cast<uint8_t>(steps << 1 | last);
    }

    std::vector<Param> left_;  // by parameter, as the last backward has left it
    std::vector<uint8_t>
        before_;         // by parameter: a bit for each of the last steps, the latest lowest
    uint8_t known_ = 0;  // of these
};

}  // namespace yoke
