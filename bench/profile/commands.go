package profile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Commands returns the subcommands that look into a server: flame, where,
// syscalls, allocs, stat and wrong-turn. The command that they are added to must
// have the subcommand load, the generator.
func Commands() []*cobra.Command {
	all := []*cobra.Command{newFlame(), newWhere(), newSyscalls(), newAllocs(), newStat(), newWrongTurn()}
	for _, cmd := range all {
		do := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := do(cmd, args)
			if err != nil && cmd.Context().Err() != nil {
				return errors.New("stopped: nothing was written")
			}
			return err
		}
	}
	return all
}

// common are the flags that all of them have.
type common struct {
	workload string
	seconds  time.Duration
	layout   string
	workers  int
	out      string
}

func (c *common) flags(cmd *cobra.Command, seconds string) {
	f := cmd.Flags()
	f.StringVar(&c.workload, "workload", workload.Hello, "what to send: see ladder workloads")
	f.DurationVar(&c.seconds, "seconds", 0, "how long to record, such as 3s (default: "+seconds+")")
	f.StringVar(&c.layout, "layout", "", "co-located or split (default: split from 4 CPUs on)")
	f.IntVar(&c.workers, "workers", 0, "workers of each server (default: one for each of its CPUs)")
	f.StringVar(&c.out, "out", "", "folder for what is written (default: bench/out)")
}

const warmup = 200 * time.Millisecond

// lab prepares for servers to be started.
func (c *common) lab() (*lab, error) {
	switch {
	case c.seconds < 0:
		return nil, errors.New("--seconds must be positive")
	case c.workers < 0:
		return nil, errors.New("--workers must be at least 1")
	}
	l := &lab{workers: c.workers, warmup: warmup}
	var err error
	if l.command, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("cannot find this command's own file: %w", err)
	}
	if l.root, err = run.Root(); err != nil {
		return nil, err
	}
	if l.out, err = run.Out(l.root); err != nil {
		return nil, fmt.Errorf("cannot make the folder for what is written: %w", err)
	}
	l.bin = filepath.Join(l.out, "bin")
	if c.out != "" {
		l.out = c.out
		if err := os.MkdirAll(c.out, 0o755); err != nil {
			return nil, err
		}
	}
	cpus, err := netpoll.CPUs()
	if err != nil {
		return nil, err
	}
	if l.place, err = run.Arrange(cpus, c.layout); err != nil {
		return nil, err
	}
	if l.workers == 0 {
		l.workers = len(l.place.Server)
	}
	return l, nil
}

// stages finds and builds the stages that are named, or all.
func (l *lab) stages(cmd *cobra.Command, names []string) ([]run.Server, error) {
	all, err := run.Stages(l.root)
	if err != nil {
		return nil, err
	}
	picked := all
	if len(names) > 0 {
		picked = nil
		for _, name := range names {
			s, err := run.PickStage(all, name)
			if err != nil {
				return nil, err
			}
			picked = append(picked, s)
		}
	}
	return run.BuildStages(cmd.Context(), l.root, l.bin, picked)
}

// teller writes lines to a command's standard error.
func teller(cmd *cobra.Command) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
}

// short is a stage's name without what it is about.
func short(name string) string {
	s, _, _ := strings.Cut(name, "-")
	return s
}

// writeFile writes all of a file or nothing of it.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".unfinished-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone already when all went well
	err = write(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
