---@meta yoke
-- For editors (LuaLS): what is wrong with a machine's GPUs.

---Check of the machine with its result.
---@class yoke.Check
---@field number integer
---@field id string "driver-library-match"
---@field title string
---@field status "ok"|"warn"|"fail"|"skip" skip: it does not apply here, the evidence says why
---@field evidence string what was seen
---@field remedy string commands, one a line; "" when all is well
---@field url string where it is written up
---@field card integer the card it is about, -1: the machine

---@class yoke.Report
---@field checks yoke.Check[]
---@field exit_code 0|1|2 0: none failed; 1: one did; 2: one could not be run

---Examines the machine; a problem of the machine is no error. `probe`: also checks that run work on a device, each
---in a child process that is ended after `deadline` seconds (10). `redact`: no names of machines, users and
---processes, no UUIDs.
---@param options? {probe?: boolean, redact?: boolean, deadline?: number}
---@return yoke.Report
function yoke.doctor(options) end

---Writes what a report rests on, and the report, into a folder: scenario.json, root/, environment, report.json.
---@param folder string
---@param options? {probe?: boolean, redact?: boolean, deadline?: number}
---@return true? done
---@return yoke.Error? err
function yoke.doctor_record(folder, options) end

---A device, measured now; a field that is not known is nil. Bytes, watts, degrees Celsius, hertz, 0 to 1.
---@class yoke.Sample
---@field utilization? number
---@field memory_used? integer
---@field memory_free? integer
---@field memory_total? integer
---@field watts? number
---@field temperature? number
---@field sm_clock? number
---@field memory_clock? number
---@field processes? integer

---A device held for this process; ends with it. Can be declared <close>.
---@class yoke.Lease
local Lease = {}

---Gives the device up. A second time does nothing.
function Lease:release() end

---@class yoke.Device
---@field uuid string "" if it has none
---@field pci string "0000:65:00.0", "" if it has none
---@field compute_capability? string "9.0"
---@field multiprocessors? integer
---@field link string its link to the host at its best, "PCIe 5.0 x16"; "" if it is not known
---@field is_egpu boolean
---@field lease? yoke.Lease this process's lease of it
local Device = {}

---@return yoke.Sample
function Device:sample() end

---Takes the lease: from now on no other process gets a lease on the device.
---@return yoke.Lease? lease
---@return yoke.Error? err names the process that has it
function Device:take_lease() end

---@class yoke.Verdict
---@field device string "cuda:1", or a card's name and UUID if it has no number
---@field accepted boolean
---@field reason string

---The best n devices, in order: yoke.select(2, {min_free = "8GiB", same = "nvlink", homogeneous = true}).
---The keys are those of a spec (docs/devices.md); numbers are bytes and seconds where a spec wants a unit.
---@param n? integer without it one, for one of several ranks of a machine its own, as "auto" gives it
---@param constraints? table
---@return yoke.Device[]? devices
---@return yoke.Error? err names each rejected device with its reason
---@overload fun(constraints: table): yoke.Device[]?, yoke.Error?
function yoke.select(n, constraints) end

---Explains select's result without a selection: every device with its verdict, the chosen first, and the fields
---problem (why no device fits) and visible (a value for CUDA_VISIBLE_DEVICES).
---@param spec? string "auto" if not given
---@return yoke.Verdict[]
function yoke.explain(spec) end

---@param uuid string the card's UUID or its beginning, its PCI address, or a device such as "cuda:0"
---@return integer pid of the process that holds the card's lease; 0: none does, -1: it cannot be named
function yoke.lease_holder(uuid) end

---Disables a kind: no device of this kind is used. If none was used before, no part of the kind is ever loaded.
---Calls count.
---@param kind string
function yoke.disable(kind) end

---Takes one disable back.
---@param kind string
function yoke.enable(kind) end

---Result of yoke.disabled without a function: the kind is off until it is closed. Can be declared <close>.
---@class yoke.Disabled
local Disabled = {}

---Takes the disable back. A second time does nothing.
function Disabled:close() end

---Runs fn without devices of the kind and returns its results. Without fn, returns an object that enables the kind
---when closed: local _ <close> = yoke.disabled("cuda").
---@param kind string
---@param fn function
---@overload fun(kind: string): yoke.Disabled
function yoke.disabled(kind, fn, ...) end
