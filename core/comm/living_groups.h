// living_groups.h: groups that still live as their process ends: something holds them, as a script that calls exit, or
// a thread that Python does not wait for; or they linger.
#pragma once

#include <memory>

namespace yoke {

class Group;
struct GroupLink;

// Makes a group known to leave_living_groups.
void note_living(const std::shared_ptr<GroupLink> &link, Group &group);
// Leaves all groups, at the end of the process. Calls that were begun end first: those of groups that something holds
// within some seconds.
void leave_living_groups() noexcept;

// A group that lingers lives on in its own thread though nobody holds it; the end of the process waits for it.
void note_lingering() noexcept;
void note_lingering_ended() noexcept;

}  // namespace yoke
