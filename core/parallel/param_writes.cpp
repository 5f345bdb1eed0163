#include "core/parallel/param_writes.h"

#include "core/parallel/reducer.h"

#include <exception>
#include <string_view>

namespace yoke {

namespace {

uint8_t push(uint8_t steps, bool last)
{
    return static_cast<uint8_t>(steps << 1 | last);
}

// Returns whether a writer replaces all former values. Null is a copy by the host program.
bool gives_values(const char *writer)
{
    using namespace std::string_view_literals;
    return !writer || writer == "copy_"sv || writer == "fill_"sv || writer == "broadcast"sv;
}

// Returns a bit for each step whose bit in `steps` is `so`: `steps` itself, or its inverse.
uint8_t where(uint8_t steps, bool so)
{
    return so ? steps : static_cast<uint8_t>(~steps);
}

}  // namespace

ParamWrites::ParamWrites(const WrappedModule &module) : module_(module), before_(module.size())
{
    left_.reserve(module.size());
}

void ParamWrites::end_backward(uint64_t calls)
{
    const std::lock_guard lock(mutex_);
    const bool is_first = left_.empty();
    if (is_written()) behind_ = calls_;
    calls_ = calls;
    if (!is_first) known_ = push(known_, true);
    for (size_t i = 0; i < module_.size(); ++i) {
        const Param now{version_of(module_.params()[i].tensor), module_.leaf(i).grad().present()};
        if (is_first) {
            left_.push_back(now);
            continue;
        }
        Steps &steps = before_[i];
        steps.written = push(steps.written, now.version != left_[i].version);
        steps.had_gradient = push(steps.had_gradient, left_[i].has_gradient);
        left_[i] = now;
    }
}

void ParamWrites::note_given(uint64_t calls)
{
    const std::lock_guard lock(mutex_);
    calls_ = behind_ = calls;
}

bool ParamWrites::is_written() const
{
    for (size_t i = 0; i < left_.size(); ++i)
        if (version_of(module_.params()[i].tensor) != left_[i].version) return true;
    return false;
}

uint64_t ParamWrites::calls_behind() const
{
    const std::lock_guard lock(mutex_);
    return is_written() ? calls_ : behind_;
}

void ParamWrites::note_told(bool is_refused)
{
    const std::lock_guard lock(mutex_);
    if (!is_refused && !told_.empty()) return;
    is_refused_ |= is_refused;
    told_.clear();
    for (const ModuleTensor &each : module_.params()) told_.push_back(version_of(each.tensor));
}

bool ParamWrites::are_loaded() const
{
    const std::lock_guard lock(mutex_);
    if (told_.empty()) return false;
    for (size_t i = 0; i < told_.size(); ++i) {
        const Tensor &param = module_.params()[i].tensor;
        if (version_of(param) == told_[i]) return false;
        if (!is_refused_ && !gives_values(param->storage->last_writer())) return false;
    }
    return true;
}

void ParamWrites::add_to(Since &all) const
{
    const std::lock_guard lock(mutex_);
    if (left_.empty()) return;
    all.like_ &= known_;
    all.within_ &= known_;
    for (size_t i = 0; i < left_.size(); ++i) {
        const uint32_t since = version_of(module_.params()[i].tensor) - left_[i].version;
        const Steps &steps = before_[i];
        all.count_ += since;
        all.is_all_ &= since > 0 || !left_[i].has_gradient;
        all.like_ &= where(steps.written, since > 0);
        all.like_ &= where(steps.had_gradient, left_[i].has_gradient);
        if (since > 0) all.within_ &= steps.written;
    }
}

void ParamWrites::go_on_from(const ParamWrites &former)
{
    const std::scoped_lock lock(mutex_, former.mutex_);
    before_ = former.before_;
    known_ = former.known_;
}

void end_backward_of_all(Group &group, ParamWrites &own) noexcept
try {
    for (const std::shared_ptr<Reducer> &each : group.reducers().living())
        each->writes().end_backward(group.flights().issued_ever());
} catch (const std::exception &) {
    own.end_backward(group.flights().issued_ever());
}

void note_told_of_all(Group &group, bool is_refused) noexcept
try {
    if (!group.is_here() || !group.is_failed()) return;
    for (const std::shared_ptr<Reducer> &each : group.reducers().living())
        each->writes().note_told(is_refused);
} catch (const std::exception &) {  // no memory: regroup asks the script to load once more
}

}  // namespace yoke
