// immortal.h: statics that are never destroyed, since other threads may use them while the process ends.
//
// Statics at namespace level are made while the library is loaded, so a fork never finds a half-made object. For a
// static made at first use, a fork at this moment would leave the child waiting for a missing thread.
#pragma once

namespace yoke {

template <class T>
T &immortal()
{
    return *new T;
}

}  // namespace yoke
