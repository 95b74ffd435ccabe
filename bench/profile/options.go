package profile

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Options are what every look into a server takes. Each zero value is a default.
type Options struct {
	Workload string        // hello
	Duration time.Duration // of one recording; as long as suits the profiler
	Layout   string        // results.CoLocated, Split or Shared: as in package run
	Workers  int           // of each server; one for each of its CPUs
	Folder   string        // for what is written: bench/out

	Out  io.Writer                        // the result, for people; required
	Tell func(format string, args ...any) // what is going on, a line each; required
	Step func(text string)                // what is being done just now, in the place of what it said before; "" ends that. Tell when nil
}

// step says what is being done just now.
func (o Options) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case o.Step != nil:
		o.Step(text)
	case text != "":
		o.Tell("%s", text)
	}
}

const warmup = 200 * time.Millisecond

// prepare builds the stages that are named, or all, and makes what starts them.
func (o Options) prepare(ctx context.Context, stages []string) (*lab, []run.Server, workload.Workload, error) {
	w, err := workload.ByName(cmp.Or(o.Workload, workload.Hello))
	if err != nil {
		return nil, nil, w, err
	}
	l, err := o.lab()
	if err != nil {
		return nil, nil, w, err
	}
	picked, err := harness.Stages(l.root)
	if err == nil && len(stages) > 0 {
		picked = nil
		for _, name := range stages {
			var stage string
			if stage, err = harness.FindStage(l.root, name); err != nil {
				break
			}
			picked = append(picked, stage)
		}
	}
	if err != nil {
		return nil, nil, w, err
	}
	servers, err := run.BuildStages(ctx, l.root, l.bin, picked)
	return l, servers, w, err
}

// lab prepares for servers to be started.
func (o Options) lab() (*lab, error) {
	l := &lab{workers: o.Workers, warmup: warmup}
	var err error
	if l.command, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("cannot find this command's own file: %w", err)
	}
	if l.root, err = harness.FindRoot(); err != nil {
		return nil, err
	}
	if l.out, err = run.Out(l.root); err != nil {
		return nil, fmt.Errorf("cannot make the folder for what is written: %w", err)
	}
	l.bin = filepath.Join(l.out, "bin")
	if o.Folder != "" {
		l.out = o.Folder
		if err := os.MkdirAll(o.Folder, 0o755); err != nil {
			return nil, err
		}
	}
	if l.place, err = run.Locate(o.Layout); err != nil {
		return nil, err
	}
	if l.workers == 0 {
		l.workers = len(l.place.Server)
	}
	return l, nil
}

// header begins each document that this package writes as JSON.
type header struct {
	Schema  string    `json:"schema"`
	Version int       `json:"version"`
	Created time.Time `json:"created"`
}

func newHeader(kind string) header {
	return header{Schema: "qps-ladder/" + kind, Version: schemaVersion, Created: time.Now().UTC().Truncate(time.Second)}
}

// schemaVersion is that of all documents, as long as none has changed.
const schemaVersion = 1

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
