package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Generator is the load generator as a process of its own. It opens all
// connections, sends when it is told to, and holds the connections until it is
// told to end: before and after, nothing is on its way to the server.
type Generator struct {
	*harness.Process
	patience time.Duration // for each of its words
}

// Drive says what a generator is to do.
type Drive struct {
	Command  string // this project's command, whose subcommand load is the generator
	CPUs     []int
	Address  string // of the server
	Workload workload.Workload
	Threads  int
	Warmup   time.Duration
	Duration time.Duration
	More     []string // flags of the subcommand beside these
}

// start starts the generator's process.
func (d Drive) start(ctx context.Context, more ...string) (*Generator, error) {
	w := d.Workload
	args := []string{
		"load", "--json", "-", "--target", d.Address, "--workload", w.Name,
		"--connections", strconv.Itoa(w.Connections), "--pipeline", strconv.Itoa(w.Pipeline), "--idle", strconv.Itoa(w.Idle),
		"--threads", strconv.Itoa(d.Threads), "--warmup", d.Warmup.String(), "--duration", d.Duration.String(),
	}
	p, err := harness.Start(ctx, harness.Command{
		Name: "the load generator", Path: d.Command, Args: append(args, append(more, d.More...)...), CPUs: d.CPUs, Input: true,
	})
	return &Generator{Process: p, patience: d.Warmup + d.Duration + time.Minute}, err
}

// OpenGenerator starts a generator and returns when it has opened its
// connections. The caller has to Close it.
func OpenGenerator(ctx context.Context, d Drive) (*Generator, error) {
	g, err := d.start(ctx, "--hold")
	if err != nil {
		return nil, err
	}
	if err := g.expect(ctx, "ready"); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (g *Generator) expect(ctx context.Context, word string) error {
	line, err := g.Line(ctx, g.patience)
	if err == nil && line != word {
		err = fmt.Errorf("%s said %.80q instead of %q", g.Name, line, word)
	}
	return err
}

// Send sends the workload, and returns when the last answer is there.
func (g *Generator) Send(ctx context.Context) error {
	if err := g.Say("go"); err != nil {
		return err
	}
	return g.expect(ctx, "done")
}

// Result closes the connections and says what came of it.
func (g *Generator) Result(ctx context.Context) (result load.Result, err error) {
	if err = g.Say("end"); err != nil {
		return result, err
	}
	if result, err = g.readResult(ctx); err != nil {
		return result, err
	}
	if err = g.Wait(harness.Patience); err == nil && g.ExitCode() != 0 {
		err = g.EndedError("")
	}
	return result, err
}

func (g *Generator) readResult(ctx context.Context) (result load.Result, err error) {
	line, err := g.Line(ctx, g.patience)
	if err != nil {
		return result, err
	}
	if err = json.Unmarshal([]byte(line), &result); err != nil {
		err = fmt.Errorf("the load generator's result is not understood: %w", err)
	}
	return result, err
}
