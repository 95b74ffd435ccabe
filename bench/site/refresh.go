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
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// Refresh says what is to be measured anew, and how long.
type Refresh struct {
	Only   []string      // of RefreshParts, others are none; all when empty
	Rounds int           // of the ablation; 0: as many as fit into Time, at least 6
	Time   time.Duration // for the ablation
	Quick  bool          // short and noisy
	Out    io.Writer
}

// RefreshParts are the parts that can be measured on their own.
var RefreshParts = []string{"ladder", splitName, peersName, "ablation", "profiles"}

// peersWorkloads are those on which chapter 9 shows stage5 beside other servers.
const peersWorkloads = "hello,pipelined,browser,json,body64k"

func (r *Refresh) wants(part string) bool { return len(r.Only) == 0 || slices.Contains(r.Only, part) }

// Run measures into docs/data of the repository at root. command is this
// process's own program, which has the subcommands run, load and where.
func (r *Refresh) Run(ctx context.Context, root, command string) error {
	data := filepath.Join(root, "docs", "data")
	if r.wants("ladder") {
		if err := r.ladder(ctx, root, command, data); err != nil {
			return err
		}
	}
	if r.wants(splitName) {
		// Chapter 1 blames their sharing a CPU for what the step does on hello.
		if err := r.apart(ctx, root, command, data, splitName, "compare", "0", "1", "--layout", "split"); err != nil {
			return fmt.Errorf("stage1 could not be measured beside a generator with a CPU of its own (which needs two): %w", err)
		}
	}
	if r.wants(peersName) {
		if err := r.apart(ctx, root, command, data, peersName, "peers", "--workload", peersWorkloads); err != nil {
			return fmt.Errorf("the servers of other libraries could not be measured: %w", err)
		}
	}
	if r.wants("ablation") {
		if err := r.ablation(ctx, root, command, data); err != nil {
			return err
		}
	}
	if r.wants("profiles") {
		if err := r.profiles(ctx, root, command, data); err != nil {
			return err
		}
	}
	changed, err := UpdateReadmes(root)
	if len(changed) > 0 {
		fmt.Fprintf(r.Out, "new figures in %s\n", strings.Join(changed, ", "))
	}
	return err
}

// ladder is the main job, whose document becomes docs/data/ladder.json.
func (r *Refresh) ladder(ctx context.Context, root, command, data string) error {
	work, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := r.measure(ctx, root, command, "run", "--out", work); err != nil {
		return fmt.Errorf("the ladder could not be measured: %w", err)
	}
	d, err := results.Read(filepath.Join(work, "ladder.json"))
	if err != nil {
		return err
	}
	d.Command = "make ladder"
	if r.Quick {
		d.Command += " QUICK=1"
	}
	for _, theme := range []string{"light", "dark"} {
		picture, err := os.ReadFile(filepath.Join(work, "ladder-"+theme+".svg"))
		if err != nil {
			return fmt.Errorf("the run left no picture of the progression: %w", err)
		}
		if err := os.WriteFile(filepath.Join(data, "progression-"+theme+".svg"), picture, 0o644); err != nil {
			return err
		}
	}
	return keep(d, filepath.Join(data, "ladder.json"))
}

// apart runs a subcommand whose document is one of namedFiles.
func (r *Refresh) apart(ctx context.Context, root, command, data, name string, args ...string) error {
	work, err := os.MkdirTemp("", name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := r.measure(ctx, root, command, append(args, "--out", work)...); err != nil {
		return err
	}
	d, err := results.Read(filepath.Join(work, args[0]+".json"))
	if err != nil {
		return err
	}
	d.Command = "ladder " + strings.Join(args, " ")
	return keep(d, filepath.Join(data, name+".json"))
}

func (r *Refresh) measure(ctx context.Context, root, command string, args ...string) error {
	if r.Quick {
		args = append(args, "--quick")
	}
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, r.Out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.Run()
}

// keep writes a document without what no chapter quotes, which is most of its
// bytes: the histograms and counters of single measurements.
func keep(d *results.Document, path string) error {
	for i := range d.Measurements {
		d.Measurements[i].Histogram, d.Measurements[i].Counters, d.Measurements[i].LoopRequests = "", nil, nil
	}
	b, err := json.MarshalIndent(d, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// ablation builds the variants and measures each beside what it is compared with.
func (r *Refresh) ablation(ctx context.Context, root, command, data string) error {
	folders, err := stageFolders(root)
	if err != nil {
		return err
	}
	file, err := readVariants(root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "variants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fmt.Fprintf(os.Stderr, "building %d stages and %d variants\n", len(folders), len(file.Variants))
	stages, err := run.BuildStages(ctx, root, work, folders)
	if err != nil {
		return err
	}
	servers := map[string]run.Server{}
	for _, s := range stages {
		servers[s.Name] = s
	}
	peers, err := run.BuildPeers(ctx, root, work)
	if err != nil {
		return err
	}
	for _, s := range peers {
		s.Name = strings.ReplaceAll(s.Name, "/", "") // in a key a slash stands between two servers
		servers[s.Name] = s
	}
	names := dataFiles{stages: folders}
	bench := &run.Bench{
		Rounds: r.Rounds, Time: r.Time, Warmup: 150 * time.Millisecond, Duration: 400 * time.Millisecond,
		Generator: run.Embedded, Command: command, Seed: uint64(time.Now().UnixNano()),
	}
	if r.Quick {
		bench.Warmup, bench.Duration = 60*time.Millisecond, 150*time.Millisecond
	}
	put := func(name, on string) error {
		w, err := workload.ByName(on)
		if err != nil {
			return err
		}
		same := func(i run.Item) bool { return i.Server.Name == name && i.Workload.Name == on }
		if !slices.ContainsFunc(bench.Items, same) {
			bench.Items = append(bench.Items, run.Item{Server: servers[name], Workload: w})
		}
		return nil
	}
	for _, v := range file.Variants {
		path, err := v.build(ctx, root, work, folders)
		if err != nil {
			return err
		}
		servers[v.Name] = run.Server{Name: v.Name, Path: path, Args: v.Args, Admin: true}
		for _, c := range v.Compare {
			with := names.server(c.With)
			if servers[with].Path == "" {
				return fmt.Errorf("variant %s: there is no %q to compare it with", v.Name, c.With)
			}
			for _, name := range []string{with, v.Name} {
				if err := put(name, c.Workload); err != nil {
					return err
				}
			}
			for _, metric := range []results.Metric{results.RequestsPerSecond, results.ServerCPU} {
				bench.Ratios = append(bench.Ratios, results.Ratio{Kind: results.Pair, Workload: c.Workload, Metric: metric, Head: v.Name, Base: with})
			}
		}
	}
	for _, item := range file.Also {
		name := names.server(item.Server)
		if servers[name].Path == "" {
			return fmt.Errorf("ablation.yaml: there is no server %q", item.Server)
		}
		if err := put(name, item.Workload); err != nil {
			return err
		}
	}
	bench.Progress = func(p run.Progress) {
		fmt.Fprintf(os.Stderr, "\rround %d of %d, %d of %d: %s on %s          ", p.Round, p.Rounds, p.Done+1, p.Items, p.Item.Server.Name, p.Item.Workload.Name)
	}
	d, err := bench.Run(ctx)
	fmt.Fprintln(os.Stderr)
	if err != nil {
		return err
	}
	d.Command = "make docs-refresh"
	d.Method.Revision = run.Revision(root)
	return keep(d, filepath.Join(data, "ablation.json"))
}

// profiles records where each stage's time goes on hello: the table of all six,
// and for each the stacks that its flame graph is drawn from.
func (r *Refresh) profiles(ctx context.Context, root, command, data string) error {
	folders, err := stageFolders(root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "profiles")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	seconds := "5s"
	if r.Quick {
		seconds = "1s"
	}
	ladder := func(args ...string) error {
		cmd := exec.CommandContext(ctx, command, append(args, "--duration", seconds, "--out", work)...)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("ladder %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
	if err := ladder("where"); err != nil {
		return err
	}
	table, err := os.ReadFile(filepath.Join(work, "where-"+workload.Hello+".json"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "where.json"), table, 0o644); err != nil {
		return err
	}
	for _, folder := range folders {
		stage, _, _ := strings.Cut(folder, "-")
		if err := ladder("flame", stage, "--profiler", "auto"); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(work, "profile-"+stage+"-*.pb.gz"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("ladder flame %s left no profile: %w", stage, err)
		}
		o, err := profile.ReadOutline(files[0])
		if err != nil {
			return fmt.Errorf("%s: %w", stage, err)
		}
		o.About += "; " + time.Now().Format("2 January 2006")
		if err := writeProfile(o, filepath.Join(data, "profiles", stage+".folded")); err != nil {
			return err
		}
	}
	return nil
}
