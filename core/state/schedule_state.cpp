// Schedules as states: core/state/objects.h.
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/optim/schedule.h"
#include "core/state/fields.h"
#include "core/state/objects.h"

#include <array>
#include <cmath>

namespace yoke {

namespace {

constexpr int64_t kAnyNumber = INT64_MIN;

struct Option {
    const char *name;
    int64_t least;  // least whole number; kAnyNumber: need not be whole
};

struct Kind {
    const char *name;
    std::vector<Option> options;
    double (*lr)(const Fields &schedule, int64_t step, double base);
};

const std::vector<Kind> &kinds()
{
    static const std::vector<Kind> all = {
        {"constant",
         {{"factor", kAnyNumber}, {"total_steps", 0}},
         [](const Fields &s, int64_t step, double base) {
             return schedule_constant(base, s.number("factor"), s.whole("total_steps", 0), step);
         }},
        {"linear",
         {{"start", kAnyNumber}, {"end", kAnyNumber}, {"total_steps", 1}},
         [](const Fields &s, int64_t step, double) {
             return schedule_linear(s.number("start"), s.number("end"), s.whole("total_steps", 1),
                                    step);
         }},
        {"cosine",
         {{"total_steps", 1}, {"min_lr", kAnyNumber}, {"warmup_steps", 0}},
         [](const Fields &s, int64_t step, double base) {
             return schedule_cosine(base, s.number("min_lr"), s.whole("total_steps", 1),
                                    s.whole("warmup_steps", 0), step);
         }},
        {"step",
         {{"step_size", 1}, {"gamma", kAnyNumber}},
         [](const Fields &s, int64_t step, double base) {
             return schedule_step(base, s.whole("step_size", 1), s.number("gamma"), step);
         }},
        {"one_cycle",
         {{"max_lr", kAnyNumber},
          {"total_steps", 1},
          {"pct_start", kAnyNumber},
          {"div_factor", kAnyNumber},
          {"final_div_factor", kAnyNumber}},
         [](const Fields &s, int64_t step, double) {
             return schedule_one_cycle(s.number("max_lr"), s.whole("total_steps", 1),
                                       s.number("pct_start"), s.number("div_factor"),
                                       s.number("final_div_factor"), step);
         }},
    };
    return all;
}

const Kind &kind_of(const Fields &schedule)
{
    const auto *name = schedule.at("kind").get_if<std::string>();
    if (!name)
        refuse_kind(schedule.at("kind"), schedule.place_of("kind"), "the name of a schedule");
    std::vector<const char *> known;
    for (const Kind &kind : kinds()) {
        if (*name == kind.name) return kind;
        known.push_back(kind.name);
    }
    const char *nearest = nearest_word(*name, known);
    fail(
        YOKE_E_VALUE,
        "%s: the schedule's kind is %s; the kinds are constant, linear, cosine, step and one_cycle%s",
        kLoadCall, shown(schedule.at("kind")).c_str(),
        nearest ? format("; did you mean '%s'?", nearest).c_str() : "");
}

Fields fields_of(const State &schedule)
{
    return Fields(schedule, "argument 'state_dict'", {"kind", "base_lrs", "last_step"});
}

void check_one_cycle(const Fields &schedule)
{
    const double share = schedule.number("pct_start"), div = schedule.number("div_factor"),
                 last = schedule.number("final_div_factor");
    if (!(share >= 0 && share <= 1))
        fail(YOKE_E_VALUE, "%s: 'pct_start' is %g; it must be a share, 0 to 1", kLoadCall, share);
    if (!(div > 0 && last > 0))
        fail(YOKE_E_VALUE,
             "%s: 'div_factor' and 'final_div_factor' are %g and %g; both must be above 0",
             kLoadCall, div, last);
}

}  // namespace

void check_schedule(const State &schedule, int64_t groups)
{
    const Fields fields = fields_of(schedule);
    const Kind &kind = kind_of(fields);
    for (const Option &option : kind.options)
        if (option.least == kAnyNumber)
            (void)fields.number(option.name);
        else
            (void)fields.whole(option.name, option.least);
    if (std::string_view(kind.name) == "one_cycle") check_one_cycle(fields);
    const StateList &rates = fields.list("base_lrs");
    for (const Ref<State> &rate : rates.items) (void)number_of(*rate, fields.place_of("base_lrs"));
    if (groups >= 0 && rates.items.size() != static_cast<size_t>(groups))
        fail(YOKE_E_VALUE,
             "%s: the state has rates of %zu groups, but the optimizer has %lld groups", kLoadCall,
             rates.items.size(), static_cast<long long>(groups));
    (void)fields.whole("last_step", 0);
}

double schedule_lr(const State &schedule, int64_t step, size_t group)
{
    const Fields fields = fields_of(schedule);
    const double base =
        number_of(*fields.list("base_lrs").items.at(group), fields.place_of("base_lrs"));
    return kind_of(fields).lr(fields, step, base);
}

}  // namespace yoke
