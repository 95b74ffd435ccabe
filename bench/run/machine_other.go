//go:build !linux

package run

import (
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const tick = int64(10_000_000)

type cpuTicks struct{ busy, idle, steal int64 }

func (a cpuTicks) less(cpuTicks) cpuTicks { return a }

func processTicks(int) (user, system int64, err error) { return 0, 0, netpoll.ErrUnsupported }

func resident(int) (int64, error) { return 0, netpoll.ErrUnsupported }

func readCPUs([]int) (cpuTicks, error) { return cpuTicks{}, netpoll.ErrUnsupported }

func readCores([]int) cores { return nil }

func switches(int) (contextSwitches, error) { return contextSwitches{}, netpoll.ErrUnsupported }

func useCPUs([]int) error { return netpoll.ErrUnsupported }

func describe(*results.Machine) {}

func loadAverage() float64 { return 0 }

func megahertz([]int) float64 { return 0 }

func accounted() bool { return false }
