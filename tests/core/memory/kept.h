// kept.h: objects that stay until the process ends, because threads remember a device until their end.
#pragma once

#include "core/base/immortal.h"

#include <list>

namespace yoke::test {

template <class T>
T &make_kept()
{
    static std::list<T> &all = immortal<std::list<T>>();
    return all.emplace_back();
}

}  // namespace yoke::test
