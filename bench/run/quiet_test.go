//go:build linux

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func TestBusyCPUsAreSaidBeforehand(t *testing.T) {
	require.Empty(t, busyLine(cpuTicks{busy: 2, idle: 58}, 9), "the load average is of what was before")
	require.Empty(t, busyLine(cpuTicks{}, 0))
	lines := busyLine(cpuTicks{busy: 20, idle: 30, steal: 10}, 3.5)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "other processes kept the CPUs 50% busy (load average 3.5)")
}

func TestClocksThatMayChangeAreSaid(t *testing.T) {
	require.Empty(t, clockLines("", false))
	require.Empty(t, clockLines("performance", false))
	require.Contains(t, clockLines("powersave", false)[0], `governor is "powersave"`)
	require.Contains(t, clockLines("performance", true)[0], "On battery")
}

func TestOnBattery(t *testing.T) {
	folder := t.TempDir()
	supply := func(name, kind, file, value string) {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name, "type"), []byte(kind+"\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name, file), []byte(value+"\n"), 0o600))
	}
	require.False(t, onBattery(folder))
	require.False(t, onBattery("/nonexistent"))
	supply("BAT0", "Battery", "status", "Discharging")
	require.True(t, onBattery(folder))
	supply("AC", "Mains", "online", "1")
	require.False(t, onBattery(folder))
	supply("AC", "Mains", "online", "0")
	require.True(t, onBattery(folder))
	supply("BAT0", "Battery", "status", "Full")
	require.False(t, onBattery(folder))
}

// Each of two runs at the same time learns of the other, also of one that began later.
func TestRunsSeeEachOther(t *testing.T) {
	name := fmt.Sprintf("qps-ladder-test-%d", os.Getpid())
	first := bePresent(name)
	require.False(t, first.met.Load())
	second := bePresent(name)
	require.True(t, second.met.Load())
	require.Eventually(t, first.met.Load, 5*time.Second, time.Millisecond)
	first.leave()
	third := bePresent(name)
	require.True(t, third.met.Load(), "the second is still there")
	second.leave()
	third.leave()
	last := bePresent(name)
	require.False(t, last.met.Load())

	b := &Bench{presence: last}
	b.remarkCompany()
	require.Empty(t, b.Remarks)
	bePresent(name).leave()
	require.Eventually(t, last.met.Load, 5*time.Second, time.Millisecond)
	b.remarkCompany()
	b.remarkCompany()
	require.Equal(t, []string{Company}, b.Remarks)
	last.leave()
}

// What is announced beforehand is made of the lengths that the generators will get.
func TestPlanKnowsWhatARoundTakes(t *testing.T) {
	plan := func(b Bench) (int, time.Duration) {
		if b.Items == nil {
			stages := make([]Server, 6)
			for i := range stages {
				stages[i].Name = fmt.Sprintf("stage%d-x", i)
			}
			require.NoError(t, b.Ladder(stages, nil))
		}
		return b.Plan()
	}
	quick := Bench{Generator: Embedded, Time: 34 * time.Second, Duration: 220 * time.Millisecond, Warmup: 60 * time.Millisecond}
	rounds, all := plan(quick)
	require.Equal(t, 6, rounds)
	require.Less(t, all, 40*time.Second, "what QUICK=1 promises")

	wrk := quick
	wrk.Generator, wrk.Duration = Wrk, time.Second
	_, all = plan(wrk)
	require.Greater(t, all, 90*time.Second, "wrk measures no less than a second")
	wrk.Brief = true
	_, all = plan(wrk)
	require.Less(t, all, time.Minute)

	fixed := quick
	fixed.Rounds = 100
	rounds, all = plan(fixed)
	require.Equal(t, 100, rounds)
	require.Greater(t, all, 7*time.Minute)

	rounds, all = (&Bench{}).Plan()
	require.Zero(t, rounds)
	require.Zero(t, all)

	both := Bench{Duration: 1500 * time.Millisecond, Rounds: 1, Items: []Item{{Workload: workload.Workload{}, Generator: Wrk}}}
	_, all = both.Plan()
	require.Greater(t, all, 2*time.Second, "whole seconds")
}

func TestBriefLadderIsHelloAlone(t *testing.T) {
	b := Bench{Generator: Embedded, Brief: true}
	require.NoError(t, b.Ladder([]Server{{Name: "stage0-x"}, {Name: "stage1-x"}, {Name: "stage4-x"}}, nil))
	require.False(t, slices.ContainsFunc(b.Items, func(i Item) bool { return i.Workload.Name != workload.Hello }))
	require.Len(t, b.Items, 5, "the first and the last twice, for the floor")
}
