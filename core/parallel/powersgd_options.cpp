#include "core/parallel/powersgd_options.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/parallel/compression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace yoke {

namespace {

int64_t whole(const std::string &text, const char *key, int64_t least, const std::string &all)
{
    const auto value = parsed<int64_t>(text);
    if (!value || *value < least)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'compression' has %s=%s in 'powersgd:%s'; the value must be a whole number of %lld or more",
            kDdpCall, key, text.c_str(), all.c_str(), static_cast<long long>(least));
    return *value;
}

double number(const std::string &text, const char *key, const std::string &all)
{
    const double value = parsed<double>(text).value_or(0);
    if (!(value > 0) || std::isinf(value))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'compression' has %s=%s in 'powersgd:%s'; the value must be a number above 0",
            kDdpCall, key, text.c_str(), all.c_str());
    return value;
}

void take(PowerSgdOptions &options, const std::string &key, const std::string &value,
          const std::string &all)
{
    // The first step lays the buckets out anew, and errors belong to a bucket.
    constexpr int64_t kFirstStart = 2;
    if (key == "rank")
        options.rank = whole(value, "rank", 1, all);
    else if (key == "start")
        options.start = whole(value, "start", kFirstStart, all);
    else if (key == "rate")
        options.rate = number(value, "rate", all);
    else
        fail(
            YOKE_E_VALUE,
            "%s: argument 'compression' has the key '%s' in 'powersgd:%s'; the keys are rank, start and rate",
            kDdpCall, key.c_str(), all.c_str());
}

}  // namespace

PowerSgdOptions read_powersgd_options(const std::string &text)
{
    PowerSgdOptions options;
    std::set<std::string> seen;
    if (text.empty()) return options;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string one = text.substr(at, end - at);
        const size_t sign = std::min(one.find('='), one.size());
        const std::string key = one.substr(0, sign),
                          value = sign < one.size() ? one.substr(sign + 1) : "";
        take(options, key, value, text);
        if (!seen.insert(key).second)
            fail(
                YOKE_E_VALUE,
                "%s: argument 'compression' has the key '%s' twice in 'powersgd:%s'; give each key once",
                kDdpCall, key.c_str(), text.c_str());
        at = end + 1;
    }
    return options;
}

std::string text_of(const PowerSgdOptions &options)
{
    char rate[32];
    const auto end = std::to_chars(rate, rate + sizeof rate, options.rate);
    return "'powersgd:rank=" + std::to_string(options.rank) +
           ",start=" + std::to_string(options.start) + ",rate=" + std::string(rate, end.ptr) + "'";
}

}  // namespace yoke
