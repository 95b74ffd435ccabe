package run

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// tick is the length of one unit in /proc, in nanoseconds: USER_HZ is 100 on
// every architecture that Go runs on, see time(7).
const tick = int64(10_000_000)

// processTicks reads the user and system time of a process, in ticks: see
// proc_pid_stat(5), utime and stime. Unless the kernel accounts every switch,
// these are estimates: the share of each is sampled at timer ticks.
func processTicks(pid int) (user, system int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name in parentheses may hold anything; the fields begin behind the last of them.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	if user, err = strconv.ParseInt(fields[11], 10, 64); err == nil {
		system, err = strconv.ParseInt(fields[12], 10, 64)
	}
	return user, system, err
}

// inLine is how long the threads of a process have stood ready and waited for a CPU so far: the second
// field of schedstat, see "Scheduler Statistics" in the kernel's documentation. 0 where the kernel does
// not tell.
func inLine(pid int) (sum time.Duration) {
	if pid == 0 {
		return 0
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		if f := strings.Fields(string(b)); len(f) >= 2 {
			ns, _ := strconv.ParseInt(f[1], 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// resident is the resident memory of a process in bytes, see proc_pid_statm(5).
func resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm is not understood", pid)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// cpuTicks is what a set of CPUs did, in ticks, see proc_stat(5).
type cpuTicks struct{ busy, idle, steal int64 }

func (a cpuTicks) less(b cpuTicks) cpuTicks {
	return cpuTicks{a.busy - b.busy, a.idle - b.idle, a.steal - b.steal}
}

// readCPUs adds up the lines of the given CPUs.
func readCPUs(cpus []int) (sum cpuTicks, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return sum, err
	}
	wanted := map[string]bool{}
	for _, cpu := range cpus {
		wanted["cpu"+strconv.Itoa(cpu)] = true
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 9 || !wanted[f[0]] {
			continue
		}
		var n [8]int64 // user nice system idle iowait irq softirq steal
		for i := range n {
			if n[i], err = strconv.ParseInt(f[i+1], 10, 64); err != nil {
				return sum, fmt.Errorf("/proc/stat is not understood: %w", err)
			}
		}
		sum.busy += n[0] + n[1] + n[2] + n[5] + n[6]
		sum.idle += n[3] + n[4]
		sum.steal += n[7]
	}
	return sum, nil
}

// readCores reads which CPUs are threads of one core, as far as the kernel tells: it sees what a
// virtual machine shows it. See Documentation/admin-guide/cputopology.rst of the kernel.
func readCores(cpus []int) cores {
	found := cores{}
	for _, cpu := range cpus {
		first, _, _ := strings.Cut(says(fmt.Sprintf("%s/cpu%d/topology/thread_siblings_list", cpuFolder, cpu)), ",") // "0,4" or "0-1"
		first, _, _ = strings.Cut(first, "-")
		if core, err := strconv.Atoi(first); err == nil {
			found[cpu] = core
		}
	}
	return found
}

// switches counts how often the threads of a process gave their CPU away, to wait, and how often it was
// taken from them, since they began: see proc_pid_status(5). Threads that have ended are not in it.
func switches(pid int) (s contextSwitches, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		return s, fmt.Errorf("process %d has no threads: %w", pid, cmp.Or(err, os.ErrNotExist))
	}
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			continue // it has just ended
		}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(line, ":")
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			switch {
			case err != nil:
			case key == "voluntary_ctxt_switches":
				s.waits += n
			case key == "nonvoluntary_ctxt_switches":
				s.preemptions += n
			}
		}
	}
	return s, nil
}

// useCPUs moves every thread of this process to the given CPUs.
func useCPUs(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, &set) // one that has just ended does no harm
		}
	}
	return nil
}

// describe fills in what there is to say about this machine. What cannot be
// read stays empty.
func describe(m *results.Machine) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
		m.Architecture = unix.ByteSliceToString(name.Machine[:])
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if (key == "model name" || key == "Model") && m.CPU == "" {
			m.CPU = value
		}
		if key == "flags" && strings.Contains(" "+value+" ", " hypervisor ") {
			m.Virtual = "virtual machine"
		}
	}
	made := strings.TrimSpace(says("/sys/class/dmi/id/sys_vendor") + " " + says("/sys/class/dmi/id/product_name"))
	if m.Virtual != "" && made != "" {
		m.Virtual += " (" + made + ")"
	}
	if _, err := os.Stat("/.dockerenv"); err == nil {
		m.Virtual = strings.TrimPrefix(m.Virtual+", container", ", ")
	}
	m.Mitigations = mitigations()
	if cpus, err := netpoll.CPUs(); err == nil {
		m.Governor = governor(cpus)
	}
	m.Battery = onBattery(powerFolder)
	describeKernel(m)
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		m.MemoryBytes = int64(memory.Totalram) * int64(memory.Unit)
	}
}

const cpuFolder = "/sys/devices/system/cpu"

// megahertz is the mean frequency of CPUs, 0 when the kernel does not tell: in
// a virtual machine it does not know.
func megahertz(cpus []int) float64 {
	sum := 0.0
	for _, cpu := range cpus {
		kilohertz, err := strconv.ParseFloat(says(fmt.Sprintf("%s/cpu%d/cpufreq/scaling_cur_freq", cpuFolder, cpu)), 64)
		if err != nil {
			return 0
		}
		sum += kilohertz / 1000
	}
	return sum / float64(len(cpus))
}

// governor is what decides on the frequency of CPUs, "" when the kernel does not tell.
func governor(cpus []int) string {
	var all []string
	for _, cpu := range cpus {
		if text := says(fmt.Sprintf("%s/cpu%d/cpufreq/scaling_governor", cpuFolder, cpu)); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// onBattery tells whether there is a battery and no mains supply is connected,
// see "power supply class" in the kernel's documentation.
func onBattery(folder string) bool {
	battery, mains := false, false
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		read := func(name string) string { return says(filepath.Join(folder, e.Name(), name)) }
		switch read("type") {
		case "Battery":
			battery = battery || read("status") == "Discharging"
		case "Mains", "USB":
			mains = mains || read("online") == "1"
		}
	}
	return battery && !mains
}

const powerFolder = "/sys/class/power_supply"

// mitigations names the weaknesses of this CPU against which the kernel does something.
func mitigations() (out []string) {
	const folder = cpuFolder + "/vulnerabilities"
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if text := says(folder + "/" + e.Name()); text != "" && text != "Not affected" {
			out = append(out, e.Name()+": "+text)
		}
	}
	return out
}

// loadAverage is the number of threads that wanted to run in the last minute.
func loadAverage() float64 {
	first, _, _ := strings.Cut(says("/proc/loadavg"), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// accounted tells whether the kernel accounts user and system time at every
// switch between them: it does on CPUs without a tick, see "full dynticks" in
// the kernel's documentation. Else both are estimated from timer ticks.
func accounted() bool {
	text := says(cpuFolder + "/nohz_full")
	return text != "" && text != "(null)"
}
