// immortal.h: statics that nothing destroys, since other threads may use them while the process ends.
//
// Those of a namespace are made while the library is loaded, so that no fork finds one half made: of a static that is
// made at its first use, a fork at that moment would leave the child waiting for a thread that it does not have.
#pragma once

namespace yoke {

template <class T>
T &immortal()
{
    return *new T;
}

}  // namespace yoke
