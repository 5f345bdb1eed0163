#include "core/ops/recompute/budget.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <strings.h>
#include <algorithm>
#include <cmath>

namespace yoke {

namespace {

constexpr size_t kMostForwards = 8;  // known forwards kept at a time
constexpr uint32_t kMostPlans = 6;   // plans made for a forward

std::string human(int64_t bytes)
{
    return bytes_text(static_cast<double>(bytes), BytesStyle::kPlaces);
}

[[noreturn]] void refuse(const char *call, std::string_view amount, const std::string &why)
{
    fail(
        YOKE_E_VALUE,
        "%s: argument 'amount' is '%.*s'%s; give a share of the activations' peak, above 0 and at most 1, or bytes with their unit, such as 0.5 or 2GiB",
        call, static_cast<int>(amount.size()), amount.data(), why.c_str());
}

}  // namespace

Ref<MemoryBudget> MemoryBudget::make(std::string_view amount, const char *call)
{
    const std::optional<Measure> read = read_measure(amount);
    if (!read) refuse(call, amount, "");
    if (read->unit.empty()) {
        if (!(read->number > 0 && read->number <= 1))
            refuse(
                call, amount,
                read->number > 1 ? ", which is a share above 1, or bytes without their unit" : "");
        return Ref<MemoryBudget>::adopt(new MemoryBudget(read->number, 0));
    }
    if (!read->known)
        refuse(call, amount,
               ", and '" + read->unit + "' is not a unit" +
                   (read->meant ? format(" (did you mean '%s'?)", read->meant) : std::string()));
    const double bytes = read->number * read->known->scale;
    if (!(bytes >= 1 && bytes < 9e18)) refuse(call, amount, "");
    return Ref<MemoryBudget>::adopt(new MemoryBudget(0, std::llround(bytes)));
}

Ref<BudgetRun> MemoryBudget::begin(const char *call)
{
    const std::lock_guard lock(mutex_);
    if (is_open_)
        fail(
            YOKE_E_STATE,
            "%s: argument 'policy' is a memory budget that is in use by an open scope of another thread or context; give each of them its own budget",
            call);
    settle_last();
    last_ = Ref<BudgetRun>::adopt(
        new BudgetRun(Ref<MemoryBudget>::share(this), {known_.begin(), known_.end()}));
    is_open_ = true;
    return last_;
}

void MemoryBudget::end() noexcept
{
    const std::lock_guard lock(mutex_);
    is_open_ = false;
}

// Learns from the last step. A step without a walk gives no figures.
void MemoryBudget::settle_last()
{
    const Ref<BudgetRun> run = std::move(last_);
    if (run.present() && run->is_known()) learn(*run);
}

// Learns from a run. An open run follows its plan, so a new plan is made beside the old plan. Memory may run out, so
// the new plan comes into force only when complete.
void MemoryBudget::learn(const BudgetRun &run)
{
    known_.reserve(kMostForwards);
    const Known before = run.forward();
    const auto known =
        before ? std::make_shared<KnownForward>(*before) : std::make_shared<KnownForward>();
    const StepFigures figures = run.figures();
    const bool has_followed = before && run.followed(*before);
    if (has_followed) known->excess = std::max(known->excess, figures.peak - known->outlook.peak);
    // The first step's figures include new memory, and the first run of every kernel, so the second step gets a new
    // plan too.
    const bool is_over = has_followed && figures.peak > std::max(known->limit, known->outlook.peak);
    if (known->plans < 2 || (is_over && known->plans < kMostPlans)) {
        run.put_profile(*known);
        // The profile contains the excess of the second step; later steps show an excess missing in every profile.
        if (known->plans == 1)
            known->excess = figures.peak - foresee(known->profile, known->plan).peak;
        make_plan(*known);
    }
    ++steps_;
    figures_ = figures;
    const auto place = std::ranges::find(known_, before);
    if (place != known_.end())
        known_.erase(place);
    else if (known_.size() == kMostForwards)
        known_.pop_back();
    known_.insert(known_.begin(), known);
    if (known->outlook.peak > known->limit) tell_least(*known);
}

void MemoryBudget::make_plan(KnownForward &known) const
{
    known.missed += std::max<int64_t>(std::exchange(known.excess, 0), 0);
    known.plain = foresee(known.profile, hold_all(known.profile)).peak;
    known.limit = share_ > 0 ? std::llround(share_ * static_cast<double>(known.plain)) : bytes_;
    known.plan = find_plan(known.profile, known.limit - known.missed);
    known.outlook = foresee(known.profile, known.plan);
    ++known.plans;
}

void MemoryBudget::tell_least(const KnownForward &known)
{
    if (std::exchange(has_told_, true)) return;
    log(LogLevel::kWarn,
        "a memory budget of %s is too small: this forward and its backward need %s without recomputation and at least %s with it, and get the latter",
        human(known.limit).c_str(), human(known.plain).c_str(), human(known.outlook.peak).c_str());
}

BudgetReport MemoryBudget::report()
{
    const std::lock_guard lock(mutex_);
    // A step whose walk has not ended is still going on.
    if (!is_open_ && last_.present() && last_->is_known() && !last_->is_walked_now()) settle_last();
    BudgetReport report;
    report.steps = steps_;
    report.forwards = static_cast<int64_t>(known_.size());
    if (known_.empty()) return report;
    const KnownForward &known = *known_.front();
    report.limit = known.limit;
    report.plain_peak = known.plain;
    report.cuts = known.outlook.cuts;
    report.held[0] = known.outlook.held;
    report.held[1] = figures_.held;
    report.peak[0] = known.outlook.peak;
    report.peak[1] = figures_.peak;
    report.seconds[0] = known.outlook.seconds;
    report.seconds[1] = figures_.seconds;
    return report;
}

}  // namespace yoke
