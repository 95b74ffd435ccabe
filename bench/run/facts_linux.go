package run

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// says is the content of a file of the kernel in a line, "" when it has none.
func says(path string) string {
	b, _ := os.ReadFile(path)
	return strings.Join(strings.Fields(strings.TrimRight(string(b), "\x00\n ")), " ")
}

// describeKernel fills in what the kernel is set to.
func describeKernel(m *results.Machine) {
	m.CongestionControl = says("/proc/sys/net/ipv4/tcp_congestion_control")
	m.QueueDiscipline = says("/proc/sys/net/core/default_qdisc")
	m.SMT = says(cpuFolder + "/smt/control")
	m.ClockSource = says("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	m.Tickless = tickless()
	if cpus, err := netpoll.CPUs(); err == nil {
		m.Topology = topology(cpus)
	}
}

// tickless says on which CPUs the timer tick stops: see "NO_HZ" in the kernel's documentation.
func tickless() string {
	text := ""
	switch c := kernelConfig(); {
	case strings.Contains(c, "\nCONFIG_NO_HZ_FULL=y"), strings.Contains(c, "\nCONFIG_NO_HZ_IDLE=y"):
		text = "when idle"
	case strings.Contains(c, "\nCONFIG_HZ_PERIODIC=y"):
		text = "no"
	}
	if full := says(cpuFolder + "/nohz_full"); full != "" && full != "(null)" {
		text = strings.TrimPrefix(text+", and CPUs "+full+" when busy", ", and ")
	}
	return text
}

// kernelConfig is what the kernel was built with, as far as it can be read.
func kernelConfig() string {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		if b, err := os.ReadFile("/boot/config-" + unix.ByteSliceToString(name.Release[:])); err == nil {
			return "\n" + string(b)
		}
	}
	f, err := os.Open("/proc/config.gz")
	if err != nil {
		return ""
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return ""
	}
	b, _ := io.ReadAll(z)
	return "\n" + string(b)
}

// topology says how many packages, cores and last-level caches the CPUs are of, as far as the kernel
// tells: in a virtual machine that may be made up.
func topology(cpus []int) string {
	count := func(of func(folder string) string) int {
		var seen []string
		for _, cpu := range cpus {
			if v := of(fmt.Sprintf("%s/cpu%d", cpuFolder, cpu)); v != "" && !slices.Contains(seen, v) {
				seen = append(seen, v)
			}
		}
		return len(seen)
	}
	parts := []string{amount(len(cpus), "CPU")}
	for _, each := range []struct {
		name string
		of   func(folder string) string
	}{
		{"core", func(f string) string { return says(f + "/topology/thread_siblings_list") }},
		{"last-level cache", func(f string) string { return says(f + "/cache/index3/shared_cpu_list") }},
		{"package", func(f string) string { return says(f + "/topology/physical_package_id") }},
	} {
		if n := count(each.of); n > 0 {
			parts = append(parts, amount(n, each.name))
		}
	}
	return strings.Join(parts, ", ")
}

func amount(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
