// living_groups.h: groups that still live as their process ends. Something holds them, such as a script that calls exit
// or a thread for which Python does not wait, or they linger.
#pragma once

#include <memory>

namespace yoke {

class Group;
struct GroupLink;

// Makes a group known to leave_living_groups.
void note_living(const std::shared_ptr<GroupLink> &link, Group &group);
// Leaves all groups, at the end of the process. Their calls end first. If something holds a group, its calls get some
// seconds; calls of a lingering group get as long as they take.
void leave_living_groups() noexcept;

// A group that lingers lives on in its own thread though nobody holds it; the end of the process waits for it.
void note_lingering() noexcept;
void note_lingering_ended() noexcept;

}  // namespace yoke
