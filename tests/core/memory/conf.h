// conf.h: settings of the allocator for the length of a scope.
#pragma once

#include "core/memory/alloc_conf.h"

namespace yoke::test {

class Conf {
public:
    explicit Conf(const std::string &text) : before_(describe(alloc_conf()))
    {
        set_alloc_conf("test", text);
    }
    ~Conf() { set_alloc_conf("test", before_); }
    Conf(const Conf &) = delete;
    Conf &operator=(const Conf &) = delete;

private:
    const std::string before_;
};

}  // namespace yoke::test
