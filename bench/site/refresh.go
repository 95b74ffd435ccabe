package site

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Refresh says what is to be measured anew, and how long.
type Refresh struct {
	Only   []string      // of RefreshParts, others are none; all when empty
	Rounds int           // of the ablation, of the summit and elsewhere; 0: as many as fit into Time, at least 6
	Time   time.Duration // for each of them
	Labs   []string      // to run; all when empty
	Quick  bool          // short and noisy
	Out    io.Writer
}

// RefreshParts are the parts that can be measured on their own.
var RefreshParts = []string{"ladder", sharedName, loopsName, peersName, rateName, networkName, ablationName, summitName, elsewhereName,
	eventsName, pinName, uringName, "profiles", labsName}

// peersWorkloads are those on which chapter 9 shows stage5 and the summit beside other servers.
const peersWorkloads = "hello,pipelined,browser,json,body64k,churn"

// Run measures into docs/data of the repository at root. command is this
// process's own program, which has the subcommands run, load and where.
func (r *Refresh) Run(ctx context.Context, root, command string) error {
	work, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	p := &refreshing{Refresh: r, ctx: ctx, root: root, command: command, work: work}
	for _, part := range RefreshParts {
		if len(r.Only) > 0 && !slices.Contains(r.Only, part) {
			continue
		}
		if err := p.part(part); err != nil {
			return fmt.Errorf("cannot measure %s: %w", part, err)
		}
	}
	changed, err := WriteMarks(root)
	if len(changed) > 0 {
		fmt.Fprintf(r.Out, "written anew: %s\n", strings.Join(changed, ", "))
	}
	return err
}

// refreshing is a refresh on its way.
type refreshing struct {
	*Refresh
	ctx           context.Context
	root, command string
	work          string // a folder for what is not to stay
}

func (r *refreshing) part(name string) error {
	switch name {
	case sharedName:
		// The other layout, for chapter 0: the ladder itself gives the generator CPUs of its own.
		return r.document(name, "compare", "0", "1", "--layout", results.CoLocated)
	case loopsName:
		// Several listeners, as far as two CPUs can show them.
		return r.document(name, "compare", "0", "1", "--workers", "2", "--layout", results.Shared)
	case peersName:
		// Ten servers share the rounds, so the usual five minutes would be few for each.
		return r.document(name, "peers", "--workload", peersWorkloads, "--time", "10m")
	case rateName:
		return r.document(name, "rate")
	case networkName:
		return r.document(name, "network")
	case ablationName, elsewhereName, uringName:
		if err := netpoll.RingError(); err != nil && name == uringName {
			fmt.Fprintf(r.Out, "%s is left as it was: %v\n", name, err)
			return nil
		}
		a, err := readAblation(r.root, name)
		if err != nil {
			return err
		}
		return r.ablation(a, name+".json")
	case summitName:
		a, err := readSummit(r.root)
		if err != nil {
			return err
		}
		return r.ablation(a, name+".json")
	case eventsName:
		return r.events()
	case pinName:
		return r.pin()
	case "profiles":
		return r.profiles()
	case labsName:
		return r.labs()
	}
	return r.document(name, "run")
}

// data is the path of a file of docs/data.
func (r *refreshing) data(name string) string { return filepath.Join(r.root, "docs", "data", name) }

// ladder runs a subcommand that leaves its files in r.work.
func (r *refreshing) ladder(out io.Writer, args ...string) error {
	return r.start(out, append(args, "--out", r.work)...)
}

// start runs a subcommand.
func (r *refreshing) start(out io.Writer, args ...string) error {
	cmd := exec.CommandContext(r.ctx, r.command, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ladder %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// document keeps the document of a subcommand as name.json.
func (r *refreshing) document(name string, args ...string) error {
	shown, file := "ladder "+strings.Join(args, " "), args[0]
	if file == "run" {
		shown, file = "make ladder", "ladder"
	}
	if r.Quick {
		args = append(args, "--quick")
		if file == "ladder" {
			shown += " QUICK=1"
		}
	}
	if err := r.ladder(r.Out, args...); err != nil {
		return err
	}
	d, err := results.Read(filepath.Join(r.work, file+".json"))
	if err != nil {
		return err
	}
	d.Command = shown
	if name == rateName || name == networkName { // shown whole, so nothing more is asked of the rounds
		return writeWhole(d, r.data(name+".json"))
	}
	return writeData(d, r.data(name+".json"))
}

// profiles records where each stage's time goes on hello: the table of all six,
// and for each the stacks that its flame graph is drawn from.
func (r *refreshing) profiles() error {
	stages, err := harness.Stages(r.root)
	if err != nil {
		return err
	}
	seconds := "5s"
	if r.Quick {
		seconds = "1s"
	}
	if err := r.ladder(nil, "where", "--duration", seconds); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.work, "where-"+workload.Hello+".json"))
	if err != nil {
		return err
	}
	if err := writeData(json.RawMessage(text), r.data("where.json")); err != nil {
		return err
	}
	for _, folder := range stages {
		stage := harness.ShortName(folder)
		if err := r.ladder(nil, "flame", stage, "--profiler", "auto", "--duration", seconds); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(r.work, "profile-"+stage+"-*.pb.gz"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("ladder flame %s left no profile: %w", stage, err)
		}
		o, err := profile.ReadOutline(files[0])
		if err != nil {
			return fmt.Errorf("%s: %w", stage, err)
		}
		o.About += "; " + time.Now().Format("2 January 2006")
		if err := writeProfile(o, r.data(filepath.Join("profiles", stage+".folded"))); err != nil {
			return err
		}
	}
	return nil
}
