"""Run in a folder: a stopped run continues from the newest state there, saved by any of the languages.

    saved = SavedRun("gpt", options.save, options.every, {"seed": options.seed})
    for step in saved.steps(300, {"net": net, "optimizer": optimizer}):
        …

saved_run.lua and saved_run.c do the same. A state has the parts under their names, "step", the number of finished steps, "rng",
and the run's "program" and "options". In a group all ranks load the state, and rank 0 alone saves.
"""

import errno
import sys

import yoke


class SavedRun:
    """Saves a run every `every` steps, and when a signal asks the process to end. Without a folder there are no saves."""

    def __init__(self, program="", folder=None, every=None, options=None, group=None):
        if every is not None and folder is None:
            sys.exit(f"--every is {every}, and there is no folder to save to; give --save FOLDER too")
        if every is not None and every < 1:
            sys.exit(f"--every is {every}; it must be at least 1")
        if every is not None and every >= 2**63:  # limit of Lua's and C's integers
            sys.exit(f"--every is '{every}'; it must be a whole number of 64 bits")
        self.folder, self.every, self.group = folder, every or 100, group
        self.is_first = group is None or group.rank == 0
        self.begun_with = {"program": program, "options": options}
        self.manager = yoke.CheckpointManager(folder) if folder is not None else None
        self.first = self.done = 0  # steps when this process began, and now

    def steps(self, total, parts):
        """Counts the remaining steps of `total`, from 0. `parts` are whole only between steps.

        A part is a tensor changed in place, or has a state_dict().
        """
        if self.manager is None:
            yield from range(total)
            return
        self.first = self.done = self._load(total, parts)
        if self.group is not None:
            self.group.barrier()  # all ranks have finished reading before rank 0 writes
        if self.done == total:
            return
        if not self.is_first:
            yield from range(self.first, total)
            return
        with yoke.on_preempt(lambda: self._save(parts, blocking=True)) as preemption:
            while self.done < total:
                self._save_if_due(total, parts)
                with preemption.held():  # a signal within a step waits for the step's end
                    yield self.done
                    self.done += 1
            self._save_if_due(total, parts)

    def _load(self, total, parts):
        """Puts parts and random numbers to the last saved state; returns the number of its steps."""
        try:
            state = self.manager.load()
        except yoke.CheckpointError as error:
            # Any other failure, also damaged or unreadable steps, is raised, so that no new run overwrites the
            # folder.
            if error.native_code != errno.ENOENT:
                raise
            return 0
        self._check(state)
        self.manager.load(state["step"], into=parts, verify=False)
        yoke.set_rng_state(state["rng"])
        if self.is_first:
            print(f"{self.folder}: {state['step']} of {total} steps are done", file=sys.stderr)
        return state["step"]

    def _check(self, state):
        """Ends the program if its name or options differ from the saved run's."""
        program = state.get("program") if isinstance(state, dict) else None
        if program != self.begun_with["program"]:
            sys.exit(f"{self.folder} holds a run of {program or 'another program'}; name another folder with --save")
        was, now = state["options"], self.begun_with["options"]
        differ = [name for name in now if now[name] != was.get(name)]
        if differ:
            was, now = (" ".join(f"--{name} {options.get(name)}" for name in differ) for options in (was, now))
            sys.exit(f"the run in {self.folder} was begun with {was}, not with {now}; give the options of the run, or name another folder with --save")

    def _save_if_due(self, total, parts):
        # The first save takes the folder, and shows at once whether the folder is writable; later saves run in the
        # background of the steps.
        blocking = self.done in (self.first, total)
        if blocking or self.done % self.every == 0:
            self._save(parts, blocking)

    def _save(self, parts, blocking):
        state = {**parts, **self.begun_with, "step": self.done, "rng": yoke.get_rng_state()}
        self.manager.save(self.done, state, blocking=blocking)
